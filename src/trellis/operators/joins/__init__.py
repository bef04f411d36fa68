"""The operator for patterns without repetition, as joins over a partial order of time."""
