"""Graphs of events: splitter, operator and merger, vertex programs, and the operators of the DEBS 2016 challenge."""
