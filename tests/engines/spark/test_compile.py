"""Compiled conditions against plain Python, over nasty values, under several settings of the session."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

import trellis
from tests.oracle.conditions import both, compare, either, like, opposite
from tests.oracle.values import absolute, arithmetic, negative
from trellis.engines.spark.session.raised import translate_error
from trellis.engines.spark.sources.schema import from_spark
from trellis.engines.spark.split.compile import compile_condition, time_column
from trellis.engines.spark.split.exactness import can_compile
from trellis.errors import OverflowInCondition
from trellis.language.binder import bind
from trellis.language.bound import Column, Constant, Operation, Value
from trellis.language.parser import parse
from trellis.language.schema import DOUBLE, INTEGER, Kind, Schema, Table, Type, decimal

pytestmark = pytest.mark.spark

EPOCH = dt.datetime(1970, 1, 1)
BIG = 2**53
SETTINGS = [
    {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"},
    {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    },
]
SCHEMA = "i long, j int, x double, y float, d decimal(20,4), e decimal(9,2), s string, u string, b boolean, " \
    "t timestamp, n timestamp_ntz, a date, p interval day to second"  # fmt: skip

INTEGERS = [None, 0, -7, 3, 2**63 - 1, -(2**63), BIG + 1, BIG, -BIG - 1]
SMALL = [None, 0, 5, -3, 1]
DOUBLES = [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 5.5, -7.0, float(BIG), 2.0**63, -(2.0**63), 1e300]
FLOATS = [None, math.nan, 0.5, -0.0, math.inf]
DECIMALS = [None, *map(Decimal, ("0", "5.5", "-7.0001", "9999999999999999.9999", "0.0001"))]
SHORT_DECIMALS = [None, *map(Decimal, ("0", "5.50", "-7.00", "9999999.99"))]
STRINGS = [None, "", "a", "A", 'it\'s "q"\n\\', "ﬀ", "😀é", "a%_b", "z\0z"]
BOOLEANS = [None, True, False]
ZONELESS = [
    None, dt.datetime(2024, 3, 10, 2, 30, 0, 123456), dt.datetime(2024, 11, 3, 1, 30), dt.datetime(1, 1, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
]  # fmt: skip
DATES = [None, dt.date(2024, 3, 10), dt.date(1, 1, 1), dt.date(9999, 12, 31)]
SPANS = [None, dt.timedelta(), dt.timedelta(days=-3, microseconds=7), dt.timedelta(days=100_000, hours=5)]

CONDITIONS = """
e.i = e.x; e.i != e.x; e.i < e.x; e.i <= e.x; e.x < e.i; e.x >= e.i; e.i > 2.5; e.i <= -7.0; e.x = 0; e.i < 1e30
e.x = 9007199254740993; e.x < 9007199254740993; e.i = 9223372036854775808.0; e.i >= -9223372036854775808.0
e.x = e.y; e.x != e.x; e.x < e.y; e.x - e.x = 0.0; e.x / e.y > 1; e.x % e.y = 0.0; e.x * 0.0 = 0.0; -e.x < 0
ABS(e.x) > 6
e.i / e.j > 1; e.i % e.j = 0; e.j % 2 = 1; e.i = e.j; e.j * 3 - 1 > 7; ABS(e.j) - -e.j > 0; e.j / 0 = 1; e.j % 0 IS NULL
e.d = e.e; e.d < e.e; e.d >= e.i; e.e + e.d > 5.5; e.e * e.e < 100; e.d - e.e = 0.0001; e.d % e.e = 0; e.d / e.e > 0.5
e.d > 5.49; e.e = 5.5; e.e = 5.501; -e.d < 0; ABS(e.d) > 7; e.d * e.x > 1; e.d + 1 < 3; e.e * 2 > 10
COALESCE(e.d, e.e, 1) = 1
e.s = e.u; e.s < e.u; e.s >= 'a'; e.s != ''; e.s IN ('a', '😀é', 'ﬀ'); e.s LIKE '%\\%\\_b'; e.s LIKE '_'
e.s LIKE '😀_'; e.s LIKE '%\\\\'; e.s LIKE ''; e.s LIKE '%z'; e.u LIKE '%'; e.s BETWEEN 'A' AND 'b'
COALESCE(e.s, e.u) = 'a'
e.b = true; e.b; NOT e.b; e.b AND e.i > 0; e.b OR e.x > 0; NOT (e.b OR e.s IS NULL) AND e.x < 5; e.b != false
e.x IS NULL; e.x IS NOT NULL; e.x / e.x IS NULL; NOT e.x > e.y; COALESCE(e.x, e.i) > 0; COALESCE(e.i, 4) = 4
e.t = e.n; e.t > e.a; e.n <= e.a; e.a = '2024-03-10'; e.t >= '2024-03-10 02:30:00.123456'
e.n < '2024-11-03T01:30:00-05:00'
e.t - e.n > 1 hour; e.n - e.a > e.p; e.t + 1 day > e.n; e.n - 5 min < e.a; e.p > 0 s; e.p * 2 > 1 day; e.p / 1 day > 0.5
e.p % 7 s = 0 s; ABS(e.p) > 3 days; -e.p < 0 s; e.p - 1 us = e.p + e.p; COALESCE(e.t, e.a, e.n) > '2024-01-01'
"""


def zoned(moment: dt.datetime | None) -> dt.datetime | None:
    return None if moment is None else moment.replace(tzinfo=dt.UTC)


def rows() -> list[tuple[Any, ...]]:
    """Pairs of nasty values, laid side by side."""
    pools = [
        itertools.product(INTEGERS, DOUBLES),
        itertools.product(SMALL, FLOATS),
        itertools.product(DECIMALS, SHORT_DECIMALS),
        itertools.product(STRINGS, STRINGS),
        itertools.product(map(zoned, ZONELESS), ZONELESS, BOOLEANS),
        itertools.product(DATES, SPANS),
    ]
    cycles = [itertools.cycle(list(pool)) for pool in pools]
    return [_row(*(next(cycle) for cycle in cycles)) for _ in range(108)]


def _row(ix: Any, jy: Any, de: Any, su: Any, tnb: Any, ap: Any) -> tuple[Any, ...]:
    return (ix[0], jy[0], ix[1], jy[1], *de, *su, tnb[2], tnb[0], tnb[1], *ap)


ROWS = rows()
NAMES = [part.split()[0] for part in SCHEMA.replace("(20,4)", "").replace("(9,2)", "").split(", ")]


@contextmanager
def settings(spark: SparkSession, wanted: dict[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, str(value))


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    """The nasty values as a frame on Spark."""
    # The JVM makes the timestamps of microseconds: pyspark would read them in the zone of this machine.
    plain = SCHEMA.replace("t timestamp,", "t long,")
    data = [tuple(micros(v) if name == "t" else v for name, v in zip(NAMES, row, strict=True)) for row in ROWS]
    return spark.createDataFrame(data, plain).withColumn("t", f.timestamp_micros("t")).coalesce(1).cache()


def micros(moment: Any) -> Any:
    if isinstance(moment, dt.timedelta):
        return moment // dt.timedelta(microseconds=1)
    if isinstance(moment, dt.datetime):
        return (moment.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(moment, dt.date):
        return micros(dt.datetime(moment.year, moment.month, moment.day))
    return moment


def bound(condition: str, frame: DataFrame) -> Value:
    columns = {field.name: from_spark(field.dataType) for field in frame.schema}
    text = f"PATTERN E e WHERE NOT ({condition})"
    query = bind(parse(text), text, Schema((Table(None, columns),), time="t" if "t" in columns else "i"))
    value = query.conditions[0].value
    assert isinstance(value, Operation)
    return value.arguments[0]


def reference(value: Value, row: dict[str, Any]) -> Any:
    """What the page about semantics says, in Python's exact numbers."""
    if isinstance(value, Constant):
        return Decimal(value.value) if value.type.kind is Kind.DECIMAL else value.value  # type: ignore[arg-type]
    if isinstance(value, Column):
        found = micros(row[value.name])
        return None if isinstance(found, float) and math.isnan(found) else found
    arguments = [reference(x, row) for x in value.arguments]
    simple = {"and": both, "or": either}
    match value.function:
        case "and" | "or":
            return simple[value.function](arguments)
        case "not":
            return opposite(arguments[0])
        case "is null":
            return arguments[0] is None
        case "like":
            return like(*arguments)
        case "negative":
            return negative(arguments[0])
        case "abs":
            return absolute(arguments[0])
        case "coalesce":
            found = next((x for x in arguments if x is not None), None)
            return float(found) if found is not None and value.type == DOUBLE else found
        case "+" | "-" | "*" | "/" | "%":
            return arithmetic(value.function, *arguments)
        case _:
            return compare(value.function, *arguments)


