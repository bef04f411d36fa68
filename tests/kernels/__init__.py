"""Every public kernel beside a naive version of a few lines, on random arrays."""
