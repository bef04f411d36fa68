"""Bloom filters over the leaves of an archive, and chains of leaves that may hold a match."""
