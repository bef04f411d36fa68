"""Compiled kernels on disk: those that ship with Trellis, and those that this machine has compiled itself.

What ships lies in the package, in `SHIPPED`: in a directory for the very versions of Python, Numba, LLVM and NumPy that
it was compiled with, for the plainest processor that all of the last ten years can stand in for. It is only read. What
is not there is compiled for the processor at hand and kept in `trellis.caches.compiled_directory`.

A file holds one form of one kernel, and begins with a digest of all that the code depends on and of the code itself:
the sources of the kernel and of all that it imports from other kernels, the versions, the types, the processor. Where
that is not what it should be, the file is as good as none, whether it is old, foreign, cut off or damaged. No path goes
into it: whoever has the same sources shares what is kept.
"""

from __future__ import annotations

import fcntl
import glob
import hashlib
import os
import pickle
import re
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba.core import config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from trellis.caches import compiled_directory

KERNELS = Path(__file__).parent
SHIPPED = KERNELS.parent / "compiled" / "code"
FOR_BUILDING = "TRELLIS_BUILD_COMPILED"
"""The variable of the environment that names where compiled kernels are put to be shipped, instead of being kept."""

LOCKS = ".locks"
"""The name of a file where kernels are put or kept, with a byte to lock for each of them."""

PROCESSORS = {"x86_64": "x86-64-v3"}
"""The processor that shipped code is for, by architecture; elsewhere `generic`."""

PATIENCE = 30.0
"""How many seconds a process waits for another one that compiles the same kernel: that one may have been stopped."""

_THIS = Path(__file__)
_V3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_KEPT = 30 * 24 * 3600.0  # seconds after which another form of a kernel takes its place
_DIGEST = hashlib.sha256().digest_size
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
    if config.BOUNDSCHECK or config.DEBUGINFO_DEFAULT or config.DISABLE_JIT or not config.ENABLE_AVX:
        return False
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return False
    if processor() == "generic":
        return True
    features = binding.get_host_cpu_features()
    return all(features.get(name, False) for name in _V3)


def _options() -> tuple[int, ...]:
    """Return the settings of Numba that change the code for one processor; none where it is to ship."""
    return () if _is_building() else (int(config.OPT), bool(config.BOUNDSCHECK), bool(config.DEBUGINFO_DEFAULT))


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
    """Return the text of a file as it was when this was imported, since that is what runs."""
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


def _read(file: Path, key: bytes) -> Any:
    """Return the code that a file holds for what a key describes; None if there is none, or anything else."""
    content = file.read_bytes()
    body = content[_DIGEST:]
    return pickle.loads(zlib.decompress(body)) if content[:_DIGEST] == _sealed(key, body) else None


def _write(file: Path, key: bytes, code: Any) -> None:
    """Put code into the place of a file, wholly or not at all."""
    body = zlib.compress(dumps(code))
    number, fresh = tempfile.mkstemp(dir=file.parent, prefix=".new-")
    try:
        with os.fdopen(number, "wb") as out:
            out.write(_sealed(key, body) + body)
        os.chmod(fresh, 0o644)
        os.replace(fresh, file)
    except BaseException:
        os.unlink(fresh)
        raise


def _sealed(key: bytes, body: bytes) -> bytes:
    return hashlib.sha256(key + body).digest()


class NoCache(NullCache):
    """The cache of a kernel that is not kept."""

    def turn(self) -> AbstractContextManager[None]:
        """Wait for nobody."""
        return nullcontext()


class KernelCache(NoCache):
    """The cache of one kernel: what this machine has compiled, then what ships."""

    def __init__(self, function: Any, patience: float = PATIENCE) -> None:
        self._function, self._patience = function, patience
        self._source = Path(function.__code__.co_filename)

    @property
    def cache_path(self) -> str | None:
        """Where this machine keeps what it compiles; None where nothing can be kept."""
        place = _place()
        return None if place is None else str(place)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for the types of arguments; None if it is not there."""
        target_context.refresh()
        target = target_context.codegen().magic_tuple()
        code = self._load(_place(), sig, target, _options())
        if code is None and can_run_shipped():
            code = self._load(SHIPPED / versions(), sig, (target[0], processor(), ""), ())
        return None if code is None else CompileResult._rebuild(target_context, *code)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep code that was compiled, unless there is no room; what is to be shipped has to be kept."""
        place = _place()
        if place is None or data.library.has_dynamic_globals:
            return
        with nullcontext() if _is_building() else suppress(OSError):
            key = self._key(sig, data.library.codegen.magic_tuple(), _options())
            _write(self._file(place, key), key, data._reduce())
            self._forget_old(place)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Have processes that keep code in one place compile this kernel one after another: the second finds it there.

        Where nothing can be kept, or another one takes its time, nobody waits.
        """
        with ExitStack() as held:
            with suppress(OSError):
                self._take_turn(held)
            yield

    def _take_turn(self, held: ExitStack) -> None:
        place = _place()
        if place is None:
            return
        place.mkdir(0o700, exist_ok=True)
        file = os.open(place / LOCKS, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        held.callback(os.close, file)
        end = time.monotonic() + self._patience
        while time.monotonic() < end:
            with suppress(BlockingIOError, PermissionError):
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, zlib.crc32(self._name.encode()))
                return
            time.sleep(0.02)

    @cached_property
    def _name(self) -> str:
        """The name of the kernel, as files begin."""
        source = self._source.with_suffix("")
        inner = source.relative_to(KERNELS).parts if source.is_relative_to(KERNELS) else (source.name,)
        return ".".join((*inner, self._function.__qualname__))

    def _key(self, sig: Any, target: tuple[str, ...], options: tuple[int, ...]) -> bytes:
        """Return all that code depends on."""
        inside = [cell.cell_contents for cell in self._function.__closure__ or ()]
        content = hashlib.sha256(self._function.__code__.co_code + (dumps(inside) if inside else b"")).hexdigest()
        return repr((self._name, versions(), stamp(self._source), content, sig, target, options)).encode()

    def _file(self, place: Path, key: bytes) -> Path:
        return place / f"{self._name}.{hashlib.sha256(key).hexdigest()[:16]}.nbc"

    def _load(self, place: Path | None, *about: Any) -> Any:
        if place is None:
            return None
        try:
            key = self._key(*about)
            return _read(self._file(place, key), key)
        except OSError:
            return None

    def _forget_old(self, place: Path) -> None:
        """Remove forms of this kernel that were compiled long ago, from sources that may be gone."""
        for file in place.glob(f"{glob.escape(self._name)}.*.nbc"):
            if file.stat().st_mtime < time.time() - _KEPT:
                file.unlink()


def _is_building() -> bool:
    return FOR_BUILDING in os.environ


def _place() -> Path | None:
    """Return where code is put or kept; None where nothing can be kept."""
    return Path(os.environ[FOR_BUILDING]) if _is_building() else compiled_directory()


for _one in KERNELS.rglob("*.py"):
    _text(_one)
