"""Counting the paths of tasks, on the attribute index or on listed edges.

A task is a range `[lo, hi)` of events whose paths are counted together: a window, or all that begins at one event
within its span (`single`). A path of a task starts at an event without predecessor in it (at `lo` if single; anywhere
if `every`), and ends at an event without successor in it that is not before `first_end` (anywhere if `every`).

`passes` has one backward pass over the events for each shape of the relation in `shapes` (`EdgeLists`, `Tails`,
`Ranges`, `Pairs`, whose pass is in `pairs`), compiled for each algebra of `algebra`. `abreast` counts windows that
overlap together, and `large` one task of millions of events. `paths` works on listed edges.

Arrays
------
values, source, extra : (events of the task,), of the algebra's type
    The value of each event, what its successors have, and what is added to it.
totals : (tasks,) or (1 + weights, tasks), of the algebra's type
    The value of each task.
weights : uint64 (weights, events)
    Residues below the prime.
on_path : bool (events,)
    Which events lie on a path.
t : int
    The number of the task.
latest, ok : int64 (events,), bool (events,)
    The latest predecessor, -1 without one, and whether an event is usable.

Invariants: what was added is never taken away again, so floats keep their precision. Cost for n events of a task:
`EdgeLists` one step for each edge; `Tails` and `Ranges` n log v for v vertices (of a segment); `Pairs` n log^2 n.
Source: own, on the ABI paper's attribute vertices. See docs/attribute-index.md.
"""
