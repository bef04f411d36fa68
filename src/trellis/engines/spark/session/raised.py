"""Errors that columns of Spark raise on purpose, and how a failed job tells what it is about."""

from __future__ import annotations

import json
import re
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as f

from trellis.errors import DataError, OverflowInCondition, TrellisError
from trellis.language.schema import Kind
from trellis.language.times import format_timestamp

SPARK_ERRORS = (PySparkException, Py4JError)
"""The exceptions that a failed job may raise: pyspark does not translate all that Java throws."""

MARKER = "[TRELLIS_OVERFLOW]"
_DATA_MARKER = "[TRELLIS_DATA]"
_END = "[/TRELLIS]"


def translate_error(error: BaseException) -> TrellisError | None:
    """Return the mistake that a failed job of Spark's is about, or None if it is about something else.

    Returns
    -------
    trellis.errors.TrellisError or None
        `OverflowInCondition` where an integer did not fit 64 bits; `DataError` for what `raise_data_error` raised
        and where a file could not be read.
    """
    said = str(error)
    for marker, translate in ((MARKER, _overflow), (_DATA_MARKER, _data_error)):
        if marker in said:
            about, _, values = said.partition(marker)[2].partition(_END)[0].rpartition("} ")
            return translate(json.loads(about + "}"), values.split())
    unread = re.search(r"FAILED_READ_FILE[.\w]*\].* reading file (?:file:/*(?=/))?(\S+?)\.(?:\s|$)", said)
    if unread is None:
        return None
    if "CSV header" in said:
        return DataError(
            f"{unread[1]} has other columns than the events have, or has them in another order",
            "Write all files with one header.",
        )
    other = re.search(
        r"Parquet column \W*([^\]\n]+?)\W*\. Expected Spark type \W*(\w+)\W*, actual Parquet type \W*(\w+)", said
    )
    if other is not None:
        return DataError(
            f"column `{other[1]}` of {unread[1]} is {other[3]}, and cannot be read as {other[2]}",
            "Write the column with one type in all files.",
        )
    return DataError(f"{unread[1]} cannot be read: its content is damaged or has changed.")


def raise_data_error(what: str, hint: str | None = None) -> Column:
    """Return a column that raises where it is evaluated; `translate_error` makes it a `DataError` again."""
    return f.raise_error(error_message({"what": what, "hint": hint}, marker=_DATA_MARKER))


def error_message(about: dict[str, Any], *values: Column, marker: str = MARKER) -> Column:
    """Return the text of an error as a column, with values of the row; `translate_error` reads it."""
    parts = [part for x in values for part in (x.cast("string"), f.lit(" "))]
    return f.concat(f.lit(f"{marker} {json.dumps(about)} "), *parts, f.lit(_END))


def _data_error(about: dict[str, Any], _: list[str]) -> DataError:
    return DataError(about["what"], about["hint"])


def _overflow(about: dict[str, Any], values: list[str]) -> OverflowInCondition:
    if about["function"] == "date":
        return OverflowInCondition(f"the date {values[0]} is too far away to be counted in microseconds")
    kinds = [Kind(kind) for kind in about["kinds"]]
    shown = [_shown(int(x), kind) for x, kind in zip(values, kinds, strict=True)]
    function = about["function"]
    what = f" {function} ".join(shown) if len(shown) > 1 else f"{function} {shown[0]}"
    return OverflowInCondition(
        f"`{about['expression']}` does not fit 64 bits in a row where it is {what}",
        "Multiply by 1.0 first to compute with doubles." if set(kinds) == {Kind.INTEGER} else None,
    )


def _shown(value: int, kind: Kind) -> str:
    if kind in (Kind.TIMESTAMP, Kind.DATE):
        try:
            return format_timestamp(value)
        except (OverflowError, ValueError):
            return f"{value} microseconds after 1970"
    return f"{value} microseconds" if kind is Kind.DURATION else str(value)
