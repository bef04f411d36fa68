"""What this machine has compiled: used as long as it is what it should be, by whoever has the same sources."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.kernels import cache, jit

ROOT = Path(__file__).parents[2]
SOURCE = "def kept_for_test(values):\n    return values.sum() * 3\n"


class Kept:
    """A function in a file of its own, and its kernels as any process would make them."""

    def __init__(self, directory: Path) -> None:
        file = directory / f"kept_{directory.name}.py"
        file.write_text(SOURCE)
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.name, self.function = file.stem, module.kept_for_test
        self.place = Path(self.fresh().stats.cache_path)

    def fresh(self) -> Any:
        """Return a kernel that has loaded and compiled nothing yet."""
        return jit.njit(self.function, cache=True)

    def was_loaded(self, kind: type = np.int64) -> bool:
        """Ask a fresh kernel, whose answer has to be right; return whether it was compiled before."""
        kernel = self.fresh()
        assert kernel(np.arange(4, dtype=kind)) == 18
        hits, misses = sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values())
        assert hits + misses == 1
        return hits == 1

    def files(self) -> list[Path]:
        return sorted(self.place.glob(f"{self.name}.*"))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def content(kept: Kept) -> bytes:
    """What is kept of the kernel for integers."""
    for file in kept.files():
        file.unlink()
    assert not kept.was_loaded()
    assert kept.was_loaded()
    (file,) = kept.files()
    return file.read_bytes()


def test_times_of_files_say_nothing(kept: Kept, content: bytes) -> None:
    (file,) = kept.files()
    for changed in (0, 2**33):
        os.utime(file, (changed, changed))
        os.utime(kept.function.__code__.co_filename, (changed, changed))
        assert kept.was_loaded()


@given(place=st.integers(0, 2**20), bit=st.integers(0, 7), cut=st.booleans())
def test_a_damaged_file_is_compiled_and_kept_anew(kept: Kept, content: bytes, place: int, bit: int, cut: bool) -> None:
    (file,) = kept.files()
    place %= len(content)
    flipped = content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]
    file.write_bytes(content[:place] if cut else flipped)
    assert not kept.was_loaded()
    assert kept.was_loaded()


def test_a_file_of_something_else_is_not_believed(kept: Kept, content: bytes, tmp_path: Path) -> None:
    """As one is left behind whose writer was killed between the list of its files and the file itself."""
    (file,) = kept.files()
    assert not kept.was_loaded(np.float64)
    (other,) = set(kept.files()) - {file}
    for planted in (other.read_bytes(), pickle.dumps((1, 2)), content[32:], b"\0" * len(content)):
        file.write_bytes(planted)
        assert not kept.was_loaded()
    mark = tmp_path / "mark"
    file.write_bytes(content[:32] + pickle.dumps(Evil(mark)))
    assert not kept.was_loaded()
    assert not mark.exists()
    other.unlink()
    file.unlink()
    file.mkdir()
    assert not kept.was_loaded()
    file.rmdir()
    assert not kept.was_loaded()


class Evil:
    """Leaves a directory behind when it is read as a pickle."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.mark),)


def test_old_forms_are_removed_when_another_is_kept(kept: Kept, content: bytes) -> None:
    (file,) = kept.files()
    month = time.time() - 31 * 24 * 3600
    os.utime(file, (month, month))
    assert kept.was_loaded()
    assert not kept.was_loaded(np.float32)
    (other,) = kept.files()
    assert other != file
    other.unlink()
    assert not kept.was_loaded()


