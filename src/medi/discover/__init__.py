"""Folders in, files out."""
