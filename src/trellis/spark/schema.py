"""Spark's types, as the query language knows them."""

from __future__ import annotations

import re

from pyspark.sql import types as t

from trellis.language.schema import BOOLEAN, DOUBLE, DURATION, INTEGER, STRING, TIMESTAMP, UNKNOWN, Kind, Type

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
