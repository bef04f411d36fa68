"""Where things begin and end in the sorted events: later times, spans, windows."""

from __future__ import annotations

import numpy as np

from trellis.kernels.arrays import first_at_least
from trellis.kernels.jit import njit

HIGHEST = np.iinfo(np.int64).max


@njit(cache=True, nogil=True)
def later_times(times, bounds):
    """Return for each event the first event of its partition with a strictly later time (or the partition's end)."""
    n = times.shape[0]
    later = np.empty(n, np.int64)
    for partition in range(bounds.shape[0] - 1):
        end = bounds[partition + 1]
        following = end
        for x in range(end - 1, bounds[partition] - 1, -1):
            if x + 1 < end and times[x + 1] > times[x]:
                following = x + 1
            later[x] = following
    return later


@njit(cache=True, nogil=True)
def partition_ends(bounds, n):
    """Return for each event the end of its partition."""
    ends = np.empty(n, np.int64)
    for partition in range(bounds.shape[0] - 1):
        for x in range(bounds[partition], bounds[partition + 1]):
            ends[x] = bounds[partition + 1]
    return ends


@njit(cache=True, nogil=True)
def span_ends(times, bounds, span):
    """Return for each event the first event of its partition that is more than `span` later."""
    n = times.shape[0]
    ends = np.empty(n, np.int64)
    for partition in range(bounds.shape[0] - 1):
        end = bounds[partition + 1]
        y = bounds[partition]
        for x in range(bounds[partition], end):
            if y < x:
                y = x
            while y < end and times[y] - times[x] <= span:
                y += 1
            ends[x] = y
    return ends


@njit(cache=True, nogil=True)
def first_above(values, bounds, cuts):
    """Return for each event the first event of its partition with a value above its cut; values never fall there."""
    found = np.empty(values.shape[0], np.int64)
    for partition in range(bounds.shape[0] - 1):
        begin, end = bounds[partition], bounds[partition + 1]
        for x in range(begin, end):
            found[x] = end if cuts[x] == HIGHEST else first_at_least(values, begin, end, cuts[x] + 1)
    return found


@njit(cache=True, nogil=True)
def first_ends(latest, ends):
    """Return for each event the first one with which a trend that starts here cannot also start one earlier.

    `latest` is the latest possible predecessor (-1 without), `ends` the ends of spans.
    """
    n = latest.shape[0]
    first = np.empty(n, np.int64)
    for x in range(n):
        first[x] = x if latest[x] < 0 else max(x, ends[latest[x]])
    return first


@njit(cache=True, nogil=True)
def count_windows(first, last, bounds):
    """Return the number of (window, partition) pairs that hold an event; `first`, `last`: windows of each event."""
    total = 0
    for partition in range(bounds.shape[0] - 1):
        following = first[bounds[partition]] if bounds[partition] < bounds[partition + 1] else 0
        for x in range(bounds[partition], bounds[partition + 1]):
            begin = max(following, first[x])
            if last[x] >= begin:
                total += last[x] - begin + 1
                following = last[x] + 1
    return total


@njit(cache=True, nogil=True)
def list_windows(first, last, bounds, total):
    """Return number, partition, first and end event of every window that holds an event.

    An event lies in the windows numbered `first` to `last`, both of which never fall along a partition.
    """
    number = np.empty(total, np.int64)
    partition_of = np.empty(total, np.int64)
    lo = np.empty(total, np.int64)
    hi = np.empty(total, np.int64)
    i = 0
    for partition in range(bounds.shape[0] - 1):
        end = bounds[partition + 1]
        following = first[bounds[partition]] if bounds[partition] < end else 0
        after = bounds[partition]
        for x in range(bounds[partition], end):
            begin = max(following, first[x])
            for k in range(begin, last[x] + 1):
                while after < end and first[after] <= k:
                    after += 1
                number[i], partition_of[i], lo[i], hi[i] = k, partition, x, after
                i += 1
            following = max(following, last[x] + 1)
    return number, partition_of, lo, hi


@njit(cache=True, nogil=True)
def window_ends(first, last, bounds):
    """Return for each event the first event of its partition that shares no window with it and is not earlier."""
    n = first.shape[0]
    ends = np.empty(n, np.int64)
    for partition in range(bounds.shape[0] - 1):
        end = bounds[partition + 1]
        y = bounds[partition]
        for x in range(bounds[partition], end):
            if y < x:
                y = x
            while y < end and first[y] <= last[x]:
                y += 1
            ends[x] = y
    return ends


@njit(cache=True, nogil=True)
def drop_repeated(first, last, bounds):
    """Return which events to keep of each partition, all of one id: those that share no window with one kept before."""
    keep = np.ones(first.shape[0], np.bool_)
    for partition in range(bounds.shape[0] - 1):
        kept = bounds[partition]
        for x in range(bounds[partition] + 1, bounds[partition + 1]):
            if first[x] <= last[kept]:
                keep[x] = False
            else:
                kept = x
    return keep
