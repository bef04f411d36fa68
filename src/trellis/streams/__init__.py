"""Standing queries over streams: the events that are held, when a window is decided, and the results that come then."""
