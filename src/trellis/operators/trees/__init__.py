"""Operators that count and list by tree plans, whose partial matches they hold: of sequences, and of joins."""
