"""Types on Spark: those of columns, as the query language knows them, and those that text turns out to have."""

from __future__ import annotations

import re
from enum import IntFlag

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from trellis.io.infer import BOOLEAN as BOOLEAN_TEXT
from trellis.io.infer import INTEGER as INTEGER_TEXT
from trellis.io.infer import NUMBER as NUMBER_TEXT
from trellis.io.times import ISO, SLASHED, java_pattern_to_regex
from trellis.language.schema import (
    BOOLEAN,
    DOUBLE,
    DURATION,
    INTEGER,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    Kind,
    Type,
)

_WIDEST = 38

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
    (t.TimestampType, TIMESTAMP),
    (t.TimestampNTZType, TIMESTAMP),
    (t.DateType, Type(Kind.DATE)),
    (t.DayTimeIntervalType, DURATION),
    (t.NullType, UNKNOWN),
)


def from_spark(data_type: t.DataType) -> Type:
    """Return the type of a Spark column.

    Parameters
    ----------
    data_type
        The type as Spark has it.

    Returns
    -------
    trellis.language.schema.Type
        `timestamp_ntz` is a timestamp, in UTC. A decimal carries its precision in its name, where
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
    """What a text looks like; each text has one of these, a column the union of its texts'."""

    LONG = 1
    WIDE_INTEGER = 2  # does not fit 64 bits
    REAL = 4
    BOOLEAN = 8
    TIME = 16
    OTHER = 32


NUMBERS = Looks.LONG | Looks.WIDE_INTEGER | Looks.REAL


def looks(text: Column) -> Column:
    """Return what a text looks like, as a number of `Looks`; NULL for NULL."""
    return (
        f.when(text.isNull(), f.lit(None))
        .when(text.rlike(INTEGER_TEXT), _either(text.try_cast("bigint").isNotNull(), Looks.LONG, Looks.WIDE_INTEGER))
        .when(text.rlike(NUMBER_TEXT), f.lit(int(Looks.REAL)))
        .when(text.rlike(BOOLEAN_TEXT), f.lit(int(Looks.BOOLEAN)))
        .otherwise(looks_like_time(text))
    )


def looks_like_time(text: Column) -> Column:
    """Return `TIME` or `OTHER` for a text; NULL for NULL."""
    return f.when(text.isNotNull(), _either(parse_times(text).isNotNull(), Looks.TIME, Looks.OTHER))


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
        `bigint`, `double`, `boolean`, `timestamp` or `string`.
    """
    if seen == Looks.LONG:
        return "bigint"
    if seen & Looks.REAL and not seen & ~NUMBERS:
        return "double"
    return {Looks.BOOLEAN: "boolean", Looks.TIME: "timestamp"}.get(seen, "string")


def convert_text(text: Column, target: str) -> Column:
    """Convert text to a type that `text_type` names; what does not fit becomes NULL."""
    match target:
        case "boolean":
            return f.when(text.rlike(BOOLEAN_TEXT), f.lower(text) == f.lit("true"))
        case "timestamp":
            return parse_times(text)
        case "string":
            return text
        case _:
            return f.when(text.rlike(NUMBER_TEXT), text).try_cast(target)


# --- Text that tells a time -------------------------------------------------------------------------------------

_FIRST_MICROS = -62_135_596_800_000_000
_END_MICROS = 253_402_300_800_000_000
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ZONE_AT_END = r"(Z|[+-][0-9]{2}:[0-9]{2})\z"


def parse_times(text: Column, time_format: str | None = None) -> Column:
    """Return the times that texts tell, NULL where they tell none: as `trellis.io.times.parse_times` reads them.

    Parameters
    ----------
    text
        A column of text.
    time_format
        A pattern such as `dd.MM.yyyy HH:mm:ss`; without one, ISO 8601 and `yyyy/MM/dd HH:mm[:ss]`.

    Returns
    -------
    pyspark.sql.Column
        A `timestamp`; text without a zone is in UTC whatever the session's time zone.

    Raises
    ------
    UsageError
        If the pattern is wrong.
    """
    if time_format is not None:
        return _by_parts(text, java_pattern_to_regex(time_format))
    dashed = f.when(text.rlike(SLASHED), f.translate(text, "/", "-")).otherwise(text)
    moment = f.when(dashed.rlike(_for_java(ISO)), _completed(dashed)).try_cast("timestamp")
    return f.when(_in_range(f.unix_micros(moment)), moment)


def _for_java(pattern: str) -> str:
    return pattern.replace("(?P<", "(?<")


def _completed(iso: Column) -> Column:
    """Add to an ISO time what Spark's own parser wants: seconds and a zone."""
    seconds = f.when(f.length(iso) == f.lit(10), f.concat(iso, f.lit("T00:00:00")))
    seconds = seconds.when(f.substring(iso, 17, 1) == f.lit(":"), iso)
    full = seconds.otherwise(f.concat(f.substring(iso, 1, 16), f.lit(":00"), f.substring(iso, 17, 6)))
    return f.when(full.rlike(_ZONE_AT_END), full).otherwise(f.concat(full, f.lit("Z")))


