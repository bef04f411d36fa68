"""The rules of the house: who may import whom, what a bare import costs, and that every file says what it is."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from graphlib import TopologicalSorter
from inspect import signature
from pathlib import Path

import pytest
from hypothesis import settings

from tests.test_words import tree_of

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "trellis"
FILES = sorted(SOURCE.rglob("*.py"))

# The rooms of the house and the modules at the top, from the ground up: each imports only what stands before it.
LAYERS = (
    "errors", "digits", "providers", "properties", "caches", "memory", "arguments", "kernels", "language", "limits",
    "plan", "methods", "events", "operators", "papers", "make", "results", "io", "graphs", "archive", "streams",
    "engines", "api", "features", "report", "trellis", "pandas", "polars", "spark", "compiled", "cli", "__main__",
)  # fmt: skip

WITHOUT_DATA = {"numpy", "pyarrow", "pyspark", "numba", "pandas", "polars"}
THE_BARE_IMPORT_LEAVES_OUT = ("pyspark", "numba", "plotly", "matplotlib", "pandas")


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Every module that a file imports, anywhere in it: in functions, for type checkers, relative, or named in text."""
    return frozenset(imported_by(tree_of(path), path))


def imported_by(tree: ast.Module, path: Path) -> set[str]:
    """Every module that code imports which stands at a path."""
    package = name_of(path) if path.name == "__init__.py" else name_of(path).rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) + 1 - node.level]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            inner = {f"{module}.{alias.name}" for alias in node.names}
            found |= (inner & MODULES.keys()) or {module}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= _named_in(node.value)
    return found


def _named_in(text: str) -> set[str]:
    """The module that a text is the name of, or, as the beginning of a longer one, the package that it begins with."""
    return {text.rstrip(".")} & (MODULES.keys() - {"trellis"})


def room_of(module: str) -> str | None:
    """The room that a module lies in, a module at the top by its own name; None for everything that is not ours."""
    parts = module.split(".")
    return None if parts[0] != "trellis" else parts[1] if len(parts) > 1 else "trellis"


def rooms_imported(path: Path) -> set[str]:
    """The rooms that a file imports."""
    return {room for module in imports_of(path) if (room := room_of(module)) is not None}


def of_room(*rooms: str) -> list[Path]:
    return [path for path in FILES if room_of(name_of(path)) in rooms]


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def outside(path: Path) -> set[str]:
    """The third-party packages that a file imports."""
    roots = {module.split(".")[0] for module in imports_of(path)}
    return roots - {"trellis"} - set(sys.stdlib_module_names)


def test_every_room_is_known() -> None:
    assert {room_of(name_of(path)) for path in FILES} <= {*LAYERS}, "a new room: say in LAYERS where it stands"


@pytest.mark.parametrize("room", LAYERS)
def test_imports_point_one_way(room: str) -> None:
    below = {*LAYERS[: LAYERS.index(room)], room}
    for path in of_room(room):
        wrong = rooms_imported(path) - below
        assert not wrong, f"{shown(path)} imports {sorted(wrong)}, above it"


def test_packages_of_a_room_import_one_another_one_way() -> None:
    """The packages in rooms have an order, too: `session` before `sources` before `split` before `batch` on Spark."""
    packages = {name for name, path in MODULES.items() if path.name == "__init__.py" and name.count(".") > 1}
    graph: dict[str, set[str]] = {package: set() for package in packages}
    for path in FILES:
        own = name_of(path.parent / "__init__.py")
        if own in packages:
            homes = {module if module in packages else module.rpartition(".")[0] for module in imports_of(path)}
            graph[own] |= {home for home in homes & packages if home != own and not own.startswith(f"{home}.")}
    TopologicalSorter(graph).prepare()  # raises CycleError, with the packages of the cycle


def test_modules_import_one_another_one_way() -> None:
    """No modules import one another in a circle, packages by what their `__init__` imports; late imports count."""
    graph = {}
    for name, path in MODULES.items():
        found = imports_of(path) & MODULES.keys()
        above = {".".join(one.split(".")[:end]) for one in found for end in range(2, one.count(".") + 1)}
        graph[name] = {
            one for one in found | above if one != name and (one in found or not f"{name}.".startswith(f"{one}."))
        }
    TopologicalSorter(graph).prepare()  # raises CycleError, with the modules of the cycle


