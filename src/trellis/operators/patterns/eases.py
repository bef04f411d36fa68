"""The registers that only make it easier for a match to go on if they hold more.

Of `COUNT(a) >= 3` a match with more events can go on as one with fewer can, and of `MAX(a.x) > b.x` one with a greater
`a.x`. So what follows a match may follow another that has more there, and is the same in all else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.kernels.explore import tables as t
from trellis.language.bound import Column, Operation
from trellis.operators.patterns.tables import PatternTables
from trellis.plan.cuts import FLIPPED
from trellis.plan.registers import GuardTerm, Register, RegisterKind

Ints = NDArray[np.int64]
NUMBERS = (RegisterKind.TALLY, RegisterKind.LENGTH)


def eased_slots(compiled: PatternTables) -> Ints:
    """Return for each slot -1 where a greater number is as easy, the row of codes of which a greater one is, or 0."""
    found = np.zeros(compiled.number(t.WIDTH), np.int64)
    if compiled.number(t.GROUPS) or compiled.number(t.NOTS) or compiled.number(t.RESULTS):
        return found
    places = range(t.at(compiled.tables, t.R_BEGINS, compiled.number(t.VARIABLES)))
    slots = [int(t.at(compiled.tables, t.R_SLOT, place)) for place in places]
    for slot, register in enumerate(compiled.registers):
        if not all(_is_eased(one, register) for one in compiled.guard_terms if _uses(one, register)):
            continue
        if register.kind in NUMBERS and register.nth >= 0:
            found[slot] = -1
        elif register.kind is RegisterKind.BEST:
            found[slot] = int(compiled.tables[t.R_CODES]) + slots.index(slot)
    return found


def _uses(one: GuardTerm, register: Register) -> bool:
    return any(one.register(reference) == register for reference in one.references)


def _is_eased(one: GuardTerm, register: Register) -> bool:
    """Return whether a term that is true stays so if a register of it holds more."""
    if one.noted or one.stated or one.result or one.absent is not None or one.gathered or one.over or one.notes:
        return False
    value = one.value
    if not isinstance(value, Operation) or value.function not in FLIPPED or len(value.arguments) != 2:
        return False
    left, right = value.arguments
    own = [reference for reference in one.references if one.register(reference) == register]
    functions = ("MIN",) if register.kind is RegisterKind.BEST and not register.greatest else ("MAX", "COUNT", "LENGTH")
    for side, function in ((left, value.function), (right, FLIPPED[value.function])):
        if isinstance(side, Column) and side.function in functions and len(own) == 1:
            wanted = ("<", "<=") if side.function == "MIN" else (">", ">=")
            return function in wanted and side.var == own[0].var and side.which is own[0].which
    return False
