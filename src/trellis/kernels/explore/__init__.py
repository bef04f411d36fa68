"""Matches of any pattern, explored by tables: which matches so far there are, how they go on, which are results.

A match so far is told apart by what its rest depends on: the states of the automaton, the NOTs that are not decided
yet, and registers. `matches` says what is asked of it, `progress` what it goes on with, `moves` remembers that for all
matches of a shape, and `plain` takes the simplest of these at once. `waits` tells what is left of a NOT that cannot be
decided yet. `graph` builds the graph of all of them, `report`
leaves those that REPORT gives, `results` makes paths of these; `groups` does so for many groups.
`count` counts without a graph, by `classes` of matches, where all of them are results or `ends` tells which; `keys`
spares it classes that take no event of a value. `order` brings results into order where events can be bound in several
ways. `lazy` finds the first results in that order without a graph of all: it walks over `levels` of matches that are
made on `demand`. `lists` keeps sets of numbers. What allocates nothing counts no references: that took most of the
time.

Arrays
------
tables : int64 (numbers,)
    The automaton, the terms of conditions, registers and lists of events; see `tables`.
columns : int64 (rows, events + 1)
    What the tables tell of each event; see `tables`.
programs
    The terms as programs; see `trellis.kernels.expression`.
lists, longer, members
    Sets that are kept once, those of longer matches, and room for one that is being made; see `lists`.
scratch, moves, graph, classes, levels
    Room to work in; see the named tuples.
row, fresh, after : int64 (numbers of a match,)
    Matches so far; `fresh` is (variables, numbers) where several are made.
resolved, place, here, p, side, other
    Terms as comparisons with a number, and where they begin, or one does; where its program is, and of which side the
    event `other` is remembered.
shape, move, same
    Numbers of a match's shape and of its move; whether an event has the time of the last one.
term, variable, event, newest
    Numbers of a term, a variable, an event, and of the variable that takes one.
due, number : int64 (terms,), int
    Terms that are asked of an event, and how many.
lo, hi, groups_lo, groups_hi, first, last
    The events of a group, of all groups, and which groups.
pairs, size, state, pending : int64 (numbers,), ints
    Branches that are being made, how many numbers they have; a state with its undecided NOTs.
is_bound, ties, rows, code, ints, there, matches, one
    Whether the variable has events, the variables of the same time; moves; those of programs; matches and which.
open_, bound, begin, end
    Variables that may still take events, and those that have some, as bits; a range.
own, walk, known, wanted
    What a walk goes by, and works in: see `levels` and `demand`.
vertex, top, depth, length
    Numbers of a vertex, of a level, of events so far, and as much of these as decides which longer ones are results.
is_first
    Whether the first is asked for, or the next one.
mode, same, chosen
    REPORT, the first event of the same time, and the events at which results may begin (empty: all).

Invariants: a match goes on with later events only. A register that no condition can ask for any more is cleared, so
that matches with the same rest are one. Kernels that find too little room return what there is too little of; nothing
is kept of the group then. Cost: for each match so far the events that its variables may take next, or those with an
equal value where a condition demands it; under skip-till-next as many as are skipped. Source: own; the automaton with
registers follows SASE. See docs/patterns.md.
"""
