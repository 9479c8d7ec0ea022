"""Training: the one loop, its checkpoints, its devices."""
