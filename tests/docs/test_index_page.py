"""What docs/attribute-index.md says and draws is so: by the oracle, by the engine and by the index itself."""

from __future__ import annotations

import importlib.util
import re
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import trellis
from tests import oracle
from tests.docs.examples import Example, cells, examples, shown
from trellis.operators.trends.operator import TrendOperator
from trellis.plan.index_cost import COSTS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "attribute-index.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = examples(PAGE)
INDEX = re.compile(r"^```index\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COST = re.compile(r"^\| `(s\[i\][^`]*)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def drawing() -> ModuleType:
    """The module that draws the pictures."""
    spec = importlib.util.spec_from_file_location("draw", DOCS / "drawings" / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DRAW = drawing()


def section(example: Example) -> str:
    return example.section


def detected(example: Example) -> Any:
    return trellis.query(example.query).detect(pa.Table.from_pylist(example.tables), **example.options)


# --- The examples -----------------------------------------------------------------------------------------------


def test_there_are_examples() -> None:
    assert [example.section for example in EXAMPLES] == [
        "The example", "Counting", "A rank is an address", "Maximal trends",
    ]  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES, ids=section)
def test_examples_give_what_is_shown(example: Example) -> None:
    names, wanted = example.wanted
    answer = oracle.run(trellis.query(example.query).syntax, example.tables, **example.options)
    for rows in (detected(example).to_arrow().to_pylist(), answer.aggregates or answer.rows):
        assert [[shown(row[name]) for name in names] for row in rows] == wanted


# --- The index --------------------------------------------------------------------------------------------------


def test_the_table_of_the_index_is_the_index() -> None:
    (table,) = INDEX.findall(TEXT)
    header, *lines = table.strip().splitlines()
    rows = [dict(zip(cells(header), cells(line), strict=True)) for line in lines]
    trends = detected(EXAMPLES[0])
    index = TrendOperator(trends.plan, trends.operator.events).index
    assert index is not None
    assert index.tails
    last = [behind - 1 for behind in index.shape.last.tolist()]
    assert [row["event"] for row in rows] == trends.events["id"].to_pylist()
    assert [float(row["price"]) for row in rows] == trends.events["price"].to_pylist()
    assert [float(row["cut"]) for row in rows] == [1.5 * price for price in trends.events["price"].to_pylist()]
    assert [int(row["vertex"]) for row in rows] == index.shape.place.tolist()
    ranges = [f"{first} to {end}" for first, end in zip(index.shape.first.tolist(), last, strict=True)]
    assert [row["to-edges"] for row in rows] == ranges
    assert [int(row["trends"]) for row in rows] == DRAW.WAYS


def test_the_drawings_show_the_index() -> None:
    trends = detected(EXAMPLES[0])
    index = TrendOperator(trends.plan, trends.operator.events).index
    assert index is not None
    assert list(DRAW.NAMES) == trends.events["id"].to_pylist()
    assert list(DRAW.PRICES) == trends.events["price"].to_pylist()
    assert list(DRAW.VERTEX) == index.shape.place.tolist()
    assert list(DRAW.FIRST) == index.shape.first.tolist()
    assert len(DRAW.CUTS) + 1 == index.vertices


def pairs(text: str) -> set[tuple[str, str]]:
    """The edges that the trends of the example use."""
    trends = trellis.query(text).detect(pa.Table.from_pylist(EXAMPLES[0].tables), **EXAMPLES[0].options)
    rows = trends.to_arrow()["events"].to_pylist()
    return {pair for row in rows for pair in pairwise(row)}


def test_the_drawings_show_the_edges() -> None:
    drawn = {(DRAW.NAMES[x], DRAW.NAMES[y]) for x in DRAW.EVENTS for y in DRAW.AFTER[x]}
    direct = {(DRAW.NAMES[x], DRAW.NAMES[y]) for x, y in DRAW.DIRECT}
    assert drawn == pairs(f"{EXAMPLES[0].query} REPORT any")
    assert direct == pairs(f"{EXAMPLES[0].query} REPORT maximal")
    assert f"Here are {len(drawn)} edges." in TEXT
    assert drawn - direct == {("a", "e"), ("b", "e")}


@pytest.mark.parametrize("name", DRAW.PICTURES)
def test_the_drawings_are_those_of_the_script(name: str) -> None:
    assert f"(drawings/{name})" in TEXT
    drawn = (DOCS / "drawings" / name).read_text(encoding="utf-8")
    assert drawn == DRAW.PICTURES[name](), "run python docs/drawings/draw.py"


# --- What it costs ----------------------------------------------------------------------------------------------


def test_the_costs_are_those_of_the_plan() -> None:
    rows = COST.findall(TEXT)
    assert len(rows) >= 9
    for condition, kind, cost in rows:
        found = trellis.query(f"PATTERN E+ s[] WHERE {condition}").plan().relation.kind
        assert (found or "edges", COSTS[found] if found else "e") == (kind, cost), condition


def test_the_files_are_there() -> None:
    files = re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", TEXT)
    assert len(files) >= 8
    for file in files:
        assert (DOCS.parent / "src" / "trellis" / file).is_file(), file
