"""Numba functions only: arrays in, arrays out; no Arrow, no Spark, no object for a row.

| package | computes |
| --- | --- |
| `events` | where partitions, spans and windows begin and end in the sorted events |
| `explore` | matches of any pattern, by tables of its automaton and registers |
| `expression` | conditions on several events, as tables of instructions |
| `event_graph` | edges between events, or between events bound to the positions of a pattern |
| `index` | the attribute index: attribute vertices, and the ranges of them that may follow an event |
| `count` | how many paths tasks have, their lengths, sums of weights |
| `list` | the paths of rank ranges, written into buffers; aggregates over single rows |
| `unrank` | the path with a given rank, and the rank of a given path |
| `maximal` | direct edges, of which maximal trends are the paths, and the numbers of these paths |
| `best` | the k best paths by a value |
| `sequence` | matches of sequences without a Kleene variable |
| `bloom` | Bloom filters of an archive, and chains of leaves |
| `graph` | cliques, and lists of neighbours |
| `papers` | the algorithms of the ABI and CET papers and of the DEBS 2016 challenge, under their own names |

The page of a package names its arrays with shapes and types, what always holds of them, the cost, and the source. A
name means the same in all kernels of a package. What is common to all:

- Events are numbered in the order (partition, time, id). Edges never leave a partition.
- The successors of event x are `successors[offsets[x]:offsets[x + 1]]`, rising; `offsets` is int64 (events + 1,),
  `successors` int32 (edges,). Those inside a window `[lo, hi)` are a prefix, so one graph serves all windows that
  overlap.
- `later` int64 (events,) is the first event of its partition with a later time, `until` int64 (events,) the first that
  is never in a result with an event; neither falls within a partition.
- Arrays that hold results of several rows are *ragged*: values one after another, and int64 or int32 `ends`, where each
  row ends, or `offsets`, the same after a 0.
- Numbers of paths saturate at 2**64 - 1, or are exact in limbs.
- Kernels release the GIL and keep no state of their own. `trellis.kernels.jit` compiles them, and
  `trellis.kernels.cache` keeps what is compiled.

Arrays that belong together are a `NamedTuple`, which costs a kernel nothing. Inside, arrays are taken out of their
tuples before a loop: Numba counts the references of whatever array a call is given. Where an argument may be None,
Numba compiles each case by itself.
"""
