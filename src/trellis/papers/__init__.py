"""The papers' algorithms under their own names: each lists the trends that ranks give, from the same graph."""
