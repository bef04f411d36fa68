"""Matches of patterns without repetition as joins: lists that bindings narrow, counting over trees, a walk in order.

A *slot* is a variable of one arm of the pattern. `lists` narrows the candidates of slots when one of them takes an
event. `count` binds slots until what is left is a forest of pairs, which sums over candidates count without binding;
`placed` finds once for a task which of a neighbour's candidates each accepts.
`walk` lists matches in the order of their ranks: by events first, and by variables where all events are the same.
`best` keeps the best of them by keys, whose `bounds` tell what need not be walked.

Arrays
------
tables : JoinTables
    Candidates, order, conditions and NOTs; see the named tuple.
programs : Programs
    Conditions that no comparison of two codes decides; see `trellis.kernels.expression`.
lists : JoinLists
    For each node and slot a list of candidates, `pool[low:high]`, in the order of events, and scratch.
parent, node, slot, cand, bound, remaining
    The lists to narrow and those that come of it; which slot takes which candidate; the slots that have one, with this
    one, and that wait for one, as bits.
lo, hi, edges, used
    Events of the remaining slots lie in `[lo, hi)`; the first and the end of the window or partition, for NOT at an
    edge; where the pool is free.
shape, tasks : JoinShape, JoinTasks
    What is bound and in which order sums are passed on; where to count.
values, numbers, zero, modulus, clip
    A number for each candidate that matches are multiplied by; scratch; the prime of 31 bits that numbers are taken
    modulo, or 0: then they end at `MOST`; whether sums above 1 become 1, to ask whether there is a match.
cells : uint64
    Sums by code.
placed, e, how, numbers
    See `placed`; `e` is the number of an edge of the forest.
levels, group, out, room, skip, arms
    See `walk`.
keys, extremes, rows, bucket, task, n
    See `bounds` and `best`; `n` is a node of the walk.
h, v, b, last, mask, size
    A test of several slots; a slot that pairs are kept of; a candidate; the end of its list; slots as bits; how many
    events a block has.

Invariants: lists are in the order of events; a slot's list holds no candidate that contradicts what is bound. Cost: the
product of the lists that are bound, times n log n for each pair of the forest, n² where several conditions join it.
Source: own. See docs/sequences.md.
"""