def test_late_imports_and_names_in_text_count() -> None:
    """The test of layers sees what hides: an import in a function, for type checkers, and a module named in text."""
    for line in (
        "def f():\n    from trellis.cli import main\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import trellis.cli.main\n",
        "import importlib\nimportlib.import_module('trellis.cli.main')\n",
        "import importlib\nname = 'main'\nimportlib.import_module(f'trellis.cli.{name}')\n",
    ):
        file = SOURCE / "kernels" / "not_there.py"
        assert "cli" in {room_of(module) for module in imported_by(ast.parse(line), file)}, line


def test_language_and_plan_know_no_data() -> None:
    for path in of_room("language", "plan"):
        assert not outside(path) & WITHOUT_DATA, f"{shown(path)} imports {sorted(outside(path) & WITHOUT_DATA)}"


def test_only_spark_imports_pyspark() -> None:
    for path in FILES:
        if not name_of(path).startswith("trellis.engines.spark"):
            assert not outside(path) & {"pyspark", "py4j"}, f"{shown(path)} imports pyspark"


def test_kernels_import_only_numpy_numba_and_kernels() -> None:
    for path in of_room("kernels"):
        ours = {module for module in imports_of(path) if module.startswith("trellis")}
        if path == SOURCE / "kernels" / "cache.py":
            ours -= {"trellis.caches"}  # where they are kept
        compilers = {"numba", "llvmlite"} if path.name in ("cache.py", "jit.py") else {"numba"}
        assert outside(path) <= {"numpy"} | compilers, f"{shown(path)} imports {sorted(outside(path))}"
        assert all(room_of(module) == "kernels" for module in ours), f"{shown(path)} imports {sorted(ours)}"


def test_no_product_of_arrays_wakes_the_threads_of_a_library() -> None:
    """OpenBLAS keeps a core busy for tens of milliseconds after each: as long as a count of 100,000 events takes."""
    products = {"dot", "vdot", "inner", "matmul", "tensordot", "einsum", "linalg", "convolve", "correlate"}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = isinstance(node, ast.Attribute) and node.attr in products and ast.unparse(node.value) == "np"
            is_product = named or isinstance(getattr(node, "op", None), ast.MatMult)
            assert not is_product, f"{path}: {ast.unparse(node)}"


def test_kernels_are_compiled_by_our_decorator() -> None:
    for path in of_room("kernels"):
        found = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("from numba import")]
        assert not any("jit" in line for line in found), f"{shown(path)}: njit comes from trellis.kernels.jit"


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
    timed = "import time; t = time.process_time(); import trellis; print(time.process_time() - t)"
    assert min(map(float, fresh(timed))) < 0.5


# --- Every file says what it is ---------------------------------------------------------------------------------


def test_the_first_line_says_what_the_file_is() -> None:
    first = {shown(path): path.read_text(encoding="utf-8").partition("\n")[0] for path in FILES}
    assert not [name for name, line in first.items() if not line.startswith('"""')], "the first line is a docstring"
    assert not [name for name, line in first.items() if len(line.strip('" ')) <= 10], "it says something on that line"


def test_what_is_public_has_a_docstring() -> None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    definitions = [(path, node) for path in FILES for node in tree_of(path).body if isinstance(node, kinds)]
    public = [(path, node) for path, node in definitions if not node.name.startswith("_")]
    assert not [f"{shown(path)}: {node.name}" for path, node in public if ast.get_docstring(node) is None]


# --- Few parameters ---------------------------------------------------------------------------------------------

MOST_PARAMETERS = 8
# Those outside of kernels that take more: what users and Spark call by names, and three that pass arrays to kernels.
MORE_PARAMETERS = {
    "Archive.build", "Archive.find", "Counter.__init__", "DetectTable.analyze", "GraphStream.__init__",
    "LineStream.__init__", "Pipeline.stream", "Query.detect", "Query.detect_stream", "Splitter.by_predicates",
    "_Layout._one_large", "build", "communities", "index_adjacency", "kite", "read_stream", "settle",
}  # fmt: skip


