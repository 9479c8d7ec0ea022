"""How many tasks Theorem 3 would need: of a learner whose stability is proven, and of MP and MM.

What is said of MP and MM extrapolates estimates from below: it is no guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import linear_regression

from guarantee import smallest_count
from stability import DELTA
from study import Row, Table, spread

from medi.metrics import chance
from medi.theory import generalisation_bound

LIMIT = 10**12
"""More tasks than this are called never."""


def needed_table(guarantees: Sequence[Row], stabilities: Sequence[Row]) -> Table:
    """The smallest n with a bound below M, and below the errors of guessing, by learner, loss and course of beta."""
    lines = [["learner", "loss", "β", "n for a bound below M", "below guessing"]]
    guessing = 1 - 1 / guarantees[0]["job"]["way"]
    for ridge in dict.fromkeys(row["job"]["ridge"] for row in guarantees):
        counts = [f"{smallest_count(guarantees, ridge, below):,}" for below in (1.0, guessing)]
        lines.append([f"weights of views, λ = {ridge:g}", "ramp, M = 1", f"{1 / ridge:g} / n, proven", *counts])
    for method in dict.fromkeys(row["job"]["method"] for row in stabilities):
        for loss in stabilities[0]["losses"]:
            mine = [(row["job"], row["losses"][loss]) for row in stabilities if row["job"]["method"] == method]
            lines += [[method.upper(), *cells] for cells in _extrapolated(loss, mine)]
    return lines


def _extrapolated(loss: str, measured: Sequence[tuple[Row, Row]]) -> Table:
    """Two courses of beta: as 1/n from the largest n on, and along the power law that fits all n."""
    method, way, queries = (measured[0][0][name] for name in ("method", "way", "queries"))
    largest = measured[0][1]["max_loss"]
    sizes = sorted({job["n"] for job, _ in measured})
    betas = [spread([one["beta"] for job, one in measured if job["n"] == n])[0] for n in sizes]
    train = spread([one["train"] for job, one in measured if job["n"] == sizes[-1]])[0]
    targets = [largest]
    if loss == "zero-one":
        targets.append(1 - (chance([queries] * way, way) if method == "mm" else 1 / way))  # MM's clusters have no names
    scale, power = power_law(sizes, betas)
    scaled = sizes[-1] * betas[-1]
    courses: dict[str, Callable[[int], float]] = {
        f"{scaled:.1f} / n, supposed": lambda n: scaled / n,
        f"{scale:.2f} / n^{power:.2f}, fitted": lambda n: scale * n**-power,
    }
    lines = []
    for name, beta in courses.items():
        counts = [count_tasks(target - train, beta, largest) for target in targets]
        cells = ["never" if count is None else f"{count:,}" for count in counts]
        lines.append([f"{loss}, M = {largest:g}", name, *cells, *["–"] * (2 - len(cells))])
    return lines


def power_law(sizes: Sequence[int], betas: Sequence[float]) -> tuple[float, float]:
    """Scale and power of beta = scale / n^power, by least squares in logarithms."""
    slope, intercept = linear_regression([math.log(n) for n in sizes], [math.log(beta) for beta in betas])
    return math.exp(intercept), -slope


def count_tasks(epsilon: float, beta: Callable[[int], float], max_loss: float) -> int | None:
    """The smallest n whose epsilon(n, beta(n)) is at most epsilon; None where doubling n up to `LIMIT` meets none."""

    def enough(n: int) -> bool:
        return generalisation_bound(n, beta(n), max_loss, DELTA) <= epsilon

    high = 1
    while not enough(high):
        high *= 2
        if high > LIMIT:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
