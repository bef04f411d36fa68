"""Standing queries over events that never end: what is held, when a window is decided, and what comes out then."""
