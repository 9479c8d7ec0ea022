"""Names that the command line lists without importing torch; a test compares them with the registries."""

from __future__ import annotations

METHOD_NAMES = ("kmeans", "kcl", "mcl", "dtc", "rs", "mm", "mp", "medi")
"""The keys of `medi.methods.METHODS`, simple ones first."""

SAMPLER_NAMES = ("uniform", "cata")
"""How training tasks are drawn: from all known items alike, or each from one of CATA's views."""

FILE_MARK = ".py:"
"""In the name of a method: it is not in the registry but in a file of the user's own, `path/to/file.py:Name`."""
