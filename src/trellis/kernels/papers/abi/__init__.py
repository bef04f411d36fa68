"""Kernels of the ABI paper: its graph, its event graph, and extraction breadth first and by anchors.

Arrays
------
value, low, high : int64 (events,)
    What may follow an event has a value from its `low` to below its `high`; -1: nothing leads to an event.
vertex, first, last : int64 (events,)
    The attribute vertex of each event, and the range of vertices that its to-edges lead to.
offsets, held : int64 (vertices + 1,), int32 (events,)
    The events that the from-edges of each vertex lead to, in time order.
paths, longer : int32 (paths, length), (paths, length + 1)
    Partial trends of one length.
..._here : (events of the window,)
    Begin with the first event of the window: `anchored_here`, `ends_here` bool; `partial_here` float64.
heads, sub_begins, value_begins, sub_ends, values
    Sub-sequences by head: int64, int64, int64, int64, and int32 events.
joints, runs : int64 (events + 1,), (runs, 2)
    The runs of sub-sequences that may be joined behind an event: first, and the one after the last.
weight : int64 (sub-sequences + 1,)
    How many trends begin with the sub-sequences before each.
later_here, first_here, last_here : int64 (events of the window,)
    The first event of a later time, and the vertices that to-edges lead to.

Invariants: the ranges of two vertices do not overlap; every path goes forward in time. Cost: building event by event
takes log m steps for each cut among m vertices, by a skip list, and all at once n log n; extraction takes a step for
each event of a partial trend. Source: the ABI paper: dynamic construction and Algorithm 1 (`build`), Algorithm 3
(`edges.pre_filter`), breadth-first and anchor-based extraction (`breadth`, `join`). See docs/algorithms.md.
"""
