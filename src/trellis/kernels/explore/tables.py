"""The tables that the exploration goes by, packed into one array of integers and one matrix of them by event.

Few arrays make short calls, which matters: Numba passes every array by its parts, and counts its references.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numba import types
from numba.core.typing import signature
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import load_item

from trellis.kernels.items import DATA, extract

(
    PAIRS, FIRST, LAST, NTH, COUNT, EXTREME, SAME, SET, TALLY, LENGTH, NUMBER, SUM, REAL_SUM, EXACT_SUM, BEST, TUPLES,
    MET,
) = range(17)  # fmt: skip
"""Kinds of registers; from `TALLY` on those that run along with the events of a variable."""
(
    OF_FIRST, OF_LAST, OF_NTH, OF_EACH, OF_EARLIER, OF_LATER, OF_ABSENT, OF_WHOLE, OF_BEFORE, OF_UPTO,
    OF_TUPLE,
) = range(11)  # fmt: skip
"""Kinds of references; from `OF_WHOLE` on to registers as they are: of a whole variable, before an event, up to it; or
to one of the tuples that were gathered."""
OVER_SET, OVER_PAIRS, OVER_TUPLES, OVER_FORBIDDEN = range(4)  # loops of a term; the last: those of a forbidden match
WHILE_ASKED, WHILE_OTHERS, WHILE_OPEN, WHILE_LOOPS = range(4)  # how long a term needs a register
ANY, NEXT, CONTIGUOUS = range(3)  # policies
LATE, TWICE, NOTED = 1, 2, 3
"""Terms that wait for an event; that compare two views which may take the same events; that are noted, not asked."""
FIRST_EVENT = 1  # of an UNTIL: it is asked of the first event of its variable
EVERY_STEP = -1
LEAVES, WAITS, WAITS_IN_TIE = range(3)  # what transitions ask of greedy letters; see `trellis.plan.remainders.Leaving`
TOGETHER, NEVER = 60, 61  # bits beside those of letters: the event has the time of the last one; it is not taken at all
HAS_EDGES, IN_GAP = 1, 2  # bits of `EDGED`
DEEP, WHOLE, TOLD = 1, 2, 4  # bits of `A_GUARD_NODES`
NONE, CONFLICT = -1, -2  # values of registers: nothing, and different values where all should be one

VARIABLES, TERMS, SPAN, GREEDY, EVENTS, WIDTH, NOTS, STEPS, RESULTS, BASES, GROUPS, ALONE, EDGED, TOLDS = range(14)
"""Numbers at the head of the tables: of letters, which these pages call variables as well, terms, events, numbers of a
match, variables of NOT, policies of steps, terms of HAVING; the greedy letters, as bits; whether the window is a span;
of variables in the proper sense, of repeated groups, and of the variables of NOT that forbid single events; whether one
forbids what has a NOT at its edge, and whether the matches are themselves forbidden, in a gap that is not known yet;
and of terms that are told of what NOTs inside of these forbid. Where no group is repeated letters are the variables."""

(
    A_BEGINS, A_VARIABLE, A_TARGET, A_AFTER, A_GUARD_BEGINS, A_GUARDS, A_NEXT, A_OPEN, A_TIMED, A_GUARD_TIMED, A_ABSENT,
    A_WAY_BEGINS, A_WAY_GUARD_BEGINS, A_WAY_GUARDS, A_ABSENT_BEGINS, A_ABSENTS, A_GUARD_AFTER, A_GUARD_UNTIL,
    A_STEP, A_LEFT, A_STEPS, A_POLICIES, A_STEP_VARIABLES, A_LOOPS, A_GUARD_GROUPS, A_GUARD_CLOSING,
    A_GUARD_NODES,
    L_BASE, L_VIEWS, L_GROUPS, L_EMPTIES, L_OPENS, L_CLEARS, L_COPY_BEGINS, L_COPY_TO, L_COPY_FROM, L_LINK_BEGINS,
    L_LINK_TO, L_LINK_FROM, L_ONLY_BEGINS, L_ONLY_VIEW, L_ONLY_SLOT, L_ONLY_NUMBER, L_ONLY_BEGUN,
    L_GATHER_BEGINS, L_GATHER_TERM, L_GATHER_SLOT, L_GATHER_VIEWS, L_FORGETS,
    T_VARIABLES, T_ABSENT, T_LATE, T_PAIRED, T_MOVING, T_BEGINS, T_VARIABLE, T_KIND, T_SLOT, T_LAST, T_NTH, T_COUNT,
    T_LOOP_BEGINS, T_LOOP_SLOT, T_LOOP_VARIABLE, T_LOOP_KIND, T_LOOP_GATHERED, T_NEED_BEGINS, T_NEED_SLOT,
    T_NEED_VARIABLE, T_NEED_KIND, T_REGISTER, T_SO_FAR, T_RESULT, T_CLOSES, T_NEED_GROUPS, T_GATHERED,
    T_ROOT, T_TOLD,
    R_VIEW, R_BEGINS, R_KIND, R_SLOT, R_NTH, R_LAST, R_TIME_SLOT, R_ALIKE, R_CODES,
    E_BEGINS, E_USABLE, E_UPTO, C_ENDS, C_SOONEST, C_ROOT, C_NODES, C_OF_TERM, C_BEGINS, C_FIRST, C_TUPLES,
    B_OF_TERM, B_REFERENCE, B_BUCKET, B_BEGINS, B_EVENTS,
) = range(14, 117)  # fmt: skip
"""Lists in the tables, of which the head tells where they begin.

