"""Types on Spark: those of columns, as the query language knows them, and those that text turns out to have."""

from __future__ import annotations

import re
from enum import IntFlag

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from trellis.events.times import ISO, ZONED, has_zone, java_pattern_to_regex
from trellis.io.infer import BOOLEAN as BOOLEAN_TEXT
from trellis.io.infer import COMMA as COMMA_TEXT
from trellis.io.infer import INTEGER as INTEGER_TEXT
from trellis.io.infer import NUMBER as NUMBER_TEXT
from trellis.language.schema import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    INTEGER,
    STRING,
    UNKNOWN,
    Kind,
    Type,
)

_WIDEST = 38


def _for_java(pattern: str) -> str:
    """Return a regular expression with groups named as Java wants it."""
    return pattern.replace("(?P<", "(?<")


WITH_ZONE, WITHOUT_ZONE = "timestamp", "timestamp_ntz"
"""Spark's names for the two kinds of timestamps, and the names of their types."""
TIMES = (WITH_ZONE, WITHOUT_ZONE)

_KINDS: tuple[tuple[type[t.DataType], Type], ...] = (
    (t.ByteType, INTEGER),
    (t.ShortType, INTEGER),
    (t.IntegerType, INTEGER),
    (t.LongType, INTEGER),
    (t.FloatType, DOUBLE),
    (t.DoubleType, DOUBLE),
    (t.StringType, STRING),
    (t.CharType, STRING),
    (t.VarcharType, STRING),
    (t.BooleanType, BOOLEAN),
    (t.TimestampType, Type(Kind.TIMESTAMP, name=WITH_ZONE)),
    (t.TimestampNTZType, Type(Kind.TIMESTAMP, name=WITHOUT_ZONE, naive=True)),
    (t.DateType, Type(Kind.DATE)),
    (t.DayTimeIntervalType, DURATION),
    (t.NullType, UNKNOWN),
)


def from_spark(data_type: t.DataType) -> Type:
    """Return the type of a Spark column.

    Returns
    -------
    trellis.language.schema.Type
        `timestamp_ntz` is a timestamp, in UTC; its name tells it. A decimal carries its precision in its name, where
        `precision_of` finds it. A column of type void, whose values are all NULL, is `UNKNOWN`: it goes with
        everything. What conditions cannot use is `OTHER`.
    """
    if isinstance(data_type, t.DecimalType):
        return Type(Kind.DECIMAL, data_type.scale, data_type.simpleString())
    for known, type_ in _KINDS:
        if isinstance(data_type, known):
            return type_
    return Type(Kind.OTHER, name=data_type.simpleString())


def precision_of(type_: Type) -> int:
    """Return how many digits a decimal type has at most: 38 where its name does not tell."""
    told = re.fullmatch(r"decimal\((\d+),\s*\d+\)", type_.name)
    return int(told[1]) if told else _WIDEST


# --- Text that has a type ---------------------------------------------------------------------------------------


class Looks(IntFlag):
    """The kinds of values that a text may stand for; each text has one of these, a column the union of its texts'.

    A time may also tell whether it has a zone.
    """

    LONG = 1
    WIDE_INTEGER = 2  # does not fit 64 bits
    REAL = 4
    BOOLEAN = 8
    TIME = 16
    OTHER = 32
    COMMA = 128  # a number with a comma for its point, where none is between fields
    ZONED = 256
    UNZONED = 512


NUMBERS = Looks.LONG | Looks.WIDE_INTEGER | Looks.REAL | Looks.COMMA
ZONES = Looks.ZONED | Looks.UNZONED


def looks(text: Column, commas: bool = False) -> Column:
    """Return the kind of a text, as a number of `Looks`; NULL for NULL. `commas` may stand for points in numbers."""
    return (
        f.when(text.isNull(), f.lit(None))
        .when(text.rlike(INTEGER_TEXT), _either(text.try_cast("bigint").isNotNull(), Looks.LONG, Looks.WIDE_INTEGER))
        .when(text.rlike(NUMBER_TEXT), f.lit(int(Looks.REAL)))
        .when(f.lit(commas) & text.rlike(COMMA_TEXT), f.lit(int(Looks.COMMA)))
        .when(text.rlike(BOOLEAN_TEXT), f.lit(int(Looks.BOOLEAN)))
        .otherwise(looks_like_time(text))
    )


