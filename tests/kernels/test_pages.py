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


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=shown)
def test_docstrings_say_what_a_thing_is_in_the_words_of_the_glossary(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert '"""What' not in text
    assert not [word for word in RETIRED if re.search(rf"\b{word}(s|es)?\b", text, re.IGNORECASE)]
