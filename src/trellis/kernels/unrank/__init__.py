"""Unranking: from a rank to its path, by index, by edges, or many at once; and back."""
