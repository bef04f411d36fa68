"""The k-best search: the best paths by a value, without the others."""
