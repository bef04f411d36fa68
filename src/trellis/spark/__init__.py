"""Trellis on Spark: sessions, files, and conditions as Spark columns."""
