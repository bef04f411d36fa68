"""Compiled kernels that ship: they are found and used, but not where sources, versions or processor are others."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np
import pytest
from llvmlite.binding import Linkage, parse_assembly
from numba import njit
from numba.core.errors import TypingError

import trellis
from trellis.compiled.build import is_current
from trellis.compiled.cases import CASES, run
from trellis.kernels import cache, jit

PACKAGE = Path(trellis.__file__).parent
ROOT = Path(__file__).parents[2]
SHIPPED = cache.SHIPPED / cache.versions()
INSIDE = (Linkage.internal, Linkage.private)
ASKED_OF_NUMBA = {"NUMBA_OPT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"}

NEIGHBOURS = """
import numpy as np
import trellis
from trellis.kernels.graph.whole import lower_neighbours

offsets, sources = np.array([0, 0, 1, 3]), np.array([0, 0, 1], np.int64)  # edges a to b, a to c and b to c
begins, lower = np.empty(4, np.int64), np.empty(3, np.int64)
assert lower_neighbours(offsets, sources, np.arange(3), begins, lower) == 3
assert (begins.tolist(), lower.tolist()) == ([0, 0, 1, 3], [0, 0, 1])
print(trellis.__file__)
print(*lower_neighbours.stats.cache_hits.values(), "/", *lower_neighbours.stats.cache_misses.values())
"""

PAGES = """
import contextlib
import io
import trellis
from tests.docs import test_index_page, test_readme, test_semantics_page, test_site
from trellis.kernels.jit import KernelDispatcher

compiled = []
whole = KernelDispatcher.compile

def compile_noted(self, signature):
    before = sum(self.stats.cache_misses.values())
    found = whole(self, signature)
    if sum(self.stats.cache_misses.values()) > before:
        compiled.append(f"{self.py_func.__module__}.{self.py_func.__name__}{signature}")
    return found

def tell(asked):
    for kernel in compiled:
        print(asked, kernel, sep=": ")
    compiled.clear()

KernelDispatcher.compile = compile_noted
for page, examples in ((test_semantics_page, test_semantics_page.RESULTS), (test_index_page, test_index_page.EXAMPLES)):
    for example in examples:
        found = page.detected(example)
        found.count()
        found.to_pandas()
        tell(" ".join(example.query.split()))
pages = {name: test_site.PYTHON.findall((test_site.ROOT / "docs" / f"{name}.md").read_text()) for name in test_site.RUN}
pages["README"] = [(code, shown) for spark, code, shown in test_readme.PYTHON.findall(test_readme.TEXT) if not spark]
for name, blocks in pages.items():
    names = {}
    for code, _ in blocks:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, name, "exec"), names)
    tell(name)
print(trellis.__file__)
print("Done")
"""

built = pytest.mark.skipif(not is_current(SHIPPED), reason="kernels or cases have changed since the set-up")


def run_program(code: str, package: Path, kept: Path) -> list[str]:
    """Run a program with the package of a folder; return what it prints but for that place, its last line but one."""
    env = {name: value for name, value in os.environ.items() if name not in ASKED_OF_NUMBA}
    paths = os.pathsep.join((str(package.parent), str(ROOT)))
    env |= {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(kept)}
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    *lines, place, last = done.stdout.splitlines()
    assert Path(place).parent == package
    return [*lines, last]


@built
def test_the_queries_of_the_pages_compile_nothing(tmp_path: Path) -> None:
    assert run_program(PAGES, PACKAGE, tmp_path / "kept") == ["Done"], "add a query to trellis/compiled/cases.py"


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package at another place, with other times of its files."""
    return Path(
        shutil.copytree(PACKAGE, tmp_path_factory.mktemp("elsewhere") / "trellis", copy_function=shutil.copyfile)
    )


@built
def test_it_is_used_at_another_place_and_not_when_anything_else_differs(copied: Path, tmp_path: Path) -> None:
    assert run_program(NEIGHBOURS, copied, tmp_path / "1") == ["1 /"]
    home = copied / "compiled" / "code" / cache.versions()
    other = home.rename(home.with_name(home.name.replace("numba-", "numba-9")))
    assert run_program(NEIGHBOURS, copied, tmp_path / "2") == ["/ 1"]
    other.rename(home)
    kernel = copied / "kernels" / "graph" / "whole.py"
    kernel.write_text(kernel.read_text() + "# changed\n")
    with ThreadPool(2) as two:  # at the same time, of which one compiles, and the other finds what this machine keeps
        found = two.map(lambda _: run_program(NEIGHBOURS, copied, tmp_path / "3"), range(2))
    assert sorted(found) == [["/ 1"], ["1 /"]]
    kernel.write_text(kernel.read_text() + "# changed again\n")
    assert run_program(NEIGHBOURS, copied, tmp_path / "3") == ["/ 1"]


@built
def test_a_damaged_file_is_compiled_anew(copied: Path, tmp_path: Path) -> None:
    for file in (copied / "compiled" / "code").rglob("*.nbc"):
        file.write_bytes(b"")
    assert run_program(NEIGHBOURS, copied, tmp_path / "kept") == ["/ 1"]


