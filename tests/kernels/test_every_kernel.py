"""Each public kernel is compared with a naive version: the test lists what other rooms call, and what tests here do."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import trellis.kernels
from tests.kernels import test_compiled_patterns, test_debs2016
from trellis.operators.joins.best import BestMatches
from trellis.operators.joins.counting import JoinCounter
from trellis.operators.joins.structure import JoinStructure
from trellis.operators.patterns import best, pivot_counts
from trellis.operators.patterns.explore import Exploration
from trellis.operators.patterns.lazily import FirstResults
from trellis.papers.debs2016 import Communities, Posts

ROOT = Path(trellis.kernels.__file__).parent
SOURCE = ROOT.parent
COMPILED = ("njit", "lean", "counted")  # decorators that compile
Kernel = tuple[str, str]  # module and name

# Kernels that take the tables of a compiled pattern: `test_compiled_patterns` asks the plain classes, or the module,
# that make these.
BY_TABLES = {
    "best_matches": BestMatches,
    "best_of_pivots": best,
    "best_values": best,
    "bound_tasks": BestMatches,
    "count_beside": Exploration,
    "count_groups": Exploration,
    "count_join": JoinCounter,
    "count_of_pivots": pivot_counts,
    "explore_groups": Exploration,
    "list_matches": JoinStructure,
    "paths_of": best,
    "ranks_of": best,
    "report_groups": Exploration,
    "walk_groups": FirstResults,
}
# Those that are a whole query of the DEBS 2016 challenge: `test_debs2016` asks the classes that make their state.
WHOLE_QUERIES = {"run_posts": Posts, "run_communities": Communities}


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def kernels_of(path: Path) -> Iterator[str]:
    """The names of the functions of a file that are compiled."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            decorators = [ast.unparse(decorator).partition("(")[0] for decorator in node.decorator_list]
            if any(decorator in COMPILED for decorator in decorators):
                yield node.name


# Loops that halve a range and are not a search in rising values: among numbers of several limbs, and by time.
HALVING = {"unrank/by_index.py", "count/pairs.py", "maximal/bisection.py"}

KERNELS = {(module, name) for module, path in MODULES.items() for name in kernels_of(path)}


def asked_in(path: Path) -> set[Kernel]:
    """The kernels that a file names, as members of a module or imported alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules: dict[str, str] = {}
    found: set[Kernel] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("trellis.kernels"):
            for alias in node.names:
                if f"{node.module}.{alias.name}" in MODULES:
                    modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                else:
                    found.add((node.module, alias.name))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            found.add((modules[node.value.id], node.attr))
    return found & KERNELS


def asked_in_all(paths: Iterable[Path]) -> set[Kernel]:
    return set().union(*map(asked_in, paths))


PUBLIC = asked_in_all(path for path in SOURCE.rglob("*.py") if ROOT not in path.parents)


def test_there_are_kernels() -> None:
    assert len(PUBLIC) > 150


def test_every_public_kernel_is_compared_with_a_naive_version() -> None:
    tested = asked_in_all(path for path in Path(__file__).parent.glob("test_*.py"))
    assert sorted(kernel for kernel in PUBLIC - tested if kernel[1] not in {*BY_TABLES, *WHOLE_QUERIES}) == []


@pytest.mark.parametrize("name", BY_TABLES)
def test_kernels_of_tables_are_asked_by_the_plain_classes_that_make_these(name: str) -> None:
    assert f"{name}(" in inspect.getsource(BY_TABLES[name])
    assert f"`{name}`" in inspect.getsource(test_compiled_patterns)


@pytest.mark.parametrize("name", WHOLE_QUERIES)
def test_kernels_of_whole_queries_are_asked_by_the_classes_that_make_their_state(name: str) -> None:
    assert f"{name}(" in inspect.getsource(WHOLE_QUERIES[name])
    assert f"`{name}`" in inspect.getsource(test_debs2016)


def test_there_is_one_binary_search() -> None:
    halving = {
        path.relative_to(ROOT).as_posix()
        for path in MODULES.values()
        if re.search(r"= \(\w+ \+ \w+\) (?:>> |// )(?:1|2|ONE)\b", path.read_text(encoding="utf-8"))
    }
    assert halving - HALVING == {"arrays.py"}


def test_there_is_one_count_of_bits() -> None:
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in MODULES.values()}
    counting = {name for name, text in texts.items() if re.search(r"0x5{8}|popcount|& \(\w+ - (?:ONE|1)\)\s*$", text)}
    assert counting == {"arrays.py"}
