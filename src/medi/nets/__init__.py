"""Networks: images or vectors in, embeddings out."""
