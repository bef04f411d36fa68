"""The attribute index: parts of the events, attribute vertices, and the ranges of vertices that may follow an event.

A part is a range of events that some tasks need together; parts may overlap, and each has its own vertices. Event x of
part p stands at the place `x + offset[p]` in the arrays of the index. Within a part the events of one key own a segment
of the vertices. Cuts divide the values of a segment: vertex j holds the values above exactly j of its distinct cuts.

Arrays: see the named tuples of `vertices`. `order` is int32 (entries,), entries by rising value or cut; `wanted` bool
(events,). `shape` is one of those of `trellis.kernels.count.passes`.

Invariants: every value that a condition accepts after event x lies in the vertices from the one above its cut to the
end of its segment (or to that above its second cut), and no other value does. Cost: n log n to sort, then one pass over
the events and cuts of each part. Source: the attribute vertices and edges of the ABI paper, with ranges in place of
to-edges; parts and segments are own. See docs/attribute-index.md.
"""