def _in_range(micros: Column) -> Column:
    return (micros >= f.lit(_FIRST_MICROS)) & (micros < f.lit(_END_MICROS))


def _by_parts(text: Column, pattern: str) -> Column:
    """Cut each text into year, month, ... by the groups of `pattern`, and compute."""
    java = _for_java(pattern)
    names = re.findall(r"\(\?P<(\w+)>", pattern)
    parts = {name: f.regexp_extract(text, java, i) for i, name in enumerate(names, start=1)}
    hour, minute, second = _hour(parts), _number(parts, "mi", 0), _number(parts, "s", 0)
    offset, is_zone = _offset(parts)
    seconds = f.unix_date(_date(parts)).cast("bigint") * 86_400 + hour * 3_600 + minute * 60 + second - offset
    fraction = f.rpad(parts["f"], 6, "0").try_cast("bigint") if "f" in parts else f.lit(0)
    micros = seconds * 1_000_000 + fraction
    fits = (hour < 24) & (minute < 60) & (second < 60) & is_zone & _in_range(micros)
    return f.when(text.rlike(java) & fits, f.timestamp_micros(micros))


def _number(parts: dict[str, Column], name: str, default: int) -> Column:
    if name not in parts:
        return f.lit(default).cast("bigint")
    return f.coalesce(parts[name].try_cast("bigint"), f.lit(default).cast("bigint"))


def _date(parts: dict[str, Column]) -> Column:
    year = _number(parts, "yy", 0) + 2000 if "yy" in parts else _number(parts, "y", 1970)
    month = _number(parts, "mo", 1)
    if "mon" in parts:
        short = f.lower(f.substring(parts["mon"], 1, 3))
        month = f.when(short == f.lit(""), f.lit(1)).otherwise(f.array_position(f.array(*map(f.lit, _MONTHS)), short))
    padded = [f.lpad(year.cast("string"), 4, "0")]
    padded += [f.lpad(x.cast("string"), 2, "0") for x in (month, _number(parts, "d", 1))]
    return f.concat_ws("-", *padded).try_cast("date")


def _hour(parts: dict[str, Column]) -> Column:
    if "h12" not in parts:
        return _number(parts, "h", 0)
    hour = _number(parts, "h12", 12)
    afternoon = f.when(f.lower(parts["a"]) == f.lit("pm"), 12).otherwise(0) if "a" in parts else f.lit(0)
    return f.when(hour.between(1, 12), hour % 12 + afternoon)


def _offset(parts: dict[str, Column]) -> tuple[Column, Column]:
    """Return the seconds that the zone is ahead of UTC, and whether such a zone exists."""
    if "z" not in parts:
        return f.lit(0), f.lit(True)
    digits = f.rpad(f.regexp_replace(parts["z"], "[:Z]", ""), 5, "0")
    number = f.coalesce(f.substring(digits, 2, 4).try_cast("bigint"), f.lit(0))
    hours, minutes = f.floor(number / 100), number % 100
    sign = f.when(digits.startswith("-"), -1).otherwise(1)
    exists = (minutes < 60) & (hours * 60 + minutes <= 18 * 60)
    return sign * (hours * 3_600 + minutes * 60), exists
