"""Bound query to plan: pattern automaton, classified conditions, chosen operator; and its explanation."""
