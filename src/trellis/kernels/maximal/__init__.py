"""Direct edges: the edges without a detour, which the maximal trends are the paths of."""
