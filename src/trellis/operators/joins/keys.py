"""The keys of ORDER BY over matches of joins, as programs over the slots of each arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition
from trellis.events.columns.evaluate import evaluate
from trellis.events.columns.ordering import group_codes, rank_codes
from trellis.events.columns.program import compile_programs
from trellis.events.columns.program_tables import ProgramTables, TooWideForKernels
from trellis.events.slice import Slice
from trellis.kernels.expression import program as instructions
from trellis.kernels.join.block import BLOCK, BlockScratch
from trellis.kernels.join.bounds import Intervals, MatchKeys
from trellis.language.bound import (
    Column,
    Constant,
    Operation,
    Ordering,
    Output,
    OutputKind,
    Reference,
    Value,
    columns_of,
    with_columns,
)
from trellis.language.schema import INTEGER, Kind
from trellis.language.syntax import Which
from trellis.operators.joins.ranges import PROGRAMMED, ROUNDED, WIDEST, ColumnRanges
from trellis.operators.joins.tables import SlotArm

REALS = (
    instructions.LOAD_REAL, instructions.CONSTANT_REAL, *range(instructions.ADD_REAL, instructions.TO_REAL + 1),
    instructions.COALESCE_REAL, instructions.CHOOSE_REAL,
)  # fmt: skip
LOADS = (instructions.LOAD_WHOLE, instructions.LOAD_REAL)


@dataclass
class KeyValues:
    """Makes values of one match out of keys; `columns` are those of the events, and the ranks that direct keys read."""

    events: Slice
    columns: dict[str, pa.Array]

    def of(self, output: Output, arm: SlotArm) -> Value | None:
        """Return a key of the matches of an arm, or None where no program gives it."""
        if output.kind is OutputKind.IDS and not output.list:
            return self._ranked(str(output.variable), "", self.events.ids, arm, True)
        column = output.column
        if output.kind in (OutputKind.ATTRIBUTE, OutputKind.AGGREGATE) and column is not None:
            if not self._is_plain(output):
                return None
            direct = output.kind is OutputKind.ATTRIBUTE
            if direct and column.which is Which.NTH and column.nth != 1:
                return Constant(None, INTEGER)
            return self._ranked(column.var, column.name, self.events.columns[column.name], arm, direct)
        return self._value(output, arm)

    def _ranked(self, variable: str, name: str, values: pa.Array, arm: SlotArm, direct: bool) -> Value:
        """Return an attribute as its rank among all values; only of `direct` ones is NaN a value."""
        if variable not in arm.arm.variables:
            return Constant(None, INTEGER)
        ranks = f"rank of {name}, {direct}"
        if ranks not in self.columns:
            missing = values.is_null().to_numpy(zero_copy_only=False) if direct else rank_codes([values])[0] < 0
            codes = group_codes([values])[0] if len(values) else np.empty(0, np.int64)
            self.columns[ranks] = pa.array(codes, mask=missing)
        return Column(variable, ranks, Which.EACH, None, INTEGER)

    @staticmethod
    def _is_plain(output: Output) -> bool:
        """Return whether what is computed of one event is its attribute itself."""
        if output.list or output.value is not None or output.arguments:
            return False
        return output.function != "AVG" or (output.column is not None and output.column.type.kind is Kind.DOUBLE)

    def _value(self, output: Output, arm: SlotArm) -> Value | None:
        """Return the value of a part of a key; None where no program gives it."""
        match output.kind:
            case OutputKind.LENGTH:
                return Constant(len(arm.slots), INTEGER)
            case OutputKind.CONSTANT:
                return output.constant
            case OutputKind.AGGREGATE if output.function == "COUNT":
                return Constant(int(output.variable in arm.arm.variables), INTEGER)
            case OutputKind.ATTRIBUTE | OutputKind.AGGREGATE if output.column is not None and self._is_plain(output):
                column = output.column
                beyond = column.which is Which.NTH and column.nth != 1
                if beyond or column.var not in arm.arm.variables:
                    return Constant(None, output.type)
                return replace(column, which=Which.EACH, nth=None)
            case OutputKind.EXPRESSION:
                parts = [self._value(argument, arm) for argument in output.arguments]
                known = tuple(part for part in parts if part is not None)
                if len(known) < len(parts):
                    return None
                if output.value is None:
                    return Operation(output.function, known, output.type, output.function)
                named = {f"_{i}": part for i, part in enumerate(known)}
                return with_columns(output.value, lambda column: named[column.name])
        return None


def match_keys(orderings: Sequence[Ordering], arms: Sequence[SlotArm], events: Slice) -> MatchKeys | None:
    """Return the keys as the search takes them; None where one is no program, or may leave 64 bits.

    Parameters
    ----------
    orderings
        The keys of ORDER BY.
    arms
        The arms of the pattern.
    events
        The events, with the columns that the keys read.
    """
    columns = dict(events.columns)
    values, ranges = KeyValues(events, columns), ColumnRanges(columns)
    found: list[tuple[Value, SlotArm]] = []
    for arm in arms:
        for ordering in orderings:
            value = values.of(ordering.output, arm)
            if value is None or not ranges.can_compute(value, PROGRAMMED | ROUNDED):
                return None
            low, high = ranges.of(value) or (0, 0)
            if low < 3 - WIDEST or high > WIDEST - 3:  # words of NULL lie beyond
                return None
            found.append((value, arm))

    def slot(number: int, reference: Reference) -> int:
        return found[number][1].slot(reference.var)

    try:
        tables = compile_programs([value for value, _ in found], slot, columns, len(events))
    except (TooWideForKernels, OverflowInCondition):
        return None
    return _with_loads(tables, np.array([ordering.descending for ordering in orderings]))


def codes_of_first(items: Sequence[Output], arm: SlotArm, slot: int, events: Slice) -> NDArray[np.int64] | None:
    """Return for each event numbers that tell values of LIMIT PER apart, if they are of one slot's event alone."""
    columns = dict(events.columns)
    values, found = KeyValues(events, columns), list[pa.Array]()
    for item in items:
        value = values.of(item, arm)
        if value is None or {arm.slot(column.var) for column in columns_of(value)} != {slot}:
            return None
        try:
            found.append(evaluate(value, lambda column: columns[column.name], len(events)))
        except OverflowInCondition:
            return None
    return group_codes(found)[0]


