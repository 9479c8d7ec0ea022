"""Work shared out among processes, a Ray cluster or torchrun's ranks."""
