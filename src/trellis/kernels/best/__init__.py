"""The k-best search: the best paths of the event graph by a value, without the others, and their ranks.

A value is a row of words, compared word by word, each in its direction. `nodes` has values, nodes and successors;
`search` finds the best paths, or those between two values, by `heaps` of the ways to go on; `leading` finds the paths
that AFTER MATCH keeps; `ranks` orders paths and finds their ranks. By the attribute index `suffixes` finds the best
suffixes and their numbers, `tied` the first of equally good paths, and ranks.

Arrays
------
best : int64 (nodes, words + 1)
    The value of the best suffix of each node, and the node it goes on to.
heaps : int64 (nodes, 4)
    First and last suffix found, and the heap of what its successors offer.
suffixes, slots : int64 (room, words + 3), (room, words + 2)
    The suffixes found so far, and the entries of heaps.
events, paths : int32 (room,), int64 (room, words + 3)
    The paths found, one after another, and their values, ends, tasks and whether they are among the best.
successors, stack : int32 (events,), int64 (events,)
    Scratch for the successors of an event, and for the nodes of a path.
order, bucket : int64 (tasks,)
    The tasks in the order they are looked at, and the bucket that each competes in.
tasks, links, shape
    Which tasks are searched, how events follow one another, and what paths are compared by: see `nodes`.
begins, ends : int64 (paths,)
    Where paths begin and end in `events`.

Invariants: among equal values the path that ends comes first, then the one whose next event is earlier. Kernels that
need more room say so and are called again. Cost: one step for each edge of a task, then log(degree) for each event of
each path found. Source: recursive enumeration (Jimenez and Marzal). See docs/attribute-index.md.
"""