HOLDING = """
import sys
import importlib.util
from trellis.kernels.cache import KernelCache

spec = importlib.util.spec_from_file_location(*sys.argv[1:])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
with KernelCache(module.kept_for_test).turn():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_nobody_waits_for_ever_for_a_process_that_was_stopped(kept: Kept) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(kept.place)}
    command = [sys.executable, "-c", HOLDING, kept.name, kept.function.__code__.co_filename]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as holding:
        assert holding.stdout
        assert holding.stdout.readline() == b"held\n"
        begin = time.monotonic()
        with cache.KernelCache(kept.function, patience=0.3).turn():
            assert time.monotonic() - begin >= 0.3, "they compile one after another"
    with cache.KernelCache(kept.function).turn():
        assert time.monotonic() - begin < 20


# --- Other processes --------------------------------------------------------------------------------------------

ANSWERS = """
import json
import os
import resource
import sys
import numpy as np
from numba.core import config
from numba.core.registry import cpu_target

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
sys.dont_write_bytecode = True
for line in sys.stdin:
    package, full, variables = json.loads(line)
    if os.fork():
        print(os.wait()[1], flush=True)
        continue
    os.environ.update(variables)
    config.reload_config()
    sys.path.insert(0, package)
    if full:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    from trellis.caches import compiled_directory
    from trellis.kernels.mine import outer
    answer = outer(np.arange(4)), *outer.stats.cache_hits.values(), "/", *outer.stats.cache_misses.values()
    print(json.dumps([" ".join(map(str, answer)), str(compiled_directory())]), flush=True)
    sys.exit()
"""
"""A process that has imported Numba with all that it declares, and answers each question in a process of its own."""

MINE = """from trellis.kernels.helped import FACTOR, helped
from trellis.kernels.jit import njit


@njit(cache=True)
def outer(values):
    return helped(values.sum()) * FACTOR + 1
"""
HELPED = """from trellis.kernels.jit import njit

FACTOR = 3


@njit
def helped(value):
    return value + 1
