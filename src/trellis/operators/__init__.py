"""Operators: all that is asked of the results of a slice, under one contract (`trellis.operators.contract`)."""
