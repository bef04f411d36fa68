"""The event graph: edges between events, or between events bound to the positions of a pattern.

`edges` finds the successors of events by codes: a key that must be equal, pairs of which the later event's code must be
greater, pairs that must differ, and flags. `positions` builds the graph of (event, position) pairs and leaves of it
what lies on a match of a window.

Arrays
------
degrees : int64 (rows,)
    The number of successors of each event.
read, direct : int64 (events,)
    Of a graph that is being reduced: the next edge of each event to look at, and how many are known to be direct.
reach : uint64 (rows, words)
    A bit for each column that an event reaches.
events, positions : int64 (vertices,)
    The event and the position of each vertex, in the order (event, position).
first_step, step_target : int64 (positions + 1,), (steps,)
    The steps from position p are `first_step[p]` to before `first_step[p + 1]`; each leads to a position.
rows : int64 (steps, events + 1)
    The events that follow x on step s are `successors[rows[s, x]:rows[s, x + 1]]`.
vertex_of : int32 (positions, events)
    The vertex of an event at a position.
flags : uint8 (vertices,), visited : int64 (vertices,), number_of : int64 (vertices,)
    Scratch; `flags` are 0 before and after.
above, below, differ_next, differ_prev : int64 (conditions, events)
    Codes of conditions: see `edges.EdgeCodes`.
carried, every
    Conditions on the first event of a match (`positions.AnchorConditions`), and whether all matches count, not only
    unextendable ones.
out_events, out_positions, out_offsets, out_targets
    The graph that is written: vertices with their events and positions, and successors as above.
offset, event_offset, arrivals, base : int64 (parts,), (parts,), (vertices,), (parts,)
    Of the index of one step and of all: where a part begins, the arrival of each vertex, and what is added.

Invariants: successors rise; an edge leads to a later time. Cost: `edges_of_rows` looks at each pair of an event and one
of its key within reach, `reduce_columns` at edges * columns / 64 words, `measure` and `write` at the edges of each
window. Source: own; the reduction is the usual one by reachability. See docs/patterns.md.
"""
