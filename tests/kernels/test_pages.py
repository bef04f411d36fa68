"""Each package of kernels has a page, and what kernels take is named there or in their own docstrings."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import trellis.kernels

ROOT = Path(trellis.kernels.__file__).parent
PACKAGES = sorted(
    path.parent for path in ROOT.rglob("__init__.py") if path.parent != ROOT and path.parent.name != "papers"
)
MANY = 5  # parameters, beyond which a kernel says what they are
RETIRED = ["world", "stretch", "strand", "lane", "halves", "traveller", "ground", "network"]


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def page(path: Path) -> str:
    return ast.get_docstring(ast.parse((path / "__init__.py").read_text(encoding="utf-8"))) or ""


@pytest.mark.parametrize("package", PACKAGES, ids=shown)
def test_the_page_names_arrays_invariants_cost_source_and_docs(package: Path) -> None:
    text = page(package)
    for word in ("Arrays", "Invariants", "Cost", "Source"):
        assert word in text, f"the page of {shown(package)} says nothing of {word.lower()}"
    assert re.search(r"\b(?:u?int(?:8|32|64)|float64|bool)\b", text), "types of arrays"
    linked = re.findall(r"docs/[\w-]+\.md", text)
    assert linked
    assert all((ROOT.parents[2] / link).exists() for link in linked)


@pytest.mark.parametrize("path", sorted(set(ROOT.rglob("*.py")) - set(ROOT.rglob("__init__.py"))), ids=shown)
def test_parameters_of_kernels_with_many_are_named(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    around = (ast.get_docstring(tree) or "") + page(path.parent) + page(ROOT)
    missing = []
    for kernel in [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list]:
        names = [argument.arg for argument in kernel.args.args]
        if len(names) > MANY and not kernel.name.startswith("_"):
            words = set(re.findall(r"\w+", around + (ast.get_docstring(kernel) or "")))
            missing += [f"{kernel.name}: {name}" for name in names if name not in words]
    assert not missing


TYPE_AND_SHAPE = re.compile(r"\b(?:u?int(?:8|16|32|64)|float64|bool)\b.*\(.*\)", re.DOTALL)


def entries(docstring: str) -> dict[str, str]:
    """What the entries of a docstring, `name, other : what` or `name` with lines below it, say of each name."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in docstring.splitlines():
        heading = re.fullmatch(r"(\w+(?:, \w+)*)(?: : (.+))?", line)
        if heading:
            names = heading[1].split(", ")
        for name in names:
            found[name] = f"{found.get(name, '')} {line}"
        names = names if heading or line.startswith(" ") else []
    return found


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=shown)
def test_arrays_of_named_tuples_have_types_and_shapes(path: Path) -> None:
    """In the docstring's entry of a field, or in a comment behind it: `lo: np.ndarray  # int64 (tasks,)`."""
    text = path.read_text(encoding="utf-8")
    missing = []
    for tuple_ in [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]:
        said = entries(ast.get_docstring(tuple_) or "")
        for field in tuple_.body:
            if isinstance(field, ast.AnnAssign) and "ndarray" in ast.unparse(field.annotation):
                name, comment = ast.unparse(field.target), text.splitlines()[field.lineno - 1].partition("#")[2]
                if not any(TYPE_AND_SHAPE.search(one) for one in (comment, said.get(name, ""))):
                    missing.append(f"{tuple_.name}.{name}")
    assert not missing


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=shown)
def test_docstrings_say_what_a_thing_is_in_the_words_of_the_glossary(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert '"""What' not in text
    assert not [word for word in RETIRED if re.search(rf"\b{word}(s|es)?\b", text, re.IGNORECASE)]
