"""The papers' queries and ours: each parses, prints back to an equal tree, and binds with and without a schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from trellis.language.binder import bind
from trellis.language.parser import parse
from trellis.language.printer import to_query_text
from trellis.language.schema import DOUBLE, INTEGER, STRING, TIMESTAMP, Schema, Table

EXAMPLES = Path(__file__).parents[2] / "examples"
PARAMETERS = {
    "abi_q2_rising_price": {"ratio": "1.1"},
    "condensed_q2_n_classes": {"windowsize": 500},
    "condensed_q3_crossing": {"windowsize": "500"},
}
CHECKS = {"time": TIMESTAMP, "type": STRING, "src": INTEGER, "dest": INTEGER, "source": INTEGER, "destination": INTEGER}
STOCKS = {"time": TIMESTAMP, "id": INTEGER, "companyID": INTEGER, "price": DOUBLE}
ACTIVITIES = {"time": TIMESTAMP, "personID": INTEGER, "rate": INTEGER, "type": STRING}
QUOTES = {"time": INTEGER, "name": STRING, "code": STRING, "price": DOUBLE}
TYPED = {"time": TIMESTAMP, "type": STRING, "price": DOUBLE}
SCHEMAS = {
    "abi_q1": Schema((Table(None, CHECKS),), "time"),
    "abi_q2": Schema((Table(None, STOCKS),), "time"),
    "cet_q1": Schema((Table(None, CHECKS),), "time"),
    "cet_q2": Schema((Table(None, ACTIVITIES),), "time"),
    "cet_q3": Schema((Table(None, STOCKS),), "time"),
    "condensed": Schema((Table(None, QUOTES),), "time"),
    "history": Schema((Table(None, TYPED),), "time", type="type"),
    "fraud": Schema((Table(None, CHECKS),), "time"),
    "health": Schema((Table(None, ACTIVITIES),), "time"),
    "stock": Schema((Table(None, STOCKS | {"name": STRING, "volume": INTEGER}),), "time"),
}
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.tq"))


def text_of(name: str) -> str:
    return (EXAMPLES / f"{name}.tq").read_text(encoding="utf-8")


def test_there_are_sixteen():
    assert len(NAMES) == 16


@pytest.mark.parametrize("name", NAMES)
def test_prints_back_to_an_equal_tree(name: str):
    tree = parse(text_of(name))
    assert parse(to_query_text(tree)) == tree


@pytest.mark.parametrize("name", NAMES)
def test_binds_without_a_schema(name: str):
    bound = bind(parse(text_of(name)), text_of(name), params=PARAMETERS.get(name))
    assert bound.columns


@pytest.mark.parametrize("name", NAMES)
def test_binds_against_a_schema(name: str):
    schema = next(s for prefix, s in SCHEMAS.items() if name.startswith(prefix))
    bound = bind(parse(text_of(name)), text_of(name), schema, PARAMETERS.get(name))
    assert all(column.type != "unknown" for column in bound.columns)


def test_the_columns_of_a_trend():
    text = text_of("abi_q2_rising_price")
    bound = bind(parse(text), text, SCHEMAS["abi_q2"], {"ratio": 1.1})
    assert [c.name for c in bound.columns] == [
        "window_start", "window_end", "id", "rank", "length", "start_time", "end_time", "events",
    ]  # fmt: skip


def test_the_columns_of_a_sequence():
    text = text_of("history_seq_not")
    bound = bind(parse(text), text, SCHEMAS["history"])
    assert [c.name for c in bound.columns] == ["rank", "length", "start_time", "end_time", "A", "C"]


@pytest.mark.parametrize("name", NAMES)
def test_is_the_text_that_the_design_gives(name: str):
    """The examples are what the papers print; the shared folder holds the same files where it exists."""
    original = EXAMPLES.parents[1] / "shared" / "queries" / f"{name}.tq"
    if not original.exists():
        pytest.skip("there is no shared folder here, or it has no such query")
    assert text_of(name) == original.read_text(encoding="utf-8")
