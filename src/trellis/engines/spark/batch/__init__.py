"""Queries over events that are all there: operators in tasks, results, files."""