`A_...`, the automaton; variables and guards are numbers, sets of variables are bits. The transitions of state `s` are
`A_BEGINS[s]` to `A_BEGINS[s + 1]`; each reads a variable, leads to a target, is later than the last events of the
variables `A_AFTER`, and closes guards. Of each state: the variables that may come next, those that are open (may still
take events), those for whose last time steps and guards ask, those that NOT may still forbid; and the ways in which a
match may end there, with the guards that stay open. A guard forbids its `A_ABSENTS` behind the last events of
`A_GUARD_AFTER`, unless it is an UNTIL. Each transition is a step with a number, and asks three things of greedy
letters: `A_LEFT` has for each transition three sets of them. Each state has the steps that may come next, as bits; each
step has a policy, and the letters that it may read. Of each state, too, the groups that may begin another iteration; of
each guard the groups around it, whether it looks at the iteration before that which the transition begins, and how what
it forbids is noted: whether as trees, whether there are whole patterns, and whether something is told of it.
Transitions read letters; `A_AFTER`, `A_TIMED` and what guards come after are variables; those that are open are views.

`L_...`, letters: the variable, the views that take its event, the groups of which it begins an iteration, and then the
views that are emptied, those that are open then, and the slots of registers that are emptied; slots and views that get
what others have had. Views that take its event in one iteration only: with each the slot that counts iterations, the
number of the iteration, and whether the letter begins one. Terms whose tuples an iteration that is over adds to a slot,
if it has events of the views with these bits: see `iterations`. Terms look at views: see `trellis.plan.views`. Last the
slots that nothing reads any more once a match with the event has been asked whether it is whole.

`T_...`, the terms of conditions; each is the program of its number. Its variables, the variable of NOT (or -1), whether
it waits for an event (or `TWICE`), the variables of whose consecutive events it speaks, those of which each new event
is asked about. Its references: the variable, what is named, the slot of the register, that of the event before, the
number of an event by its number (of one in tuples: its place there), the slot that counts, the place of the register,
and whether tuples have it. The sets that it goes over, and the registers that it needs. The variables of
whose events so far it speaks; and whether it is of HAVING. Groups whose next iteration makes known what it waits for;
for each register that it needs the groups in whose next iterations it is asked with it. Of one of NOT, too, the
variable of NOT of this query inside of which that of the term is; and its number among those that are told, or -1.

`R_...`, registers by letter: the view, the kind, the slot, the number of an event, the slot of the event before (of
NTH the one that counts; of MET, whose number is a term, the slots that nobody needs once it is met, as bits); the slot
of each variable's last time; and the first rows of the matrix that tell for each event the first that is alike for a
register, and the code whose greatest is remembered; of sums, whether there is a value, and it.

`E_...`, the events that each variable may take, and the first row that tells how many of them come before an event.
Where a NOT forbids a whole pattern, the events at which its matches begin.

`C_...`, of those matches: the last event; the soonest last event of this one and all behind; its node, or -1 where
nothing else counts. `C_NODES` are trees one after another, parents first, and have of each node what it is a match of
(a variable of NOT, or -1 where no term asks), the first event, the last, the number of nodes of its tree, and how far
before it the node is that it is below (0 for a root). For each term that compares them with events outside where its
nodes begin in `C_BEGINS`, which tells for each where its tuples begin, and where in `C_TUPLES` the first is; see
`nodes`.

`B_...`, events by their value, for terms that equate an event that a variable takes with a remembered one: the row of
each term and variable, or -1; the reference that is remembered; the first row of the matrix that tells its bucket; and
the buckets.
"""

HEAD = 117
SAME_ROW, LATER_ROW, UNTIL_ROW = range(3)
"""Rows of the matrix: the first event of the same time, of a later one, and the first that is too late for an event."""
ROWS = 3


def pack(numbers: Mapping[int, int], lists: Mapping[int, np.ndarray]) -> np.ndarray:
    """Return numbers and lists as one array."""
    head = np.zeros(HEAD, np.int64)
    size = HEAD
    for field, values in lists.items():
        head[field] = size
        size += len(values)
    for field, number in numbers.items():
        head[field] = number
    return np.concatenate([head, *lists.values()]).astype(np.int64)


def at(tables, field, place):
    """Return an element of a list in the tables."""
    return tables[tables[field] + place]


@type_callable(at)
def _type_at(context):
    return lambda tables, field, place: signature(types.int64, tables, types.int64, types.int64)


@lower_builtin(at, types.Array, types.int64, types.int64)
def _lower_at(context, builder, sig, args):
    """Write the code of `at` in its place: there are hundreds of calls."""
    (tables, field, place), kind = args, sig.args[0]
    data = extract(builder, tables, DATA)
    begin = load_item(context, builder, kind, builder.gep(data, [field]))
    return load_item(context, builder, kind, builder.gep(data, [builder.add(begin, place)]))
