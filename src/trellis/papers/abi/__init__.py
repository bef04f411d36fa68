"""The ABI paper: its graph of attribute and event vertices, how that is built, and how trends are extracted from it."""
