"""The papers' algorithms that are made of Spark's own operations."""
