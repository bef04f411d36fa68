"""Matches of fixed sequences: candidates, the walk that counts and lists them, and other plans."""
