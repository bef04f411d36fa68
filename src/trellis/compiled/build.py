"""Runs the cases in processes of their own that compile for a plain processor, and puts the code in its place."""

from __future__ import annotations

import argparse
import fcntl
import gc
import hashlib
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
MADE_OF = "made_of.txt"
FRESH = ".trellis-new-"
"""How the directory is called that is built, until it is whole."""


def main() -> None:
    """Build, or say that all is there."""
    parser = argparse.ArgumentParser(prog="python -m trellis.compiled", description=__doc__)
    parser.add_argument("what", choices=["build"], help="compile what ships, unless it is there already")
    parser.add_argument("--again", action="store_true", help="also if it is there")
    parser.add_argument("--to", type=Path, help="a directory for it, which must not be there; what ships is left alone")
    parser.add_argument("--verbose", action="store_true", help="tell how long each case and each kernel takes")
    given = parser.parse_args()
    _ask_numba()
    from trellis.kernels.cache import SHIPPED, versions

    place = given.to or SHIPPED / versions()
    if given.to and place.exists():
        parser.error(f"--to: {place} is there already")
    if not given.again and is_current(place):
        return
    try:
        place.parent.mkdir(exist_ok=True)
        with _alone(place.parent):
            if given.again or not is_current(place):  # another process may have built it meanwhile
                _put(place, given.verbose)
                if not given.to:
                    _remove_stale(place.parent)
    except OSError as problem:
        raise SystemExit(f"Nothing was compiled for {place}: {problem.strerror or problem}.") from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Have processes that build into a folder do so one after another, and remove what killed ones have left there."""
    number = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another process compiles what Trellis needs: waiting for it.", file=sys.stderr)
            fcntl.flock(number, fcntl.LOCK_EX)
        for left in folder.glob(f"{FRESH}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(number)


def _put(place: Path, verbose: bool) -> None:
    """Build, and put what was built into its place."""
    print("Compiling what Trellis needs, once (a minute or two).", file=sys.stderr)
    begin = _cpu_seconds()
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=FRESH) as fresh:
        _build(Path(fresh), verbose)
        _replace(Path(fresh), place)
    size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    print(f"Compiled in {_cpu_seconds() - begin:.0f} seconds of CPU: {size / 1e6:.1f} MB.", file=sys.stderr)


def _remove_stale(folder: Path) -> None:
    """Remove code for other versions that older sources were compiled to: nobody uses it, and a wheel would hold it."""
    for other in folder.glob("cpython*"):
        if not is_current(other):
            shutil.rmtree(other, ignore_errors=True)


def is_current(place: Path) -> bool:
    """Return whether a directory holds code that was compiled from the sources and cases as they are."""
    try:
        return (place / MADE_OF).read_bytes() == _made_of().encode()
    except OSError:
        return False


def _ask_numba() -> None:
    """Have Numba compile for a plain processor with all optimisations; before it is imported."""
    assert "numba" not in sys.modules
    for name in [name for name in os.environ if name.startswith("NUMBA_")]:
        del os.environ[name]
    machine = os.uname().machine
    os.environ["NUMBA_CPU_NAME"] = "x86-64-v3" if machine == "x86_64" else "generic"
    os.environ["NUMBA_CPU_FEATURES"] = ""
    os.environ["NUMBA_DISABLE_INTEL_SVML"] = "1"  # a library that others may not have


def _build(fresh: Path, verbose: bool) -> None:
    from trellis.compiled.cases import steps
    from trellis.kernels import jit
    from trellis.kernels.cache import FOR_BUILDING, LOCKS

    made_of = _made_of()
    os.environ[FOR_BUILDING] = str(fresh)
    jit._told.set()  # it is said already
    gc.disable()
    _load()
    forked = multiprocessing.get_context("fork")  # no thread of ours has started yet
    all_steps = steps()
    left = forked.Value("i", len(all_steps))
    helper = forked.Process(target=_run, args=(all_steps[::-1], left, verbose))
    helper.start()
    _run(all_steps, left, verbose)
    helper.join()
    (fresh / LOCKS).unlink(missing_ok=True)
    if helper.exitcode:
        raise SystemExit("Not all kernels could be compiled: see the message above.")
    if _made_of() != made_of:
        raise SystemExit("The kernels changed while they were compiled: run this again.")
    (fresh / MADE_OF).write_text(made_of)


def _load() -> None:
    """Import what all cases need, and have Numba take what is declared, for both processes at once."""
    from numba.core.registry import cpu_target

    import trellis.engines.local.detect
    import trellis.operators.patterns.operator
    import trellis.operators.trends.operator  # noqa: F401

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def _run(steps: Iterable[tuple[str, Callable[[], None]]], left: Synchronized[int], verbose: bool) -> None:
    """Run steps while any are left; another process begins at their other end."""
    warnings.simplefilter("ignore")  # about the events of the cases, which nobody asked for
    seconds = _seconds_by_kernel() if verbose else {}
    starter = multiprocessing.parent_process()
    for name, step in steps:
        with left.get_lock():
            if left.value == 0 or (starter and not starter.is_alive()):
                break
            left.value -= 1
        begin = time.process_time()
        step()
        if verbose:
            print(f"{time.process_time() - begin:6.2f} s  {name}", file=sys.stderr)
    for name in sorted(seconds, key=lambda name: -sum(seconds[name])):
        times = seconds[name]
        print(f"{sum(times):6.2f} s  {name} ({len(times)})", file=sys.stderr)


def _seconds_by_kernel() -> dict[str, list[float]]:
    """Return a table that is filled from now on: the seconds of CPU that each form of a kernel takes to compile."""
    from trellis.kernels.jit import KernelDispatcher

    whole, seconds = KernelDispatcher._compile, defaultdict[str, list[float]](list)

    def compile_timed(self: KernelDispatcher, args: Any, return_type: Any, inner: bool) -> Any:
        begin = time.process_time()
        found = whole(self, args, return_type, inner)
        if not inner:
            seconds[f"{self.py_func.__module__}.{self.py_func.__name__}"].append(time.process_time() - begin)
        return found

    KernelDispatcher._compile = compile_timed  # type: ignore[method-assign]
    return seconds


def _cpu_seconds() -> float:
    """Return the time on a processor of this process and of those that it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _made_of() -> str:
    """Return a digest of all that decides what is compiled."""
    digest = hashlib.sha256()
    for file in sorted([*PACKAGE.joinpath("kernels").rglob("*.py"), PACKAGE / "compiled" / "cases.py"]):
        digest.update(str(file.relative_to(PACKAGE)).encode() + b"\n" + file.read_bytes())
    return digest.hexdigest() + "\n"


def _replace(fresh: Path, place: Path) -> None:
    """Put a directory in the place of another: at any time there is one, or none, but never half of one."""
    fresh.chmod(0o755)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=FRESH) as old:
        if place.exists():
            place.rename(Path(old) / place.name)
        fresh.rename(place)
