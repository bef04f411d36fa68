"""Events in their order: partitions, times and repeated rows."""