def conditions() -> list[str]:
    plain = [c.strip() for line in CONDITIONS.strip().splitlines() for c in line.split("; ")]
    return [*plain, "e.s = 'it''s \"q\"\n\\'", "e.s LIKE '%\n_'", "e.u != 'z\0z'"]


@pytest.mark.parametrize(
    "wanted",
    [pytest.param(SETTINGS[0], id="ansi-utc"), pytest.param(SETTINGS[1], id="plain-new-york", marks=pytest.mark.slow)],
)
def test_same_as_plain_python(spark: SparkSession, frame: DataFrame, wanted: dict[str, str]) -> None:
    values = [bound(condition, frame) for condition in conditions()]
    assert [c for c, v in zip(conditions(), values, strict=True) if not can_compile(v)] == []
    compiled = [compile_condition(v, lambda c: f.col(c.name)).alias(f"c{i}") for i, v in enumerate(values)]
    found: dict[str, list[Any]] = {}
    with settings(spark, wanted):
        for start in range(0, len(compiled), 20):  # Spark's code for one large select takes far longer to compile
            found |= frame.select(compiled[start : start + 20]).toArrow().to_pydict()
    dicts = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
    wrong = [
        (condition, row, found[f"c{i}"][k])
        for i, (condition, value) in enumerate(zip(conditions(), values, strict=True))
        for k, row in enumerate(dicts)
        if found[f"c{i}"][k] is not reference(value, row)
    ]
    assert not wrong, f"{wrong[0]}, and in {len(wrong)} cases of {sorted({w[0] for w in wrong})}"


