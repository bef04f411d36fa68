"""The rules of the house: who may import whom, what a bare import costs, and that every file says what it is."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "trellis"
FILES = sorted(SOURCE.rglob("*.py"))

# What each room may import of the others; errors is open to all but the kernels, a room always to itself.
BELOW: dict[str, set[str]] = {
    "kernels": set(),
    "language": set(),
    "plan": {"language"},
    "events": {"kernels", "language", "plan"},
}
BELOW["io"] = {*BELOW["events"], "events"}
BELOW["operators"] = {*BELOW["events"], "events", "algorithms"}
BELOW["algorithms"] = {*BELOW["operators"], "operators"} - {"algorithms"}
BELOW["results"] = {*BELOW["operators"], "operators"}
for room in ("graphs", "archive"):
    BELOW[room] = {*BELOW["events"], "events", "io"}
BELOW["local"] = {*BELOW["results"], "results", "io"}
BELOW["streams"] = {*BELOW["local"], "local", "graphs", "archive"}
BELOW["spark"] = {*BELOW["streams"], "streams"}
BELOW["report"] = {*BELOW["spark"], "spark"}
BELOW["cli"] = {*BELOW["report"], "report"}

WITHOUT_DATA = {"numpy", "pyarrow", "pyspark", "numba", "pandas", "polars"}
THE_BARE_IMPORT_LEAVES_OUT = ("pyspark", "numba", "plotly", "matplotlib", "pandas")


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, anywhere in it: in functions and for type checkers too."""
    package = name_of(path) if path.name == "__init__.py" else name_of(path).rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) + 1 - node.level]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            inner = {f"{module}.{alias.name}" for alias in node.names}
            found |= (inner & MODULES.keys()) or {module}
    return found


def room_of(module: str) -> str | None:
    """The room that a module lies in; None for the modules at the top and for everything that is not ours."""
    parts = module.split(".")
    return parts[1] if parts[0] == "trellis" and len(parts) > 1 and (SOURCE / parts[1]).is_dir() else None


# The public API leads everywhere, each engine only when it is asked for; who imports it is looked at by itself.
PUBLIC = {"trellis", "trellis.pipelines", "trellis.queries", "trellis.run"}


def reached_rooms(path: Path) -> set[str]:
    """The rooms that a file imports, itself or by way of the modules at the top (`trellis.limits`, ...)."""
    rooms: set[str] = set()
    seen: set[str] = set()
    queue = list(imports_of(path))
    while queue:
        module = queue.pop()
        if module in seen or module.split(".")[0] != "trellis":
            continue
        seen.add(module)
        room = room_of(module)
        if room is not None:
            rooms.add(room)
        elif module in MODULES and module not in PUBLIC:
            queue += imports_of(MODULES[module])
    return rooms


def of_room(*rooms: str) -> list[Path]:
    return [path for path in FILES if room_of(name_of(path)) in rooms]


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def outside(path: Path) -> set[str]:
    """The third-party packages that a file imports."""
    roots = {module.split(".")[0] for module in imports_of(path)}
    return roots - {"trellis"} - set(sys.stdlib_module_names)


def test_every_room_is_known() -> None:
    rooms = {room_of(name_of(path)) for path in FILES} - {None}
    assert rooms <= BELOW.keys(), "a new room: say in BELOW what it may import"


@pytest.mark.parametrize("room", sorted(BELOW))
def test_imports_point_one_way(room: str) -> None:
    for path in of_room(room):
        wrong = reached_rooms(path) - BELOW[room] - {room}
        assert not wrong, f"{shown(path)} imports {sorted(wrong)}; {room} may import {sorted(BELOW[room])}"


def test_language_and_plan_know_no_data() -> None:
    for path in of_room("language", "plan"):
        assert not outside(path) & WITHOUT_DATA, f"{shown(path)} imports {sorted(outside(path) & WITHOUT_DATA)}"


def test_only_spark_imports_pyspark() -> None:
    for path in FILES:
        if room_of(name_of(path)) != "spark":
            assert not outside(path) & {"pyspark", "py4j"}, f"{shown(path)} imports pyspark"


def test_kernels_import_only_numpy_numba_and_kernels() -> None:
    for path in of_room("kernels"):
        ours = {module for module in imports_of(path) if module.startswith("trellis")}
        assert outside(path) <= {"numpy", "numba"}, f"{shown(path)} imports {sorted(outside(path))}"
        assert all(room_of(module) == "kernels" for module in ours), f"{shown(path)} imports {sorted(ours)}"


def test_the_rooms_below_the_engines_do_not_import_the_public_api() -> None:
    for path in of_room(*BELOW.keys() - {"spark", "report", "cli"}):
        assert not imports_of(path) & PUBLIC, f"{shown(path)} imports the public API"


def test_nothing_imports_the_tests() -> None:
    for path in FILES:
        assert not outside(path) & {"tests", "conftest", "pytest", "hypothesis"}, shown(path)


# --- The bare import --------------------------------------------------------------------------------------------


def fresh(code: str) -> Iterator[str]:
    """Run code in a new interpreter, three times, and yield what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTHON"))}
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        yield done.stdout


MODULES_AFTER = "import sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"


@pytest.mark.parametrize("code", ["import trellis", "import trellis; trellis.query('PATTERN E+ s[]').explain()"])
def test_the_bare_import_is_light(code: str) -> None:
    loaded = set(next(fresh(f"{code}; {MODULES_AFTER}")).split())
    assert not loaded & set(THE_BARE_IMPORT_LEAVES_OUT)


def test_the_bare_import_is_quick() -> None:
    timed = "import time; t = time.perf_counter(); import trellis; print(time.perf_counter() - t)"
    assert min(map(float, fresh(timed))) < 0.5


# --- Every file says what it is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_the_first_line_says_what_the_file_is(path: Path) -> None:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    assert first.startswith('"""'), "the first line is a docstring"
    assert len(first.strip('" ')) > 10, "the docstring says something on its first line"


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_what_is_public_has_a_docstring(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    public = [node for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]
    assert not [node.name for node in public if ast.get_docstring(node) is None]