def test_a_stamp_covers_what_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = tmp_path / "now"
    (now / "inner").mkdir(parents=True)
    files = {
        name: now / name for name in ("outer.py", "inner/__init__.py", "inner/middle.py", "inner/t.py", "alone.py")
    }
    imports = "from trellis.kernels.inner.middle import f\nfrom trellis.kernels.inner import t as numbers\n"
    files["outer.py"].write_text(imports)
    files["inner/t.py"].write_text("")
    files["inner/middle.py"].write_text("from trellis.kernels.inner import g\n")
    files["inner/__init__.py"].write_text("")
    files["alone.py"].write_text("")

    numbers = itertools.count()

    def stamp() -> str:
        copy = tmp_path / str(next(numbers))  # what was read of a file is remembered
        monkeypatch.setattr(cache, "KERNELS", copy)
        return cache.stamp(shutil.copytree(now, copy) / "outer.py")

    first = stamp()
    files["alone.py"].write_text("1")
    assert stamp() == first
    seen = {first}
    for name in ("outer.py", "inner/middle.py", "inner/__init__.py", "inner/t.py"):
        files[name].write_text(files[name].read_text() + "# changed\n")
        seen.add(stamp())
    assert len(seen) == 5


def test_old_processors_do_not_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "processor", lambda: "x86-64-v3")
    cache.can_run_shipped.cache_clear()
    monkeypatch.setattr(cache.binding, "get_host_cpu_features", lambda: {"avx": True, "avx2": False})
    assert not cache.can_run_shipped()
    cache.can_run_shipped.cache_clear()


def test_nobody_gets_it_who_asks_numba_for_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache.config, "BOUNDSCHECK", 1)
    assert not cache.can_run_shipped.__wrapped__()


# --- The decorator ----------------------------------------------------------------------------------------------


@jit.njit(nogil=True)
def _twice(values):
    return values * 2


@jit.njit(nogil=True)
def _sum_of_twice(values):
    return _twice(values).sum()


@jit.njit
def _wrong(values):
    return _twice(values).no_such_thing


class _Halves(NamedTuple):
    whole: int
    rest: int


@jit.njit
def _halves(value):
    return 0, _Halves(value // 2, value % 2)


@jit.njit
def _rest(value):
    return _halves(value)[1].rest


def test_python_gets_no_named_tuple() -> None:
    """Its class would be called where no exception may be raised, and Ctrl-C raises one."""
    with pytest.raises(TypeError, match=r"`_halves` is called by Python and returns the named tuple .*_Halves"):
        _halves(3)
    assert _rest(3) == 1


def test_a_kernel_is_called_by_another_and_by_python() -> None:
    values = np.arange(4)
    assert _sum_of_twice(values) == 12
    assert _twice(values).tolist() == [0, 2, 4, 6]
    assert _sum_of_twice(values.astype(np.float64)) == 12.0
    assert _sum_of_twice(values) == 12
    assert _twice(2) == 4


@jit.njit
def _times(value, factor):
    return value * factor


@jit.njit
def _polynomial(value):
    total = 0
    for _ in range(2):
        total = _times(_times(value, 3) + total, 1)
    return total


@njit
def _by_numba_alone(value):
    return _polynomial(value) + 1


def test_numbers_written_in_calls_need_no_forms_of_their_own() -> None:
    assert _polynomial(5) == 30
    assert not [args for args in _times.inner_forms if "Literal" in str(args)]


def test_kernels_are_called_by_what_numba_alone_compiles() -> None:
    assert _by_numba_alone(5.0) == 31.0


@jit.njit
def _middle(values):
    middle = 0
    for factor in range(4):
        middle += np.sort(_twice(values) * factor)[values.size // 2]
    return middle + _twice(values)[0]


def test_only_the_entry_and_its_wrapper_are_seen_from_outside() -> None:
    """Or LLVM would have to keep what an inner function is called with: all words of all arrays of its callers."""
    assert _middle(np.arange(4)) == 24
    (entry,) = _middle.overloads.values()
    module = parse_assembly(_middle.inspect_llvm(entry.signature.args))
    seen = [one.name for one in module.functions if not one.is_declaration and one.linkage not in INSIDE]
    others = {name for name in seen if not name.startswith("NRT_")}  # of Numba, which count references
    assert others == {entry.fndesc.llvm_func_name, entry.fndesc.llvm_cpython_wrapper_name}


@pytest.mark.parametrize("asked", ["getbuffer", "notify"])
def test_ctrl_c_is_not_lost_while_machine_code_is_made(asked: str) -> None:
    """Python notices it where LLVM asks for kept code, or hands over what it has made."""

    def interrupt(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name.endswith(f"object_cache_{asked}"):
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    kernel = jit.njit(lambda values: values.sum() * 2)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts behind it
    sys.setprofile(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            kernel(np.arange(4))
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGINT, handler)
    assert kernel(np.arange(4)) == 12


def test_a_mistake_in_a_kernel_is_told() -> None:
    with pytest.raises(TypingError, match="no_such_thing"):
        _wrong(np.arange(3))


PATIENT = """
import numpy as np
from trellis.kernels import jit

assert jit.PATIENCE <= 1.0
jit.PATIENCE = 0.01

@jit.njit
def total(values):
    found = values[0]
    for value in values:
        found += value
    return found

total(np.ones(3))
total(np.ones(3, np.int64))
"""


def test_what_takes_long_is_told_once() -> None:
    done = subprocess.run([sys.executable, "-c", PATIENT], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == "Trellis: compiling, first time only.\n"


def test_it_is_never_told_among_the_results() -> None:
    closed = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", PATIENT]
    assert subprocess.run(closed, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout == b""


def test_cases_are_queries_of_all_kinds() -> None:
    assert len({case.query for case in CASES}) == len(CASES)
    run(CASES[0])
