"""The public API: queries and pipelines, made once at the edge and run on the engine that fits."""
