"""The order of ease of the values of registers: where conditions only ask whether they are small, or great.

A condition `FIRST(a).x < b.x` is met by whatever meets it with a greater first `a.x`; so of two matches that differ in
nothing else, the one with less goes on more easily. Where something is asked of a register in any other way, it is not
told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition
from trellis.events.columns.evaluate import evaluate
from trellis.events.columns.ordering import rank_codes
from trellis.kernels.explore import easier as e
from trellis.language.bound import Column, Operation, Reference, Value, columns_of, with_columns
from trellis.language.syntax import Which
from trellis.plan.cuts import FLIPPED
from trellis.plan.registers import GuardTerm, Register, RegisterKind

BELOW, ABOVE = ("<", "<="), (">", ">=")
OF_EVENTS = (RegisterKind.FIRST, RegisterKind.LAST, RegisterKind.NTH, RegisterKind.EXTREME, RegisterKind.BEST)
OF_NUMBERS = (RegisterKind.SUM, RegisterKind.TALLY, RegisterKind.LENGTH)
WIDEST = np.iinfo(np.int64).max


class Wish(NamedTuple):
    """A value that a condition wants to be small, or great."""

    value: Value
    small: bool


def ease_of(
    guard_terms: tuple[GuardTerm, ...], registers: Sequence[Register], columns: Mapping[str, pa.Array], size: int
) -> e.RegisterEase:
    """Return which values of registers are easier; see `trellis.kernels.explore.easier`."""
    kinds, signs, codes = untold(len(registers), size)
    for slot, register in enumerate(registers):
        users = [*_users(register, guard_terms)]
        forbids = {one.absent is not None for one, _ in users}
        if len(forbids) != 1:
            continue
        sign = -1 if True in forbids else 1
        if register.kind is RegisterKind.SAME:
            kinds[slot], signs[slot] = e.ONE_VALUE, sign
            continue
        if register.kind is RegisterKind.EXTREME:
            assert register.value is not None
            wish: Wish | None = Wish(register.value, register.greatest)
        else:
            every = {_wish_of(one, reference) for one, reference in users}
            wish = every.pop() if len(every) == 1 else None
        if wish is None:
            continue
        if register.kind in OF_NUMBERS:
            whole = register.kind is not RegisterKind.SUM or not pa.types.is_floating(columns[register.columns[0]].type)
            if whole and register.nth >= 0:
                kinds[slot], signs[slot] = e.NUMBERS, sign if wish.small else -sign
            continue
        found = _codes(wish, columns, size) if register.kind in OF_EVENTS else None
        if found is not None:
            kinds[slot] = e.EVENTS
            lacking = found == WIDEST
            codes[slot] = sign * found
            if register.kind is RegisterKind.BEST:  # of others it may be one that has a value later
                codes[slot, lacking] = e.NO_VALUE
    return e.RegisterEase(kinds, signs, codes)


def untold(registers: int, size: int) -> e.RegisterEase:
    """Return the order of ease of registers of which no value is easier than another."""
    numbers = np.zeros((registers, size), np.int64)
    return e.RegisterEase(np.full(registers, e.UNTOLD), np.zeros(registers, np.int64), numbers)


def _users(register: Register, guard_terms: tuple[GuardTerm, ...]) -> Iterator[tuple[GuardTerm, Reference]]:
    """Yield the terms that ask for a register, with what names it."""
    for one in guard_terms:
        for reference in one.references:
            found = one.register(reference)
            if found == register:
                yield one, reference
            elif found is not None and found.variable == register.variable:
                beside = {RegisterKind.PAIRS: RegisterKind.LAST, RegisterKind.NTH: RegisterKind.COUNT}
                if beside.get(found.kind) is register.kind:
                    yield one, reference


def _wish_of(one: GuardTerm, reference: Reference) -> Wish | None:
    """Return the value of what a term names that it only wants to be small, or great; None if it asks otherwise."""
    value = one.value
    if not isinstance(value, Operation) or value.function not in FLIPPED or len(value.arguments) != 2:
        return None
    if reference.which is Which.LATER:
        reference = reference._replace(which=Which.EARLIER)  # of the last event, which is the earlier one of the next
    for own, other, function in zip(
        value.arguments, value.arguments[::-1], (value.function, FLIPPED[value.function]), strict=True
    ):
        named = {r for c in columns_of(own) for r in c.references}
        if reference not in named or function not in (*BELOW, *ABOVE):
            continue
        if reference in {r for c in columns_of(other) for r in c.references}:
            return None
        if reference.function:
            if not isinstance(own, Column):
                return None
            plain: Value = replace(own, var="", which=Which.EACH, nth=None)
        elif len(named) == 1:
            plain = with_columns(own, lambda column: replace(column, var="", which=Which.EACH, nth=None))
        else:
            return None
        return Wish(plain, function in BELOW)
    return None


def _codes(wish: Wish, columns: Mapping[str, pa.Array], size: int) -> NDArray[np.int64] | None:
    """Return a code for each event, the easiest least; the greatest number where there is no value."""
    value = with_columns(wish.value, lambda column: replace(column, function=""))
    try:
        values = evaluate(value, lambda column: columns[column.name], size)
    except OverflowInCondition:
        return None
    if pa.types.is_null(values.type):
        return np.full(size, WIDEST)
    codes = rank_codes([values])[0].astype(np.int64)
    return np.where(codes < 0, WIDEST, codes if wish.small else -codes)