def looks_like_time(text: Column) -> Column:
    """Return `TIME` or `OTHER` for a text, and whether a time, if it is more than a date, has a zone; NULL for NULL."""
    zoned = _either(text.rlike(ZONED), Looks.TIME | Looks.ZONED, Looks.TIME | Looks.UNZONED)
    time = f.when(text.contains(":"), zoned).otherwise(f.lit(int(Looks.TIME)))
    return f.when(text.isNotNull(), f.when(parse_times(text).isNotNull(), time).otherwise(f.lit(int(Looks.OTHER))))


def _either(condition: Column, yes: Looks, no: Looks) -> Column:
    return f.when(condition, f.lit(int(yes))).otherwise(f.lit(int(no)))


def text_type(seen: Looks) -> str:
    """Return the one type that all values of a column of text have, by the rule of `trellis.io.infer`.

    Parameters
    ----------
    seen
        What the values look like, all together; 0 if there are none.

    Returns
    -------
    str
        `bigint`, `double`, `boolean`, `string`, or the type of times: `timestamp_ntz` where none has a zone.
    """
    times = time_type(seen)
    seen &= ~ZONES
    if seen == Looks.LONG:
        return "bigint"
    if seen & Looks.COMMA:
        return "string" if seen & ~NUMBERS or seen & Looks.REAL else "double"
    if seen & Looks.REAL and not seen & ~NUMBERS:
        return "double"
    return {Looks.BOOLEAN: "boolean", Looks.TIME: times}.get(seen, "string")


def time_type(seen: Looks) -> str:
    """Return the type of the times in a column of text: without a zone where there are some, and none has one."""
    return WITHOUT_ZONE if seen & Looks.TIME and not seen & Looks.ZONED else WITH_ZONE


def convert_text(text: Column, target: str, commas: bool = False) -> Column:
    """Convert text to a type that `text_type` names; what does not fit becomes NULL."""
    match target:
        case "boolean":
            return f.when(text.rlike(BOOLEAN_TEXT), f.lower(text) == f.lit("true"))
        case "timestamp" | "timestamp_ntz":
            return parse_times(text, naive=target == WITHOUT_ZONE)
        case "string":
            return text
        case _:
            pointed = f.when(text.rlike(COMMA_TEXT), f.translate(text, ",", ".")).otherwise(text) if commas else text
            return f.when(pointed.rlike(NUMBER_TEXT), pointed).try_cast(target)


# --- Text that tells a time -------------------------------------------------------------------------------------
#
# All forms are first rewritten to one, `2024-01-31T09:30:00.5+01:00`, step by step; each step names its input only
# once, so that the expressions stay small.

_FIRST = "0001-01-01T00:00:00Z"
_LAST = "9999-12-31T23:59:59.999999Z"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SLASHED_PARTS = r"\A([0-9]{4})/([0-9]{2})/([0-9]{2}) ([0-9:]+)\z"
_DATE_ONLY = r"\A(.{10})\z"
_NO_SECOND = r"\A(.{16})(|Z|[+-].{5})\z"
_NO_ZONE = r"\A(.{19}(?:\.[0-9]+)?)\z"
_ISO = _for_java(ISO)


def parse_times(text: Column, time_format: str | None = None, *, naive: bool | None = None) -> Column:
    """Return the times that texts tell, NULL where they tell none: as `trellis.events.times.parse_times` reads them.

    Parameters
    ----------
    text
        A column of text.
    time_format
        A pattern such as `dd.MM.yyyy HH:mm:ss`; without one, ISO 8601 and `yyyy/MM/dd HH:mm[:ss]`.
    naive
        Whether they are given without a zone; where None, the pattern tells. Text with a zone is then given in UTC.

    Returns
    -------
    pyspark.sql.Column
        A `timestamp_ntz` of times without a zone; else a `timestamp`, for which text without a zone is in UTC,
        whatever the session's time zone.

    Raises
    ------
    UsageError
        If the pattern is wrong.
    """
    if time_format is not None:
        pattern = java_pattern_to_regex(time_format)
        return _parse_full(_from_parts(text, pattern), not has_zone(pattern) if naive is None else naive)
    dashed = f.regexp_replace(text, _SLASHED_PARTS, "$1-$2-$3 $4")
    timed = f.regexp_replace(dashed, _DATE_ONLY, "$1T00:00:00Z")
    exact = f.regexp_replace(timed, _NO_SECOND, "$1:00$2")
    return _parse_full(f.regexp_replace(exact, _NO_ZONE, "$1Z"), bool(naive))


