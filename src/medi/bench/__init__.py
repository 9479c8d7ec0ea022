"""Benchmarks: grids of runs, their scores, their tables."""
