"""Kernels of the ABI paper: its graph, its event graph and its ways to extract trends."""
