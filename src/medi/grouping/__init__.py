"""The engine: from points to groups."""
