"""A user's pictures: found, decoded, encoded, kept."""
