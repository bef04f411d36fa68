"""Event tables in and out of files: read them, write them, or make sample ones."""
