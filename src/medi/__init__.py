"""MEDI: discover novel classes from a handful of unlabelled examples.

Importing this package is cheap: torch is loaded by the first thing that needs it.
"""

__version__ = "0.1.0"
