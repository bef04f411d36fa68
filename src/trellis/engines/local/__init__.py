"""The local engine: queries over events in this process."""
