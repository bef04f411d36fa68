"""Kernels of published algorithms under their own names: operators like any other, which the default is compared with.

`abi` and `cet` are the algorithms of two papers on event trends, `debs2016` is the grand challenge of that year. Where
an algorithm is a depth-first walk over the event graph (ABI's DFS, M-CET, SASE), it is that of
`trellis.kernels.list.walk` with marks. See docs/algorithms.md and docs/debs2016.md.
"""
