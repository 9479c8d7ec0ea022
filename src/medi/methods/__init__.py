"""Methods: one file each, one registry."""
