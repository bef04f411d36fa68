"""The attribute index: parts of the events, attribute vertices, and the ranges of vertices that may follow an event.

A part is a range of events that some tasks need together; parts may overlap, and each has its own vertices. Event x of
part p stands at the place `x + offset[p]` in the arrays of the index. Within a part the events of one key own a segment
of the vertices. Cuts divide the values of a segment: vertex j holds the values above exactly j of its distinct cuts.

Arrays: see the named tuples of `vertices`. `order` is int32 (entries,), entries by rising value or cut; `wanted` bool
(events,). `first_part` and `behind_part` are int32 (events,): the parts that an event lies in. `key_next` and
`key_prev` are int64 (events,), keys from 0 below `keys`; `gives` and `takes` bool (events,): whether an event may be
followed, and may follow. `total` is the number of places. `nearest` and `latest` are int64 (events,): first successor
and last predecessor, `target_begin` int32 (places,) as in `vertices.VertexPlaces`. `shape` is one of those of
`trellis.kernels.count.passes`.

Invariants: every value that a condition accepts after event x lies in the vertices from the one above its cut to the
end of its segment (or to that above its second cut), and no other value does. Cost: n log n to sort, then one pass over
the events and cuts of each part. Source: the attribute vertices and edges of the ABI paper, with ranges in place of
to-edges; parts and segments are own. See docs/attribute-index.md.
"""
