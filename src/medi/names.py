"""Names that the command line lists without importing torch; a test compares them with the registries."""

from __future__ import annotations

METHOD_NAMES = ("kmeans", "kcl", "mcl", "dtc", "rs", "mm", "mp", "medi")
"""The keys of `medi.methods.METHODS`, simple ones first."""

SAMPLER_NAMES = ("uniform", "cata", "specialised", "broad", "soft", "two-views", "five-views")
"""`medi.tasks.SAMPLERS`."""
