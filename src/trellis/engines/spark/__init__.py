"""The Spark engine: sessions, sources, the split, batches, streams and graphs on Spark."""