def test_times_do_not_depend_on_the_zone(spark: SparkSession, frame: DataFrame) -> None:
    with settings(spark, SETTINGS[1]):
        types = {field.name: from_spark(field.dataType) for field in frame.schema}
        found = frame.select(
            *(time_column(f.col(name), types[name]).alias(name) for name in ("t", "n", "a", "p", "i", "j", "x", "d"))
        )
        assert [field.dataType.simpleString() for field in found.schema] == ["bigint"] * 6 + ["double", "decimal(20,4)"]
        table = found.toArrow().to_pydict()
    for name in ("t", "n", "a", "p"):
        assert table[name] == [micros(row[NAMES.index(name)]) for row in ROWS]
    assert not any(isinstance(x, float) and math.isnan(x) for x in table["x"])


OVERFLOWS = [
    ("e.i * 2 > 0", "`e.i * 2` does not fit 64 bits in a row where it is 9223372036854775807 * 2"),
    ("e.b OR e.i + 1 > e.x", "`e.i + 1` does not fit 64 bits in a row where it is 9223372036854775807 + 1"),
    ("-(e.i - 1) + 1 > 0", "`(e.i - 1)` does not fit 64 bits in a row where it is -9223372036854775808 - 1"),
    ("COALESCE(1, ABS(e.i)) = 1", "`ABS(e.i)` does not fit 64 bits in a row where it is abs -9223372036854775808"),
    ("e.j IS NULL OR -e.i > 0", "`-e.i` does not fit 64 bits in a row where it is negative -9223372036854775808"),
    ("e.p * 9223372036854775807 > 0 s",
     "`e.p * 9223372036854775807` does not fit 64 bits in a row where it is -259199999993 microseconds * "
     "9223372036854775807"),
]  # fmt: skip


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_overflow_is_an_error_that_names_expression_and_row(spark: SparkSession, frame: DataFrame, ansi: str) -> None:
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        for condition, sentence in OVERFLOWS:
            compiled = compile_condition(bound(condition, frame), lambda c: f.col(c.name))
            with pytest.raises(PySparkException, match="TRELLIS") as caught:
                frame.where(compiled).select("i").collect()
            error = translate_error(caught.value)
            assert isinstance(error, OverflowInCondition)
            assert error.what == sentence


def test_a_date_too_far_away(spark: SparkSession) -> None:
    frame = spark.range(1).select(f.date_from_unix_date(f.lit(2_000_000_000)).alias("a"))
    with pytest.raises(PySparkException) as caught:
        frame.select(time_column(f.col("a"), Type(Kind.DATE))).collect()
    assert "too far away" in str(translate_error(caught.value))


