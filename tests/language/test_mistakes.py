"""Every mistake has its exact message: `mistakes/*.txt` hold wrong queries and what is said of them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from trellis.errors import TrellisError, UsageError, did_you_mean, nearest
from trellis.language.binder import bind
from trellis.language.parser import parse
from trellis.language.schema import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    Kind,
    Schema,
    Table,
    Type,
    choose_time,
    decimal,
)  # fmt: skip

COLUMNS = {
    "ts": TIMESTAMP, "id": INTEGER, "name": STRING, "price": DOUBLE, "size": INTEGER, "fee": decimal(2),
    "flag": BOOLEAN, "day": Type(Kind.DATE), "tags": Type(Kind.OTHER, name="array<string>"), "rank": INTEGER,
}  # fmt: skip
CHECKS = Table("Check", {"ts": TIMESTAMP, "id": INTEGER, "amount": DOUBLE, "code": STRING})
STOCKS = Table("Stock", {"ts": TIMESTAMP, "id": INTEGER, "price": DOUBLE, "code": INTEGER})
SCHEMAS = {
    "none": None,
    "events": Schema((Table(None, COLUMNS),), "ts"),
    "typed": Schema((Table(None, COLUMNS | {"kind": STRING}),), "ts", type="kind"),
    "ticks": Schema((Table(None, {"t": INTEGER, "price": DOUBLE}),), "t"),
    "dates": Schema((Table(None, {"day": Type(Kind.DATE), "price": DOUBLE}),), "day"),
    "tables": Schema((CHECKS, STOCKS), "ts"),
}


def cases() -> list[Any]:
    """Blocks of a heading `=== name | schema | parameters`, the query, a line `---`, and the message."""
    found = []
    for path in sorted((Path(__file__).parent / "mistakes").glob("*.txt")):
        for block in path.read_text(encoding="utf-8").split("\n=== ")[1:]:
            heading, _, rest = block.partition("\n")
            name, schema, params = (part.strip() for part in heading.split("|"))
            query, _, message = rest.partition("\n---\n")
            case = (query, SCHEMAS[schema], ast.literal_eval(params or "{}"), message.strip("\n"))
            found.append(pytest.param(*case, id=f"{path.stem}: {name}"))
    return found


@pytest.mark.parametrize(("query", "schema", "params", "message"), cases())
def test_message(query: str, schema: Schema | None, params: dict[str, Any], message: str):
    with pytest.raises(TrellisError) as error:
        bind(parse(query), query, schema, params)
    assert str(error.value) == message


def test_there_are_many():
    assert len(cases()) >= 150


# --- Mistakes in what stands around a query ---------------------------------------------------------------------


def usage(make: Any) -> str:
    with pytest.raises(UsageError) as error:
        make()
    return str(error.value)


def test_a_time_column_that_is_no_time():
    table = Table(None, COLUMNS)
    assert usage(lambda: Schema((table,), "name")) == (
        "the time column `name` is a string; a time is a timestamp, a date or a number\n"
        "Give its format with --time-format."
    )
    assert usage(lambda: Schema((table,), "tags")) == (
        "the time column `tags` is of type array<string>; a time is a timestamp, a date or a number"
    )


def test_columns_that_the_events_do_not_have():
    table = Table(None, {"ts": TIMESTAMP, "kind": STRING})
    assert usage(lambda: Schema((table,), "tss")) == (
        "the events have no column `tss` for the time\nDid you mean `ts`?"
    )
    assert usage(lambda: Schema((table,), "ts", event_id="number")) == (
        "the events have no column `number` for the event id\nColumns are ts, kind."
    )
    assert usage(lambda: Schema((STOCKS,), "ts", type="kind")) == (
        "the table of `Stock` has no column `kind` for the type\nColumns are ts, id, price, code."
    )


def test_columns_of_the_wrong_type():
    table = Table(None, COLUMNS)
    assert usage(lambda: Schema((table,), "ts", type="size")) == "the type column `size` is an integer, not a string"
    assert usage(lambda: Schema((table,), "ts", event_id="tags")) == (
        "the event id column `tags` is of type array<string>, which cannot be an id"
    )


def test_tables_that_do_not_fit_together():
    numbered = Table("Tick", {"ts": INTEGER})
    assert usage(lambda: Schema((), "ts")) == "there are no events\nGive at least one table."
    assert usage(lambda: Schema((STOCKS, numbered), "ts")) == (
        "the tables disagree on the time column `ts`: a timestamp and an integer"
    )
    assert usage(lambda: Schema((STOCKS, Table(None, {"ts": TIMESTAMP})), "ts")) == (
        "some tables have an event type and some have none\nWrite --events Check=a.parquet."
    )


def test_choosing_the_time_column():
    assert choose_time(["a", "ts"], None) == "ts"
    assert choose_time(["a", "ts"], "a") == "a"
    assert usage(lambda: choose_time(["ts", "time"], None)) == (
        "several columns could be the time: ts, time\nName one with time= or --time."
    )
    assert usage(lambda: choose_time(["a", "b"], None)) == (
        "no column is called time, ts, timestamp or event_time\n"
        "Name the time column with time= or --time. Columns are a, b."
    )


def test_report_modes():
    text = "PATTERN A a"
    assert usage(lambda: bind(parse(text), text, report_mode="maximum")) == (
        "there is no report mode `maximum`\nDid you mean `maximal`?"
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "the parameter `p` cannot be None"),
        ([[1]], "the parameter `p` cannot be a list"),
        (float("nan"), "the parameter `p` is nan; a finite number is expected"),
        (float("inf"), "the parameter `p` is inf; a finite number is expected"),
        (2**63, "the parameter `p` does not fit 64 bits"),
    ],
)
def test_parameters_of_no_use(value: object, message: str):
    text = "PATTERN A a WHERE a.x > p"
    assert usage(lambda: bind(parse(text), text, params={"p": value})).startswith(message)


def test_the_nearest_name():
    assert nearest("Price", ["price", "prize"]) == "price"
    assert nearest("prcie", ["price", "size"]) == "price"
    assert nearest("volume", ["price", "size"]) is None
    assert did_you_mean("volume", ["price"], "Columns are price.") == "Columns are price."
