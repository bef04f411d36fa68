"""Direct edges: those without a detour, of which the maximal trends are the paths; and the numbers of these paths.

Which kernel finds them depends on the condition: `inequality` for one comparison, by time bisection (`bisection`);
`conjunction` for several comparisons; `equality` for keys; `difference` for `!=`. `counting` counts the paths of direct
edges under one inequality without the edges.

Arrays
------
partitions : int64 (partitions + 1,)
    Where the key partitions begin, between which there are no edges.
rows : int64 (tiles, 3)
    Tiles (begin, owned, end): the edges of the events from `begin` to `owned` all end before `end`.
first, after : int64 (events,)
    The first event of the time of an event, and the first one of a later time.
limit : int64 (events,)
    The first event that may not follow; never falls within a key partition.
above, below : int32 (events,) or (conditions, events)
    y may follow x where `above[y] > below[x]`; codes from `bisection.rank_codes`.
by_above, of_above, by_below, of_below : int64 (events,)
    Packed pairs of a part of the bisection in two orders: see `bisection`.
key_next, key_prev, local : int64 (events,), (events,), (keys,)
    Keys from 0; -1 where an event cannot follow, or be followed. `local` is -1 before and after.
cursor : int64 (events,)
    Where the next successor of an event goes.
keys, values, into_keys, into_values : int64 (events,)
    Two sorted neighbours of packed pairs, and where they are merged.

Invariants: an edge leads to a later event of its key partition and below its limit; no edge that is written has a
detour. Cost for n events: `inequality` n log n and the edges; `counting` n log^2 n; `equality` n steps for each 64 keys
of a tile; `difference` n and the edges; `conjunction` the pairs in reach in the worst case. Source: own. See
docs/attribute-index.md.
"""
