"""Whole columns of values: their one physical form, conditions evaluated over them, and the order of their values."""
