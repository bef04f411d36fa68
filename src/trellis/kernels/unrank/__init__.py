"""Unranking: from a rank to its path, by index, by edges, or many at once; and from a path to its rank.

The rank of a path is its place in the order of a task: at each event the path that ends there comes first, then by the
next event. Numbers of paths are little-endian limbs: 61 bits each (`by_index`, `many`) or 32 (`by_edges`).

Arrays
------
ranks : int64 or uint64 (ranks, limbs)
    Rising for `many`.
counts : int64 (events, limbs)
    The number of paths from each event to an end.
heads : int64 (blocks + 1, limbs)
    How many paths start before each block; in `ranks` uint64 (events,), before each event.
before : uint64 (edges of the window,)
    How many paths leave the source of an edge before it.
path_ends : int64 (paths,)
    Where each path ends.
log, log_at : int32 (values,)
    The cursors that arrive, and at which events, in time order; `shift` is added to events.

Invariants: `counts` hold the number of all paths from starts exactly; an event with more lies on none of these. Cost
for n events and paths of length m: `by_edges` one step for each edge that is passed; `by_index` m * (n / 1024 + 1024)
steps at most, for each rank; `many` (n + sum of m) log n for all ranks together. Source: own. See
docs/attribute-index.md.
"""