"""


class Package:
    """A copy of the package, bytecode included, without what ships, and with a kernel more."""

    def __init__(self, directory: Path) -> None:
        here = Path(jit.__file__).parents[1]
        left_out = shutil.ignore_patterns("code")
        self.path = Path(shutil.copytree(here, directory / "trellis", ignore=left_out))
        self.mine, self.helped = (self.path / "kernels" / f"{name}.py" for name in ("mine", "helped"))
        self.code = self.path / "compiled" / "code"
        self.mine.write_text(MINE)
        self.helped.write_text(HELPED)

        env = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHONPATH"))}
        pipe = subprocess.PIPE
        self.answers = subprocess.Popen(
            [sys.executable, "-c", ANSWERS], env=env, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True
        )

    def ask(self, kept: Path, full: bool = False, **variables: str) -> str:
        """Return the answer of a fresh process, which says nothing amiss, and its hits and misses."""
        return self.ask_where(kept, full, **variables)[0]

    def ask_where(self, kept: Path, full: bool = False, **variables: str) -> tuple[str, Path]:
        """Return the answer, and where what was compiled is kept."""
        variables = {"NUMBA_CACHE_DIR": str(kept)} | variables
        print(json.dumps([str(self.path.parent), full, variables]), file=self.answers.stdin, flush=True)
        answer, place = json.loads(self._line())
        assert self._line() == "0"
        return answer, Path(place)

    def _line(self) -> str:
        """Return what is said next, but for the sentence that a slow machine adds."""
        assert self.answers.stdout
        line = self.answers.stdout.readline().strip()
        return self._line() if line == "Trellis: compiling, first time only." else line

    def close(self) -> None:
        self.answers.communicate()


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Package]:
    with closing(Package(tmp_path_factory.mktemp("package"))) as package:
        yield package


def test_one_character_of_a_kernel_a_helper_or_a_constant_counts(package: Package, tmp_path: Path) -> None:
    assert package.ask(tmp_path) == "22 / 1"
    package.mine.write_text(MINE.replace("+ 1", "+ 2"))
    assert package.ask(tmp_path) == "23 / 1"
    package.mine.write_text(MINE)
    package.helped.write_text(HELPED.replace("value + 1", "value + 2"))
    assert package.ask(tmp_path) == "25 / 1"
    package.helped.write_text(HELPED.replace("3", "4"))
    assert package.ask(tmp_path) == "29 / 1"
    package.helped.write_text(HELPED)
    elsewhere = package.path.parent.rename(package.path.parent.with_name("moved"))
    package.path = elsewhere / "trellis"
    assert package.ask(tmp_path) == "22 1 /", "the same sources at another place"


def test_what_was_asked_of_numba_is_told_apart(package: Package, tmp_path: Path) -> None:
    """Checks of bounds would be gone, or a processor asked to do what it cannot."""
    assert package.ask(tmp_path) == "22 / 1"
    for variables in (
        {"NUMBA_OPT": "1"},
        {"NUMBA_BOUNDSCHECK": "1"},
        {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
    ):
        assert package.ask(tmp_path, **variables) == "22 / 1"
    assert package.ask(tmp_path) == "22 1 /"


def test_a_process_that_is_told_the_place_finds_it_there(package: Package, tmp_path: Path) -> None:
    """As Spark's workers are, wherever their Trellis lies, while the package can be written."""
    nowhere_named = {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": str(tmp_path)}
    answer, place = package.ask_where(tmp_path, **nowhere_named)
    assert answer == "22 / 1"
    assert package.ask(place, XDG_CACHE_HOME="/dev/null") == "22 1 /"


def test_where_nothing_can_be_kept_the_answer_is_right(package: Package, tmp_path: Path) -> None:
    assert package.ask(tmp_path / "full", full=True) == "22 / 1"
    assert not list((tmp_path / "full").glob("*.nbc"))
    assert package.ask(tmp_path / "full") == "22 / 1"
    assert package.ask(Path("/dev/null"), HOME="/dev/null", XDG_CACHE_HOME="/dev/null", TMPDIR="/dev/null") == "22 / 1"


CASES = """import numpy as np
from trellis.kernels.mine import outer


def steps():
    return [("integers", lambda: outer(np.arange(4))), ("floats", lambda: outer(np.ones(4)))]
"""


@pytest.fixture
def building(tmp_path: Path) -> Iterator[Package]:
    """A package that has two forms of one kernel to ship."""
    with closing(Package(tmp_path)) as package:
        (package.path / "compiled" / "cases.py").write_text(CASES)
        yield package


def build(package: Package, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-B", "-m", "trellis.compiled", "build"]
    env = os.environ | {"PYTHONPATH": str(package.path.parent)}
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True, **options)


def said(process: subprocess.Popen[str]) -> str:
    """Wait for a process that is to succeed, and return its words."""
    text = process.communicate(timeout=100)[1]
    assert process.returncode == 0, text
    return text


def test_builds_wait_for_each_other_and_one_that_was_killed_leaves_nothing(building: Package, tmp_path: Path) -> None:
    first = build(building)
    assert first.stderr
    assert "Compiling" in first.stderr.readline()
    first.kill()
    first.communicate()
    assert building.code.is_dir()
    (building.code / "cpython-310-of-older-sources").mkdir()  # which would go into the wheel, and help nobody
    found = sorted([said(one) for one in [build(building), build(building)]], key=len)
    assert "Compiled in" in found[1]
    assert "Compiled in" not in found[0], "the second one finds all there"
    (made,) = building.code.iterdir()
    assert made.name == cache.versions()
    assert len(list(made.glob("mine.outer.*.nbc"))) == 2
    assert said(build(building)) == ""
    if cache.can_run_shipped():
        assert building.ask(tmp_path / "kept") == "22 1 /"
        assert not list((tmp_path / "kept").glob("*.nbc")), "that ships"
        building.helped.write_text(HELPED.replace("3", "4"))
        assert building.ask(tmp_path / "kept") == "29 / 1"


def test_a_build_that_cannot_write_says_so(building: Package) -> None:
    building.code.touch()
    refused = build(building)
    text = refused.communicate(timeout=100)[1]
    assert refused.returncode == 1
    assert text.startswith("Nothing was compiled for ")
    assert "Traceback" not in text


def test_kernels_import_only_what_a_stamp_covers() -> None:
    """Namely `from trellis.kernels... import ...` at the beginning of a line."""
    for file in sorted(cache.KERNELS.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert not [one.name for one in node.names if one.name.startswith("trellis")], file
            if isinstance(node, ast.ImportFrom) and (node.level or str(node.module).startswith("trellis")):
                covered = node.col_offset == node.level == 0 and str(node.module).startswith("trellis.kernels")
                assert covered or file.name == "cache.py", f"{file}: {ast.unparse(node)}"
