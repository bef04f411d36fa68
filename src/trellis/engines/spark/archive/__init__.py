"""Archives built and followed on Spark."""
