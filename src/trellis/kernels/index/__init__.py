"""The attribute index: parts of the events, attribute vertices, and the vertices that may follow an event."""
