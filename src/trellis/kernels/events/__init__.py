"""Where partitions, spans and windows begin and end in the sorted events.

Arrays
------
times : int64 or float64 (events,)
    Never fall within a partition.
bounds : int64 (partitions + 1,)
    The events of partition p are `bounds[p]` to before `bounds[p + 1]`.
first, last : int64 (events,)
    The numbers of the first and the last window that an event lies in; neither falls within a partition. An event that
    is in no window has `last < first`.
latest : int64 (events,)
    The latest predecessor, -1 without one.

Invariants: no window, span or run of equal times goes over the end of a partition. Cost: every kernel is one pass over
the events. Source: own. See docs/semantics.md for windows and spans.
"""
