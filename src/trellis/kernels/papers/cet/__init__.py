"""Kernels of the CET paper: Algorithm 1, graphlets, T-CET and H-CET, and the flattened comparison.

Arrays
------
offsets, successors, before_offsets, before : int64 (events + 1,), int32 (edges,), twice
    The event graph forwards, the earliest successor first, and backwards, the latest predecessor first.
ok : bool (events,)
    Whether an event may be on a trend.
u, v : int
    A range of events: a graphlet, or a window. `is_open`: whether trends may go on outside of it.
values, ends : int32 (room,), int64 (rows,)
    Partial trends, one after another, and where each ends.
first_row, later_row : int64 (v - u + 1,), (v - u,)
    The rows of each event, and from where on they begin with an event that has a predecessor in the range.
begins, laters, stops : int64 (events,)
    The same of what is kept for exits. `graphlet_of` int64 (events,) is where the graphlet of an event begins.
lo, hi, bases : int64 (windows,), (windows,), (windows + 1,)
    Windows, and where what belongs to each begins in `forwards` and `backwards`, float64 (bases[-1],).
bounds, costs : int64 (pieces + 1,), float64 (pieces, 6)
    Where pieces begin, and the costs of graphlets; see the constants of `cuts`.
most, most_steps : int
    Bounds of Algorithm 1: events stored, and steps taken.
rows, whole, is_direct, longer, longer_whole : int32 (rows, length), bool (rows,), bool (edges,), and both one longer
    Sequences of one length, whether they can begin a result, direct edges, and the sequences with one event more.

Invariants: graphlets do not overlap, and follow one another; a stored trend lies in one graphlet. Cost: T-CET stores
every partial trend, M-CET one path, H-CET what its graphlets keep. Source: the CET paper: Algorithm 1 (`baseline`),
T-CET (`grow`), H-CET (`join`), Definition 6 corrected (`cuts`); M-CET and SASE walk with `trellis.kernels.list.walk`.
See docs/algorithms.md.
"""
