"""Trellis: complex event processing on Spark, from Python."""

__version__ = "0.1.0"
