"""Compiled kernels that ship with Trellis, so that nobody waits for a compiler: what is compiled, and how it is made.

`python -m trellis.compiled build` runs the cases of `trellis.compiled.cases` and keeps what they compile in
`trellis/compiled/code`. Set-up does that, and the wheel carries it; `trellis.kernels.cache` finds it. Built with other
versions of Python, Numba or NumPy than yours, it is not used, and the same command makes one that is.
"""
