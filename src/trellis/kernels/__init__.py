"""Numba functions only: arrays in, arrays out; no Arrow, no Spark, no classes.

Events are numbered in the order (world, time, id). A world is what edges never leave: a partition, or on Spark a window
of one. The successors of event `x` are `successors[offsets[x]:offsets[x + 1]]`, in that order, so those inside a
window `[lo, hi)` are a prefix, and one graph serves all windows that overlap.
"""

from trellis.caches import trust_compiled

trust_compiled(__file__)
