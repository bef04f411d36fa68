"""Graph operators and vertex programs on Spark."""
