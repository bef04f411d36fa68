"""Events by their values, for terms that equate an event that a variable takes with one that is remembered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.events.columns.program_tables import ProgramTables
from trellis.kernels.explore import tables as t
from trellis.kernels.expression.program import COMPARE_COLUMNS, EQUAL
from trellis.language.bound import Reference
from trellis.language.syntax import Which
from trellis.operators.patterns.letters import Alphabet
from trellis.operators.patterns.states import ints
from trellis.operators.patterns.variables import Variables
from trellis.plan.registers import GuardTerm, RegisterKind

Ints = NDArray[np.int64]


def bucket_tables(
    guard_terms: tuple[GuardTerm, ...], programs: ProgramTables, variables: Variables, alphabet: Alphabet, begins: Ints
) -> tuple[dict[int, Ints], list[Ints]]:
    """Return the events by value for terms that equate two events, and the bucket of each event.

    `begins` are the first references of the terms.
    """
    of_term = np.full((len(guard_terms), max(1, len(alphabet.letters))), -1, np.int64)
    reference: list[int] = []
    buckets: list[Ints] = []
    ends, lists, first = [np.zeros(1, np.int64)], [], 0
    total = 0
    for number, one in enumerate(guard_terms):
        instructions = programs.instructions(number)
        code = instructions[0]
        apart = one.absent is not None or bool(one.over) or one.stated
        if apart or len(instructions) > 1 or code[0] != COMPARE_COLUMNS or code[1] != EQUAL:
            continue
        sides = [(code[2], int(code[3])), (code[4], int(code[5]))]
        for (own, mine), (other, theirs) in (sides, sides[::-1]):
            if not _is_found(one.references[mine], one.references[theirs], one):
                continue
            name = one.references[mine].var
            coded, there = programs.programs.ints, programs.programs.there
            variable, beside = alphabet.view(name).variable, alphabet.view(one.references[theirs].var)
            if variable is None or (beside.variable == variable and beside.name != name and not beside.source):
                continue  # both views may take the event
            size = len(variables.usable[variable])
            usable = np.flatnonzero(variables.usable[variable] & there[own, :size])
            values, which = np.unique(coded[own, usable], return_inverse=True)
            place = np.minimum(np.searchsorted(values, coded[other, :size]), max(len(values) - 1, 0))
            found = there[other, :size] & (values[place] == coded[other, :size] if len(values) else False)
            of_term[number, alphabet.takers(name)] = len(buckets)
            buckets.append(np.where(found, place + first, -1))
            reference.append(int(begins[number]) + theirs)
            lists.append(usable[np.argsort(which, kind="stable")])
            ends.append(total + np.cumsum(np.bincount(which, minlength=len(values))))
            total += len(usable)
            first += len(values)
    return {
        t.B_OF_TERM: of_term.ravel(),
        t.B_REFERENCE: ints(reference),
        t.B_BEGINS: np.concatenate(ends),
        t.B_EVENTS: np.concatenate([*lists, np.empty(0, np.int64)]),
    }, buckets


def _is_found(own: Reference, other: Reference, one: GuardTerm) -> bool:
    """Return whether the new event is the one side of a term, and the other side one event that is remembered."""
    if own.which not in (Which.EACH, Which.LATER) or other.which is Which.UPTO or one.result:
        return False
    if other.function:
        return True
    if own.var == other.var:
        return own.which is Which.LATER and other.which is Which.EARLIER
    register = one.register(other)
    return register is not None and register.kind not in (RegisterKind.SET, RegisterKind.PAIRS)
