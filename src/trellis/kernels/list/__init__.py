"""Listing the paths of rank ranges at the speed of memory, and aggregates over the events of single rows.

`walk` is the depth-first walk; `blocks` lays out the suffixes behind events that many prefixes lead to, `rows` writes
them behind a prefix, `wide` copies eight values at a time; `lengths` tells a walk which branches lead to an allowed
length; `few` counts and lists few paths in one go. `aggregates` folds the events of each row of a list; `columns`
takes what rows show of their events.

Arrays: see the named tuples of `walk`, `blocks`, `lengths` and of `trellis.kernels.count.paths`. In `aggregates`,
`ends` is int64 (rows,), and `values`, `valid` and `codes` are (values,) of int64 or float64, bool and int64.

In `rows` and `wide`, `target` and `source` are arrays of any type; `values`, `nodes` and `block` int32, with `SPARE`
values to spare; `lengths`, `ends`, `offsets`, `shared` and `block_shared` int32, one for each row; `number` rows from
row `first` of all blocks on are written, and `room` is how many values there may be.

In `columns`, `words` is int64 (events,), `positions`, `places` and `offsets` of rows uint32, those of texts int64, and
what is filled (`taken`, `lengths`, `firsts`, `lasts`, `ends`, `ranks`, `groups`) has a value for each place or row.

Invariants: rows come in rank order: at each event the path that ends there first, then by the next event. Buffers have
`wide.SPARE` values to spare, of which a copy may overwrite up to seven behind a row; the next row corrects that. Ranks
are exact below 2**64 - 1. Cost: a copy for each value, and a step of the walk for each block; to make a task ready, one
step for each of its edges. Source: own. See docs/attribute-index.md.
"""