def test_other_errors_are_not_ours() -> None:
    assert translate_error(ValueError("no such thing")) is None


def test_a_long_sum_stays_quick(spark: SparkSession, frame: DataFrame) -> None:
    condition = " + ".join(["e.j"] * 12) + " > 55"
    compiled = compile_condition(bound(condition, frame), lambda c: f.col(c.name))
    assert frame.where(compiled).count() == sum(row[1] == 5 for row in ROWS)
    assert not can_compile(bound(" + ".join(["e.j"] * 60) + " > 55", frame))


def test_collations_do_not_matter(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 'a' COLLATE UNICODE_CI AS s, 1L AS i")
    value = bound("e.s = 'A' OR e.s LIKE 'A'", frame)
    assert frame.select(compile_condition(value, lambda c: f.col(c.name))).collect() == [(False,)]


def operation(function: str, *arguments: Value, type_: Type = Type(Kind.BOOLEAN)) -> Operation:  # noqa: B008
    return Operation(function, arguments, type_)


def column(data_type: t.DataType) -> Column:
    from trellis.language.syntax import Which

    return Column("e", "c", Which.EACH, None, from_spark(data_type))


def test_what_spark_would_round_is_not_compiled() -> None:
    wide, narrow = column(t.DecimalType(38, 10)), column(t.DecimalType(18, 4))
    whole, real = column(t.LongType()), column(t.DoubleType())
    assert can_compile(operation("=", wide, wide))
    assert can_compile(operation("<", narrow, whole))
    assert can_compile(operation("*", narrow, narrow, type_=decimal(8)))
    assert can_compile(operation("+", wide, real, type_=DOUBLE))
    assert not can_compile(operation("<", column(t.DecimalType(38, 20)), whole))
    assert not can_compile(operation("<", narrow, real))
    assert not can_compile(operation("+", wide, wide, type_=decimal(10)))
    assert not can_compile(operation("*", wide, narrow, type_=decimal(14)))
    assert not can_compile(operation("=", wide, Constant(Decimal("1E-30"), decimal(30))))
    assert not can_compile(operation("is null", Column("e", "c", wide.which, None, Type(Kind.UNKNOWN))))
    with pytest.raises(ValueError, match="exactly"):
        compile_condition(operation("<", narrow, real), lambda c: f.col(c.name))


def test_conditions_on_rows_of_this_process_compile(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    """Spark filters rows that it holds itself by generated code, before it has simplified anything."""
    row = (Decimal("1.50"), Decimal(2), dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1))
    frame = spark.createDataFrame([row], "d decimal(10,2), e decimal(38,10), t timestamp, n timestamp_ntz")
    columns = {field.name: from_spark(field.dataType) for field in frame.schema.fields}
    spark.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    try:
        for text in ("s.d > 0.3", "s.e = 2", "s.d + s.d > 1.5", "s.t > '2023-01-01'", "s.n > '2023-01-01'"):
            schema = Schema((Table(None, columns),), "t", None, None)
            (condition,) = trellis.query(f"PATTERN E+ s[] WHERE {text}").plan(schema).constant
            column_ = compile_condition(condition.value, lambda c: frame[c.name])
            assert frame.where(column_).count() == 1
    finally:
        spark.conf.unset("spark.sql.codegen.factoryMode")
    assert "CompileException" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("data_type", "expected"),
    [
        (t.ByteType(), INTEGER),
        (t.ShortType(), INTEGER),
        (t.FloatType(), DOUBLE),
        (t.DecimalType(10, 3), decimal(3)),
        (t.TimestampNTZType(), Type(Kind.TIMESTAMP)),
        (t.DateType(), Type(Kind.DATE)),
        (t.DayTimeIntervalType(), Type(Kind.DURATION)),
        (t.NullType(), Type(Kind.UNKNOWN)),
        (t.ArrayType(t.LongType()), Type(Kind.OTHER)),
        (t.YearMonthIntervalType(), Type(Kind.OTHER)),
    ],
)
def test_types(data_type: t.DataType, expected: Type) -> None:
    assert from_spark(data_type) == expected


def test_names_of_types() -> None:
    assert str(from_spark(t.DecimalType(10, 3))) == "decimal(10,3)"
    assert from_spark(t.ArrayType(t.LongType())).described() == "of type array<bigint>"
