"""What of the paper's theory can be computed: the overlap of classes and the generalisation bound.

Definitions and theorems are numbered as in Chi, Liu et al. 2022, "Meta Discovery: Learning to Discover Novel Classes
given Very Limited Data".
"""

from medi.theory.bound import generalisation_bound, largest_useful_beta, tasks_needed
from medi.theory.supports import Overlap, overlap

__all__ = ["Overlap", "generalisation_bound", "largest_useful_beta", "overlap", "tasks_needed"]
