"""Property graphs: the largest clique, and lists of neighbours.

Arrays
------
rows : uint64 (vertices, words)
    The neighbours of each vertex, as bits.
chosen : uint64 (words,)
    A set of vertices.
shared, steps : int64 (1,)
    The largest size known to all that search, and how many vertices were tried.
begins, neighbours : int64 (vertices + 1,), (edges,)
    The neighbours of a large graph, as lists.
offsets, values, out : int64 (segments + 1,), (values,), (segments,)
    Segments of values; for each one result.
set_offsets, members, own_offsets, own_members : int64
    Sets as ragged lists, each rising.
worker, workers : int
    Which of how many searches of one graph this is.

Invariants: `rows` are symmetric and have no loops. Cost: branch and bound, exponential in the worst case; `h_index` one
step for each value, `common_members` the shorter of merging and looking up. Source: own, with the usual bounds by
colours and cores; `search_as_published` is Algorithm 1 of the GraphCEP paper. See docs/debs2016.md and docs/graphs.md.
"""
