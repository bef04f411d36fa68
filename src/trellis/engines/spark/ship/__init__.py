"""Code and shared arrays on their way to Spark's workers."""
