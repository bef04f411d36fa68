"""The event graph: edges between events, or between events bound to the positions of a pattern."""
