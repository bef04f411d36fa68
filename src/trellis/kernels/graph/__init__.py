"""Property graphs: cliques, and lists of neighbours."""
