"""The history of a stream: its events in Parquet, with filters over them that tell where to look."""