def _parse_full(iso: Column, naive: bool) -> Column:
    """Parse texts that have all parts, a zone too; NULL for anything else and outside the years 1 to 9999."""
    moment = f.regexp_extract(iso, _ISO, 0).try_cast(WITH_ZONE)
    moment = f.when(moment.between(f.lit(_FIRST).cast(WITH_ZONE), f.lit(_LAST).cast(WITH_ZONE)), moment)
    return without_zone(moment) if naive else moment


def without_zone(moment: Column) -> Column:
    """Return a moment as Spark's type without a zone, in UTC (a cast would give it in the zone of the session)."""
    return f.timestamp_add("MICROSECOND", f.unix_micros(moment), f.lit("1970-01-01").cast(WITHOUT_ZONE))


def timestamp_micros(column: Column, type_: Type) -> Column:
    """Return microseconds since the epoch; a timestamp without a zone is in UTC, whatever the session says.

    Where the name of the type does not tell, Spark drops the branch that does not apply as soon as it knows the column.
    """
    if type_.name == WITH_ZONE:
        return f.unix_micros(column)
    in_utc = interval_micros(column - f.lit("1970-01-01 00:00:00").cast(WITHOUT_ZONE))
    if type_.name == WITHOUT_ZONE:
        return in_utc
    return f.when(f.typeof(column) == f.lit(WITHOUT_ZONE), in_utc).otherwise(f.unix_micros(column))


def interval_micros(column: Column) -> Column:
    """Return an interval of days and seconds as microseconds."""
    seconds = column.cast(t.DayTimeIntervalType(t.DayTimeIntervalType.SECOND, t.DayTimeIntervalType.SECOND))
    million = f.lit(1_000_000).cast(t.DecimalType(7, 0))
    return (seconds.cast(t.DecimalType(19, 6)) * million).cast("bigint")


def _from_parts(text: Column, pattern: str) -> Column:
    """Rewrite a text to the one form, by the groups of `pattern`."""
    names = re.findall(r"\(\?P<(\w+)>", pattern)
    java = _for_java(pattern)
    parts = {name: f.regexp_extract(text, java, i) for i, name in enumerate(names, start=1)}
    fraction = f.rpad(parts["f"], 6, "0") if "f" in parts else f.lit("0")
    date = [_year(parts), f.lit("-"), _month(parts), f.lit("-"), _two(parts, "d", "1")]
    time = [_hour(parts), f.lit(":"), _two(parts, "mi", "0"), f.lit(":"), _two(parts, "s", "0"), f.lit("."), fraction]
    return f.when(text.rlike(java), f.concat(*date, f.lit("T"), *time, _zone(parts)))


def _two(parts: dict[str, Column], name: str, default: str) -> Column:
    """Return a part with two digits, or its default where the pattern or the text leaves it out."""
    if name not in parts:
        return f.lit(default.rjust(2, "0"))
    return f.lpad(f.regexp_replace(parts[name], r"\A\z", default), 2, "0")


def _year(parts: dict[str, Column]) -> Column:
    if "yy" in parts:
        return f.concat(f.lit("20"), f.lpad(parts["yy"], 2, "0"))
    return f.regexp_replace(parts["y"], r"\A\z", "1970") if "y" in parts else f.lit("1970")


def _month(parts: dict[str, Column]) -> Column:
    if "mon" not in parts:
        return _two(parts, "mo", "1")
    short = f.regexp_replace(f.lower(f.substring(parts["mon"], 1, 3)), r"\A\z", _MONTHS[0])
    return f.lpad(f.array_position(f.array(*map(f.lit, _MONTHS)), short).cast("string"), 2, "0")


def _hour(parts: dict[str, Column]) -> Column:
    if "h12" not in parts:
        return _two(parts, "h", "0")
    hour = _two(parts, "h12", "12").try_cast("int")
    afternoon = f.when(f.lower(parts["a"]) == f.lit("pm"), 12).otherwise(0) if "a" in parts else f.lit(0)
    return f.when(hour.between(1, 12), f.lpad((hour % 12 + afternoon).cast("string"), 2, "0"))


def _zone(parts: dict[str, Column]) -> Column:
    if "z" not in parts:
        return f.lit("Z")
    offset = f.regexp_replace(f.rpad(f.replace(parts["z"], f.lit(":"), f.lit("")), 5, "0"), "(...)(..)", "$1:$2")
    return f.when(parts["z"].isin("", "Z"), f.lit("Z")).otherwise(offset)
