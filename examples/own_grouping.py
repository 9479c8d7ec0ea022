"""A clustering model of one's own in the place of Ward's method: here average linkage.

`python examples/own_grouping.py` compares it with the engine's own groups, on drawn letters.
"""

import subprocess
import sys

import numpy as np
from sklearn.cluster import AgglomerativeClustering


def average(points: np.ndarray, k: int, generator: np.random.Generator) -> np.ndarray:
    """Labels (n,) from 0 to k - 1 of points (n, d): all that a clustering model has to give."""
    return AgglomerativeClustering(k, linkage="average").fit_predict(points)


def main() -> None:
    """Score both on pools of letters that nothing learnt from; how many kinds a pool holds is not told."""
    words = (
        "bench run --dataset glyphs --method plain --classes auto --seeds 1 --episodes 10 --out own_grouping --resume"
    )
    for grouping in ("posterior", f"{__file__}:average"):
        subprocess.run([sys.executable, "-m", "medi", *words.split(), "--grouping", grouping], check=True)


if __name__ == "__main__":
    main()
