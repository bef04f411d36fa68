"""Kernels of the CET paper: its baseline, graphlets, T-CET, M-CET and H-CET."""
