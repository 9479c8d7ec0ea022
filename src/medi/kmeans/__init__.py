"""The k-means family: many bags of points at once, on whatever device they are."""