def functions_of(node: ast.AST, owner: str = "") -> Iterator[tuple[str, int]]:
    """The functions in a syntax tree by name, with the number of their parameters besides `self` and `cls`."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.ClassDef):
            yield from functions_of(inner, f"{inner.name}.")
        elif isinstance(inner, ast.FunctionDef):
            taken = [*inner.args.posonlyargs, *inner.args.args, *inner.args.kwonlyargs]
            taken += [one for one in (inner.args.vararg, inner.args.kwarg) if one is not None]
            yield f"{owner}{inner.name}", len([one for one in taken if one.arg not in ("self", "cls")])
        else:
            yield from functions_of(inner, owner)


def test_functions_of_many_parameters_are_few() -> None:
    """A function outside of kernels takes at most eight parameters, or stands in the list above."""
    paths = [path for path in FILES if room_of(name_of(path)) != "kernels"]
    many = {name for path in paths for name, number in functions_of(tree_of(path)) if number > MOST_PARAMETERS}
    assert many - MORE_PARAMETERS == set()


# --- Options, plans and objects ---------------------------------------------------------------------------------

# Those that users call: `Query`, its table function in SQL, and the transformer of features; events have four of them.
DECLARE_OPTIONS = {
    "Query.detect", "Query.prepare", "Query.detect_stream", "Query.arrivals", "DetectTable.analyze",
    "TrendFeatures.__init__", "schema_of",
}  # fmt: skip


def parameters_of(node: ast.AST, owner: str = "") -> Iterator[tuple[str, set[str]]]:
    """The functions in a syntax tree by name, with the names of their parameters."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.ClassDef):
            yield from parameters_of(inner, f"{inner.name}.")
        elif isinstance(inner, ast.FunctionDef):
            yield f"{owner}{inner.name}", {one.arg for one in [*inner.args.args, *inner.args.kwonlyargs]}
        else:
            yield from parameters_of(inner, owner)


def test_options_are_declared_once() -> None:
    """The options of a run are fields of `RunOptions`; what is not called by users takes them as one."""
    from trellis.api.query import Query
    from trellis.engines.options import RunOptions
    from trellis.methods import Methods

    options = {field.name for field in fields(RunOptions)} - {"methods"}
    paths = [path for path in FILES if room_of(name_of(path)) != "cli"]
    found = {name for path in paths for name, own in parameters_of(tree_of(path)) if len(own & options) >= 4}
    assert found == DECLARE_OPTIONS
    taken = set(signature(Query.detect).parameters)
    assert options - {"tie_breakers"} <= taken  # `time` may be followed by columns that break ties
    assert taken <= options | {field.name for field in fields(Methods)} | {
        "self",
        "data",
        "engine",
        "spark",
        "methods",
        "by_name",
    }


def test_results_of_both_engines_answer_alike() -> None:
    """Each engine has the methods of `Results` with the same parameters; what it has besides is of the engine alone."""
    pytest.importorskip("pyspark")
    from trellis.engines.local.results import LocalResults
    from trellis.engines.spark.batch.results import SparkResults
    from trellis.results.results import Results

    questions = {name for name in vars(Results) if not name.startswith("_") and callable(getattr(Results, name))}
    of_one = {"engine", "events", "operator", "source_table", "split_rows", "tasks"}
    for engine in (LocalResults, SparkResults):
        assert not engine.__abstractmethods__
        assert {name for name in dir(engine) if not name.startswith("_")} - set(dir(Results)) <= of_one
        for name in questions:
            wanted, own = signature(getattr(Results, name)), signature(getattr(engine, name))
            assert wanted.parameters == own.parameters, f"{engine.__name__}.{name}"


# What the plan derives of a query, which nothing derives again: `Plan` has it. An archive plans nothing.
DERIVING = {"relation_of", "fixed_sequence", "fixed_join", "is_one_kleene", "position_graph", "build_automaton"}


