"""Event tables: schema, expressions over Arrow columns, order, partitions, windows and slices."""
