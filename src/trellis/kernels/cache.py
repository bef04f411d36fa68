"""Compiled kernels on disk: those that ship with Trellis, and those that this machine has compiled itself.

What ships lies in the package, in `SHIPPED`: in a directory for the very versions of Python, Numba, LLVM and NumPy that
it was compiled with, for the plainest processor that all of the last ten years can stand in for. It is only read. What
is not there is compiled for the processor at hand and kept where Numba keeps things (see `trellis.caches`).

Both are believed only as long as the sources are what they were: Numba itself looks at the file of a function, here it
is that file and all that it imports from other kernels, by their content.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba.core import config
from numba.core.caching import Cache, CompileResultCacheImpl, IndexDataCacheFile

KERNELS = Path(__file__).parent
SHIPPED = KERNELS.parent / "compiled" / "code"
FOR_BUILDING = "TRELLIS_BUILD_COMPILED"
"""The variable of the environment that names where compiled kernels are put to be shipped, instead of being kept."""

LOCKS = ".locks"
"""The name of a file where kernels are put or kept, with a byte to lock for each of them."""

PROCESSORS = {"x86_64": "x86-64-v3"}
"""The processor that shipped code is for, by architecture; elsewhere `generic`."""

_THIS = Path(__file__)
_V3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_turn = ExitStack()  # of this process to compile a kernel: one thread of it does at a time
_DAMAGE = (AttributeError, EOFError, ImportError, TypeError, ValueError, pickle.UnpicklingError, zlib.error)
_IMPORT = re.compile(r"^from (trellis\.kernels[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)


def processor() -> str:
    """Return the name of the processor that shipped code is for."""
    return PROCESSORS.get(os.uname().machine, "generic")


def versions() -> str:
    """Return the versions that compiled code depends on besides its sources, as the name of a directory."""
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    tools = f"numba-{numba.__version__}-llvmlite-{llvmlite.__version__}-numpy-{np.__version__}"
    return f"{python}-{tools}-{sys.platform}-{os.uname().machine}-{processor()}"


@cache
def can_run_shipped() -> bool:
    """Return whether this processor can run what ships, and nothing was asked of Numba that would change the code."""
    if config.CPU_NAME is not None or config.BOUNDSCHECK or config.DEBUGINFO_DEFAULT or config.DISABLE_JIT:
        return False
    if processor() == "generic":
        return True
    features = binding.get_host_cpu_features()
    return all(features.get(name, False) for name in _V3)


# --- Sources ----------------------------------------------------------------------------------------------------


@cache
def stamp(file: Path) -> str:
    """Return a digest of a file of kernels and of all kernels that it imports, however far."""
    files, waiting = {file}, [file]
    while waiting:
        for found in _imported(waiting.pop()) - files:
            files.add(found)
            waiting.append(found)
    digest = hashlib.sha256()
    for one in sorted(files):
        digest.update(f"{one.relative_to(KERNELS) if one.is_relative_to(KERNELS) else one}\n".encode())
        digest.update(_text(one))
    return digest.hexdigest()


@cache
def _text(file: Path) -> bytes:
    return file.read_bytes()


@cache
def _imported(file: Path) -> frozenset[Path]:
    """Return the files of the kernels that a file imports by name."""
    found = _IMPORT.findall(_text(file).decode())
    packages = [(KERNELS.joinpath(*name.split(".")[2:]), names) for name, names in found]
    places = [package for package, _ in packages]
    places += [package / name for package, names in packages for name in re.findall(r"\w+", names)]
    return frozenset(
        found
        for place in places
        for found in (place.with_suffix(".py"), place / "__init__.py")
        if found.is_file() and found != _THIS  # which says where code lies, not what it is
    )


# --- Files ------------------------------------------------------------------------------------------------------


class _OwnCacheFile(IndexDataCacheFile):
    """The specialisations of a kernel that this machine has compiled."""

    def _load_index(self) -> dict[Any, str]:
        try:
            return super()._load_index()
        except _DAMAGE:
            return {}  # written by another version, with other classes: it is written anew

    def load(self, key: Any) -> Any:
        """Return the code for the types of arguments; None if there is nothing, or it cannot be read."""
        try:
            return super().load(key)
        except _DAMAGE:
            return None


class _Shipped(_OwnCacheFile):
    """The specialisations of a kernel that ship; compressed."""

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            return pickle.loads(zlib.decompress(file.read()))

    def _save_data(self, name: str, data: Any) -> None:
        with self._open_for_write(self._data_path(name)) as file:
            file.write(zlib.compress(self._dump(data)))


@contextmanager
def _alone() -> Iterator[None]:
    """Have processes that build what ships write one after another: each adds to lists that others add to."""
    place = os.environ.get(FOR_BUILDING)
    if not place:
        yield
        return
    folder = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@contextmanager
def compiled_once() -> Iterator[None]:
    """Have processes that keep code in one place compile a kernel one after another: the second one finds it there.

    They wait for each other only where there is something to compile.
    """
    with _turn:
        yield


class KernelCache(Cache):
    """The cache of one kernel: what this machine has compiled, then what ships."""

    _impl_class = CompileResultCacheImpl

    def __init__(self, function: Any) -> None:
        self._name, self._py_func = repr(function), function
        self._source = Path(function.__code__.co_filename)
        self._ready = False
        self.enable()

    @property
    def cache_path(self) -> str:
        """Where this machine keeps what it compiles."""
        self._make_ready()
        return self._cache_path

    def flush(self) -> None:
        """Forget what this machine has compiled."""
        self._make_ready()
        super().flush()

    def _make_ready(self) -> None:
        """Find the places; not before they are needed: most kernels that are imported are not."""
        if self._ready:
            return
        self._impl = self._impl_class(self._py_func)
        self._cache_path = self._impl.locator.get_cache_path()
        name, source = self._impl.filename_base, stamp(self._source)
        self._cache_file: Any = _OwnCacheFile(self._cache_path, name, source)
        self._shipped = _Shipped(self._shipped_path(SHIPPED / versions()), name, source) if can_run_shipped() else None
        if os.environ.get(FOR_BUILDING):
            self._shipped = None
            self._cache_path = self._shipped_path(Path(os.environ[FOR_BUILDING]))
            self._cache_file = _Shipped(self._cache_path, name, source)
            os.makedirs(self._cache_path, exist_ok=True)
        self._ready = True

    def _shipped_path(self, root: Path) -> str:
        inner = self._source.parent
        return str(root / (inner.relative_to(KERNELS) if inner.is_relative_to(KERNELS) else inner.name))

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        self._make_ready()
        found = self._find_overload(sig, target_context)
        if found is None:
            self._take_turn()
            found = self._find_overload(sig, target_context)
        return found

    def _take_turn(self) -> None:
        """Wait for other processes that compile this kernel, and have them wait, unless there is nowhere to keep it."""
        with suppress(OSError):
            self._impl.locator.ensure_cache_path()
            place = os.environ.get(FOR_BUILDING) or self._cache_path
            file = os.open(os.path.join(place, LOCKS), os.O_CREAT | os.O_WRONLY, 0o600)
            _turn.callback(os.close, file)
            fcntl.lockf(file, fcntl.LOCK_EX, 1, zlib.crc32(self._impl.filename_base.encode()))

    def _find_overload(self, sig: Any, target_context: Any) -> Any:
        found = super()._load_overload(sig, target_context)
        if found is not None or self._shipped is None:
            return found
        _, (triple, *_), hashes = self._index_key(sig, target_context.codegen())
        data = self._shipped.load((sig, (triple, processor(), ""), hashes))
        return None if data is None else self._impl.rebuild(target_context, data)

    def _save_overload(self, sig: Any, data: Any) -> None:
        self._make_ready()
        with _alone():
            super()._save_overload(sig, data)