def _with_loads(tables: ProgramTables, falling: NDArray[np.bool_]) -> MatchKeys:
    """Number the loads of programs, and rank what they read."""
    programs, number, longest = tables.programs, len(tables.values), tables.longest
    code = programs.code[number + 1 :].reshape(-1, instructions.FIELDS)
    loads: dict[tuple[int, int, int], int] = {}
    for row in code[np.isin(code[:, 0], LOADS)]:
        loads.setdefault((int(row[0]), int(row[1]), int(row[2])), len(loads))
    for place in np.flatnonzero(np.isin(code[:, 0], LOADS)).tolist():
        op, column, slot = code[place, :3].tolist()
        code[place, 3] = loads[op, column, slot]
    ranks = [_ranks(programs, op, column) for op, column, _ in loads]
    last = [code[(end - number - 1) // instructions.FIELDS - 1, 0] for end in programs.code[1 : number + 1].tolist()]
    size = len(loads)
    kinds = np.int64, np.int64, np.float64, np.float64, np.bool_, np.bool_, np.bool_
    return MatchKeys(
        programs, falling, np.isin(last, REALS), np.array([slot for _, _, slot in loads], np.int64),
        np.array(ranks, np.int64).reshape(size, programs.ints.shape[1]),
        np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.bool_),
        BlockScratch(
            np.zeros((longest, BLOCK), np.int64), np.zeros((longest, BLOCK)), np.zeros((longest, BLOCK), np.bool_),
            np.zeros(longest, np.int64), np.zeros(BLOCK, np.int64),
        ),
        Intervals(*(np.zeros(longest, kind) for kind in kinds)),
        np.zeros(len(falling), np.int64), np.zeros(BLOCK, np.int64),
    )  # fmt: skip


def _ranks(programs: instructions.Programs, op: int, column: int) -> NDArray[np.int64]:
    """Return the rank of each event's value among all; -1 for NULL."""
    values = programs.reals[column] if op == instructions.LOAD_REAL else programs.ints[column]
    there = ~np.isnan(values) if op == instructions.LOAD_REAL else programs.there[column]
    ranks = np.unique(values, return_inverse=True)[1]
    return np.where(there, ranks, -1)
