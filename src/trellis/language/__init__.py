"""Text to syntax tree to bound query; knows no data, no Spark, no NumPy."""
