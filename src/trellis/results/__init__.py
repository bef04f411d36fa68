"""Results as rows: columns of the output, their order, aggregates, and the compact form."""
