"""Kernels of the DEBS 2016 grand challenge: the lines, and both queries."""