def test_nothing_is_derived_again_after_the_plan() -> None:
    for path in FILES:
        if room_of(name_of(path)) != "plan":
            names = {node.id for node in ast.walk(tree_of(path)) if isinstance(node, ast.Name)}
            again = names & DERIVING - ({"build_automaton"} if room_of(name_of(path)) == "archive" else set())
            assert not again, f"{shown(path)} derives {sorted(again)} again: the plan has it"


def test_nothing_writes_into_the_attributes_of_another_object() -> None:
    """`__dict__` and `vars()` are written to by their owner alone, and by properties that are kept there.

    An error is built again from its pickle.
    """
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                written, _, method = ast.unparse(node.func).rpartition(".")
                if method in ("update", "pop", "setdefault") and ("__dict__" in written or "vars(" in written):
                    own = written in ("self.__dict__", "vars(self)")
                    assert own or shown(path) == "src/trellis/errors.py", f"{shown(path)}: {written}"
            if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                kept = shown(path) == "src/trellis/properties.py"
                assert kept or "__dict__" not in ast.unparse(node.value), f"{shown(path)}: {ast.unparse(node)}"


# What can be taken and joined in operators, besides results: one column of numbers each, nothing ragged.
COLUMNS_OF_NUMBERS = {"SumColumn", "WideNumbers"}


def test_one_ragged_batch_carries_results() -> None:
    """`PathBatch` is the one class of operators, papers and results that results are taken from and joined in."""
    found = {
        node.name
        for path in of_room("operators", "papers", "make", "results", "archive")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name in ("concat", "take", "pieces", "concatenate")
    }
    assert found == {"PathBatch"} | COLUMNS_OF_NUMBERS


# --- No dead code -----------------------------------------------------------------------------------------------

# What only users, tests of a whole, or benchmarks call.
CALLED_FROM_OUTSIDE = {
    "LargestClique", "LineStream", "WAYS", "largest_clique", "read_committed", "replace_files", "written_lines",
}  # fmt: skip


def test_what_a_module_defines_is_used() -> None:
    """Every function, class and constant at the top of a module is named somewhere in the package besides."""
    named: set[str] = set()
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                named.add(node.id)
            elif isinstance(node, ast.Attribute):
                named.add(node.attr)
            elif isinstance(node, ast.alias) and node.asname:
                named.add(node.name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                named |= set(re.findall(r"\w+", node.value)) if len(node.value) < 150 else set()
    unused = {
        f"{shown(path)}: {name}"
        for path in FILES
        for node in tree_of(path).body
        for name in _defined(node)
        if name not in named | CALLED_FROM_OUTSIDE and not name.startswith("__")
    }
    assert unused == set()


def _defined(node: ast.stmt) -> list[str]:
    """The names that a statement defines; what a decorator registers is used by that."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [] if any("overload" in (d := ast.unparse(one)) or "regist" in d or "lower" in d or "callable" in d
                         for one in node.decorator_list) else [node.name]  # fmt: skip
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


# --- Tests ------------------------------------------------------------------------------------------------------


def test_tests_have_a_folder_for_each_room() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert rooms <= {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}


def test_the_oracle_shares_nothing_but_the_syntax() -> None:
    """It reads the tree that the parser makes, and nothing else of the package: no automaton, no plan, no operator."""
    for path in sorted((ROOT / "tests" / "oracle").glob("*.py")):
        if not path.name.startswith("test_"):
            found = {line.split()[1] for line in path.read_text(encoding="utf-8").splitlines()
                     if re.match(r"\s*(?:from|import) trellis\b", line)}  # fmt: skip
            assert found <= {"trellis.language", "trellis.language.syntax"}, path.name


def test_random_tests_shrink_and_explore() -> None:
    """No test leaves out a phase of Hypothesis; `explore` takes fresh seeds, `ci` the same ones on every run."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        assert "phases" + "=" not in path.read_text(encoding="utf-8"), shown(path)
    assert settings.get_profile("ci").derandomize
    assert not settings.get_profile("explore").derandomize
