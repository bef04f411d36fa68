"""Conditions on several events as tables of instructions, and the error for numbers that do not fit them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition, TrellisError
from trellis.events.columns.evaluate import evaluate
from trellis.kernels.expression import program as kernel
from trellis.kernels.expression.sums import MOST_PARTS
from trellis.language.bound import Column, Reference, Value, columns_of
from trellis.properties import cached_property


class TooWideForKernels(TrellisError):
    """A computation over several events that does not fit 64 bits, or a function that programs do not know."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"`{what}` cannot be computed from several events at once: decimals have up to 18 digits there, and only "
            "FLOOR, CEIL, ROUND, SQRT, LN and EXP of numbers are known",
            "Compute with doubles, or apply the function to the columns of each event by itself.",
        )


@dataclass(frozen=True)
class ProgramTables:
    """Programs, and the conditions that they are made of."""

    programs: kernel.Programs
    values: tuple[Value, ...]
    columns: Mapping[str, pa.Array]

    def instructions(self, program: int) -> NDArray[np.int64]:
        """Return the instructions of a program."""
        code = self.programs.code
        return code[code[program] : code[program + 1]].reshape(-1, kernel.FIELDS)

    @cached_property
    def longest(self) -> int:
        """The most instructions of a program."""
        return int(np.diff(self.programs.code[: len(self.values) + 1]).max(initial=1)) // kernel.FIELDS + 1

    def scratch(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return the arrays that a kernel needs to run programs."""
        whole = np.zeros(self.longest + MOST_PARTS, np.int64)  # whose rest is room for sums
        return whole, np.zeros(self.longest), np.zeros(self.longest, np.bool_)

    def misfit(self, program: int, event_of: Callable[[Reference], int]) -> TrellisError:
        """Return the error for numbers that leave 64 bits.

        Parameters
        ----------
        program
            The program that told of it.
        event_of
            Gives the event of each reference that it reads; -1 for none.
        """
        value = self.values[program]
        if any(column.function for column in columns_of(value)):
            return OverflowInCondition(f"`{getattr(value, 'source', '')}` leaves 64 bits", "Compute with doubles.")

        def resolve(column: Column) -> pa.Array:
            event, values = event_of(column.references[0]), self.columns[column.name]
            return pa.nulls(1, values.type) if event < 0 else values.slice(event, 1)

        try:
            evaluate(value, resolve, 1)
        except OverflowInCondition as error:
            return error
        return TooWideForKernels(getattr(value, "source", "") or getattr(value, "function", ""))
