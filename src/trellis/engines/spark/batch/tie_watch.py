"""Ties that the tasks of a lazy frame meet: the driver hears of them in the middle of the user's action."""

from __future__ import annotations

from typing import Any

from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession

from trellis.engines.spark.session.masters import is_connect
from trellis.events.ties import TieCount
from trellis.language.schema import Schema


class TieWatch(AccumulatorParam[TieCount]):
    """Adds the ties of tasks, and warns in the driver once there are many.

    Spark brings what a task has added to the driver before the action ends that ran it, so the user reads it there.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema, self.stated = schema, False

    def zero(self, value: TieCount) -> TieCount:
        """Return no ties."""
        return TieCount()

    def addInPlace(self, value1: TieCount, value2: TieCount) -> TieCount:
        """Return the ties of both."""
        total = value1 + value2
        if not self.stated and total.many and TaskContext.get() is None:
            self.stated = True
            total.warn(self.schema)
        return total


def watch_ties(session: SparkSession, schema: Schema) -> Accumulator[Any] | None:
    """Return where tasks add their ties; None on Spark Connect, which has no such thing."""
    if is_connect(session):
        return None
    return session.sparkContext.accumulator(TieCount(), TieWatch(schema))
