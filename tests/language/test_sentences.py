"""Mistakes that people make who come from pandas, SQL or spreadsheets: each gets the sentence that helps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import trellis
from trellis.digits import number_text
from trellis.errors import did_you_mean
from trellis.io.read import read_table
from trellis.limits import refuse_rows

EVENTS = pa.table(
    {"ts": [1, 2, 3], "price": [1.0, 2.0, 3.0], "amount_paid": [1, 2, 3], "kind": ["Stock", "Check", "Check"]}
)


def message(call: Callable[[], Any]) -> str:
    with pytest.raises(trellis.TrellisError) as problem:
        call()
    return str(problem.value)


def of_query(text: str, **options: Any) -> str:
    """The message of a query without the lines that show the place."""
    lines = message(lambda: trellis.query(text).detect(EVENTS, **options)).splitlines()
    return "\n".join(line for line in lines if not line.startswith("  "))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "PATTERN Stock+ s[] WHERE price > 3",
            "line 1, column 26: `price` is a column, and stands without its variable\nWrite `s.price`.",
        ),
        (
            "PATTERN SEQ(A a, B b) WHERE price > 3",
            "line 1, column 29: `price` is a column, and stands without its variable\nWrite `a.price` or `b.price`.",
        ),
        (
            "PATTERN Stock+ s[] WHERE s.price > '3'",
            "line 1, column 26: cannot compare `s.price`, a double, with `'3'`, a string\nWrite 3, without quotes.",
        ),
        (
            "PATTERN Stock+ s[] WHERE s.price = 'high'",
            "line 1, column 26: cannot compare `s.price`, a double, with `'high'`, a string\n"
            "Numbers are written without quotes.",
        ),
        (
            "PATTERN Stock{,3} s[]",
            "line 1, column 14: `{,3}` is no number of repetitions\nWrite `{0,3}`.",
        ),
        (
            "PATTERN (A B+ C) DEFINE B AS B.price > PREV(B.price)",
            "line 1, column 13: patterns of SQL's MATCH_RECOGNIZE are written otherwise here\n"
            "Write `PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x`: what DEFINE says goes into WHERE.",
        ),
        (
            "PATTERN A B+ C",
            "line 1, column 12: unexpected `+`, expected `[`, `;`, a clause such as WHERE or the end\n"
            "Write `SEQ(A a, B+ b[], C c)` for one after the other.",
        ),
        (
            "PATTERN Stock+ s[] WHERE s.price > LAG(s.price)",
            "line 1, column 36: there is no function `LAG`\n"
            "`s[i-1].x` is the event before `s[i].x`: write `s[i].x > s[i-1].x`.",
        ),
        (
            "PATTERN Stock+ s[] RETURN DISTINCT s.price",
            "line 1, column 27: RETURN has no DISTINCT\n"
            "Each trend is a row of its own; leave it out, and drop repeated rows from the result.",
        ),
        (
            "PATTERN Stock+ t[] WHERE t.amount > 3",
            "line 1, column 28: `t` has no attribute `amount`\nDid you mean `amount_paid`?",
        ),
        (
            "PATTERN Stock+ s[] WHERE INT(s.price) > 3",
            "line 1, column 26: there is no function `INT`\nWrite `CAST(x AS INT)`.",
        ),
    ],
)
def test_queries(text: str, told: str) -> None:
    options = {"type": "kind"} if "SEQ" in text else {}
    assert of_query(text, **options) == told


def test_a_column_may_be_meant_before_there_are_events() -> None:
    told = message(lambda: trellis.query("PATTERN Stock+ s[] WHERE price > 3").explain())
    assert told.endswith(
        "If it is a column, write `s.price`. A parameter is given with params={'price': ...} or --param price=VALUE."
    )


def test_items_that_are_given_on_their_own() -> None:
    trends = trellis.query("PATTERN Stock+ s[]").detect(EVENTS)
    assert message(lambda: trends.top(2, by="lenght")) == (
        "`lenght` is not a value of a trend: the pattern declares no variable `lenght`\nDid you mean `length`?"
    )
    assert message(lambda: trends.top(2, by="price")) == (
        "`price` is not a value of a trend: the pattern declares no variable `price`\nWrite `max(s.price)`."
    )
    assert message(lambda: trends.aggregate("avg(price)")) == (
        "`avg(price)` is not an aggregate: AVG takes an attribute such as `v.price`, or LENGTH\nWrite `avg(s.price)`."
    )
    assert message(lambda: trends.aggregate("count(*)", "avg(s.prize)")) == (
        "`avg(s.prize)` is not an aggregate: `s` has no attribute `prize`\nDid you mean `price`?"
    )
    assert message(lambda: trends.per_event("cuont(*)")) == (
        "`cuont(*)` is not an aggregate: `*` stands only in COUNT(*)\nDid you mean `count`?"
    )
    assert message(lambda: trends.per_event(of="z")) == "the pattern declares no variable `z`\nVariables are s."
    assert message(lambda: trends.aggregate("sum(s.price")).endswith("The `(` is not closed.")  # at no column


def test_a_type_that_matches_no_row() -> None:
    for text, told in [
        ("PATTERN Stok+ s[]", "no event has the type `Stok` in the column `kind`; did you mean `Stock`?"),
        ("PATTERN SEQ(X x, Y y)", "no event has the type `X` or `Y` in the column `kind`, which has `Check`, `Stock`"),
        ("PATTERN stock+ s[]", "no event has the type `stock`, but some have `Stock`: types are case-sensitive"),
    ]:
        with pytest.warns(UserWarning, match="no event has the type") as seen:
            trellis.query(text).detect(EVENTS, type="kind").statistics  # noqa: B018 (asking prepares the events)
        assert [str(warning.message) for warning in seen] == [told]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that something is absent is what such a pattern asks for
        assert trellis.query("PATTERN SEQ(Stock s, NOT(Sale x), Check c)").detect(EVENTS, type="kind").statistics


def test_an_index_of_times() -> None:
    prices = pd.DataFrame({"price": [1.0, 2.0]}, index=pd.date_range("2024-01-01", periods=2))
    query = trellis.query("PATTERN S+ s[]")
    assert message(lambda: query.detect(prices)) == (
        "the times of the frame are in its index\nMake them a column: frame.reset_index(names='ts'), with time='ts'."
    )
    assert message(lambda: query.detect(prices, time="day")) == (
        "the times of the frame are in its index, and there is no column `day`\n"
        "Make them a column: frame.reset_index(names='day'), with time='day'."
    )
    assert query.detect(prices.reset_index(names="day"), time="day").statistics["events"] == 2
    assert query.detect(prices.rename_axis("ts")).statistics["events"] == 2


def test_mixed_zones() -> None:
    query = trellis.query("PATTERN S+ s[]")
    moments = [pd.Timestamp("2024-01-01 10:00"), pd.Timestamp("2024-01-01 11:00", tz="Europe/Berlin")]
    assert message(lambda: query.detect(pd.DataFrame({"ts": moments}))) == (
        "the column `ts` has times with a zone and times without one\n"
        "Give all of them a zone: frame['ts'] = pandas.to_datetime(frame['ts'], utc=True)."
    )
    texts = pa.table({"ts": ["2024-01-01 10:00", "2024-01-01 11:00+02:00", "2024-01-01 12:00Z"]})
    with pytest.warns(UserWarning, match="in the column `ts` 2 of 3 times have a zone; the others are taken as UTC"):
        query.detect(texts)


def test_an_unreadable_time_is_shown() -> None:
    texts = pa.table({"ts": ["2024-01-01 10:00", "31.12.2024"], "x": [1, 2]})
    asked = trellis.query("PATTERN S+ s[]").detect(texts)
    assert message(lambda: asked.statistics) == (
        "1 row has no readable time in the column `ts`, for example: ts=31.12.2024, x=2\n"
        "Correct them, say how they are written with --time-format, or leave them out with on_bad_rows='drop' or "
        "--on-bad-rows drop."
    )


def test_an_unreadable_time_in_a_file_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("ts,x\n2024-01-01 10:00,1\n2024-01-01 11:00,2\n31.12.2024,3\n")
    asked = trellis.query("PATTERN S+ s[]").detect(read_table(file, time="ts"))
    assert "for example: ts=31.12.2024, x=3\n" in message(lambda: asked.statistics)


@pytest.mark.parametrize("sign", [";", "\t", "|"])
def test_csv_with_another_delimiter(tmp_path: Path, sign: str) -> None:
    file = tmp_path / "events.csv"
    rows = [["ts", "price", "code", "share"], ["1", "1,5", "1,5", "2"], ["2", "-20", "a,b", "3"]]
    file.write_text("\n".join(sign.join(row) for row in rows) + "\n")
    table = read_table(file)
    assert table.to_pylist() == [
        {"ts": 1, "price": 1.5, "code": "1,5", "share": 2},
        {"ts": 2, "price": -20.0, "code": "a,b", "share": 3},
    ]
    assert read_table(file, delimiter=sign).equals(table)
    assert read_table(file, delimiter="\\t" if sign == "\t" else sign).equals(table)
    wrong = message(lambda: read_table(file, delimiter="::"))
    assert wrong == "the delimiter '::' is not one sign\nWrite `;`, `|`, `\\t` or another ASCII sign."


def test_a_comma_in_the_header_decides(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text('ts,"a;b",c\n1,2;3,4\n')
    assert read_table(file).to_pylist() == [{"ts": 1, "a;b": "2;3", "c": 4}]


def test_a_refusal_prints_at_most_a_line_of_digits() -> None:
    for count in (10**9, 2**150, 2**1000, 2**30000):
        told = message(lambda count=count: refuse_rows(count, 10))  # type: ignore[misc]
        assert max(map(len, told.splitlines())) < 180
    assert number_text(2**150) == "1427247692705959881058285969449495136382746624 (about 1.42e45)"
    assert number_text(2**1000).endswith(" (302 digits)")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("amount", "Did you mean `amount_paid` or `amount_received`?"),  # and not `to_account`, which looks alike
        ("Paid", "Did you mean `paid`?"),
        ("pirce", "Did you mean `price`?"),
        ("volume", None),
    ],
)
def test_names_that_are_near(name: str, hint: str | None) -> None:
    known = ["amount_received", "amount_paid", "paid", "to_account", "price"]
    assert did_you_mean(name, known) == hint
