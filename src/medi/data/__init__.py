"""Data: one table of facts, readers of the official archives, two generated sets, augmentation."""
