"""Listing the paths of rank ranges into buffers, and aggregating over what was listed."""
