"""Clustering a handful of points, many episodes at once."""
