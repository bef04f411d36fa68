"""Counting the paths of tasks, on the attribute index or on listed edges."""
