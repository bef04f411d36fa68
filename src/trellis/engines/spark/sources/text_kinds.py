"""Columns of text on Spark: the kinds of values they have, found in one pass, and the types that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from trellis.engines.spark.sources.loading import FileJob, column_of
from trellis.engines.spark.sources.schema import (
    NUMBERS,
    TIMES,
    Looks,
    convert_text,
    looks_like_time,
    parse_times,
    text_type,
    time_type,
)
from trellis.errors import warn
from trellis.language.schema import TIME_NAMES

_NOTHING = Looks(0)


@dataclass(frozen=True)
class TextKinds:
    """The kinds of values that a column of text has."""

    seen: Looks
    present: int = 0
    times: int = 0
    numbers: int = 0
    numbers_seen: Looks = _NOTHING

    def majority(self) -> str | None:
        """The type that more than half of the values have, if they are times or numbers."""
        if 2 * self.times > self.present:
            return time_type(self.seen)
        return text_type(self.numbers_seen) if 2 * self.numbers > self.present else None


def survey(kinds: DataFrame, time: str | None) -> tuple[dict[str, TextKinds], dict[str, Any]]:
    """Look through columns of `Looks` in one pass; also give the first value of each other column."""
    masks = [field.name for field in kinds.schema if isinstance(field.dataType, t.IntegerType)]
    others = [name for name in kinds.columns if name not in masks]
    totals = [f.bit_or(column_of(name)).alias(f"seen{i}") for i, name in enumerate(masks)]
    totals += [f.first(column_of(name), ignorenulls=True).alias(f"first{i}") for i, name in enumerate(others)]
    totals += _majority(column_of(time)) if time in masks else []
    row = kinds.agg(*totals).collect()[0].asDict() if totals else {}
    found = {name: TextKinds(Looks(row[f"seen{i}"] or 0)) for i, name in enumerate(masks)}
    if time is not None and time in masks:
        found[time] = replace(
            found[time], present=row["present"], times=row["times"], numbers=row["numbers"],
            numbers_seen=Looks(row["numbers_seen"] or 0),
        )  # fmt: skip
    _warn_of_zones(found, time)
    return found, {name: row[f"first{i}"] for i, name in enumerate(others)}


def _warn_of_zones(columns: dict[str, TextKinds], time: str | None) -> None:
    """Warn of a time column in which some texts tell a zone and some do not."""
    for name in [name for name in columns if name in (TIME_NAMES if time is None else (time,))]:
        kinds = columns[name]
        is_time = text_type(kinds.seen) in TIMES or kinds.majority() in TIMES
        if is_time and kinds.seen & Looks.ZONED and kinds.seen & Looks.UNZONED:
            warn(f"in the column `{name}` some times have a zone; the others are taken as UTC")


def _majority(kind: Column) -> list[Column]:
    is_number = kind.bitwiseAND(f.lit(int(NUMBERS))) != 0
    return [
        f.count(kind).alias("present"),
        f.count_if(kind.bitwiseAND(f.lit(int(Looks.TIME))) != 0).alias("times"),
        f.count_if(is_number).alias("numbers"),
        f.bit_or(f.when(is_number, kind)).alias("numbers_seen"),
    ]


def with_times(job: FileJob, frame: DataFrame) -> DataFrame:
    """Make times of the text in the time column of a frame that has its types."""
    time = job.time
    if time is None or time not in frame.columns:
        return frame
    kind = frame.schema[time].dataType
    text = column_of(time).cast("string")
    if job.time_format is not None and isinstance(kind, t.StringType | t.IntegralType):
        return frame.withColumn(time, parse_times(text, job.time_format))
    if not isinstance(kind, t.StringType):
        return frame
    found, _ = survey(frame.select(looks_like_time(text).alias(time)), time)
    target = found[time].majority()
    return frame.withColumn(time, convert_text(text, target)) if target in TIMES else frame
