"""Kleene patterns: the event graph of a slice of events, and what is asked of it."""
