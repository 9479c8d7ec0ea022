"""How near the estimated overlap comes to known values as samples grow: boxes, balls and Gaussians.

    python experiments/theory/convergence.py --out results/theory [--seeds 5]

Writes convergence.jsonl and convergence.png, and prints the mean error over families and seeds with how many of the
95 % intervals hold the true value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.figure import Figure
from scipy.special import betainc, betaincinv
from study import COLOURS, Parser, Row, Table, by_size, measure, run, save_figure, show, spread
from torch import Tensor
from torch.nn.functional import normalize
from torch.special import ndtr, ndtri

from medi.core.errors import InputError
from medi.core.progress import Reporter
from medi.theory import overlap

SIZES = (100, 300, 1000, 3000, 10_000)
DIMENSIONS = (1, 2, 5, 10)
FAMILIES = ("boxes", "balls", "gaussians", "touching")
SEED = 1_000_003
"""Added to the estimator's seed, so that halvings do not depend on the draws of the points."""


@dataclass(frozen=True)
class Pair:
    """Two equally likely classes of the same form, the second moved along the first axis.

    Attributes:
        tau: Their overlap, exactly.
        shift: How far the second class is moved.
        draw: (n, d) points of the unmoved class, given n, d and a generator.
    """

    tau: float
    shift: float
    draw: Callable[[int, int, torch.Generator], Tensor]

    def sample(self, n: int, dimension: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Points (n, d) and classes (n,), 0 and 1 in turn."""
        y = torch.arange(n) % 2
        z = self.draw(n, dimension, generator)
        z[:, 0] += self.shift * y
        return z, y


def boxes(shift: float) -> Pair:
    """Unit cubes: they share 1 - shift of their volume."""
    return Pair(max(0.0, 1 - shift), shift, lambda n, d, g: torch.rand(n, d, generator=g))


def balls(shift: float, dimension: int) -> Pair:
    """Unit balls: two caps of height 1 - shift / 2, which are I((d + 1) / 2, 1/2) of the volume together."""
    shared = float(betainc((dimension + 1) / 2, 0.5, max(0.0, 1 - (shift / 2) ** 2)))

    def draw(n: int, d: int, generator: torch.Generator) -> Tensor:
        direction = normalize(torch.randn(n, d, generator=generator), dim=1)
        return direction * torch.rand(n, 1, generator=generator).pow(1 / d)

    return Pair(shared, shift, draw)


def gaussians(shift: float, deviation: float = 0.5) -> Pair:
    """Round Gaussians, every coordinate cut off at -1 and 1: of each the part beyond shift - 1 is shared."""
    low, high = ndtr(torch.tensor([-1.0, 1.0], dtype=torch.float64) / deviation)
    cut = ndtr(torch.tensor(min(1.0, shift - 1) / deviation, dtype=torch.float64))

    def draw(n: int, d: int, generator: torch.Generator) -> Tensor:
        uniform = torch.rand(n, d, generator=generator, dtype=torch.float64)
        standard: Tensor = ndtri(low + uniform * (high - low))
        return deviation * standard.float()

    return Pair(float((high - cut) / (high - low)), shift, draw)


def pair_of(family: str, dimension: int) -> Pair:
    """The pair of a family whose overlap is one half; `touching`: boxes side by side, none."""
    match family:
        case "boxes":
            return boxes(0.5)
        case "balls":
            return balls(2 * math.sqrt(1 - betaincinv((dimension + 1) / 2, 0.5, 0.5)), dimension)
        case "gaussians":
            return gaussians(1.0)
        case "touching":
            return boxes(1.0)
    raise InputError(f"unknown family '{family}': there is {', '.join(FAMILIES)}.")


def study_convergence(
    out: Path, *, seeds: int, reporter: Reporter, sizes: Sequence[int] = SIZES, dimensions: Sequence[int] = DIMENSIONS
) -> list[Row]:
    """Estimate known overlaps from samples of growing size: a row of `convergence.jsonl` each, and a figure."""
    jobs = [
        {"family": family, "dimension": dimension, "n": n, "seed": seed}
        for family in FAMILIES
        for dimension in dimensions
        for n in sizes
        for seed in range(seeds)
    ]

    def work(job: Row) -> Row:
        pair = pair_of(job["family"], job["dimension"])
        z, y = pair.sample(job["n"], job["dimension"], torch.Generator().manual_seed(job["seed"]))
        found = overlap(z, y, seed=SEED + job["seed"])
        return {"exact": pair.tau, "tau": found.tau, "low": found.low, "high": found.high}

    rows = measure(out / "convergence.jsonl", jobs, work, "overlaps", reporter)
    save_figure(draw_convergence(rows), out / "convergence.png")
    return rows


def draw_convergence(rows: Sequence[Row]) -> Figure:
    """A panel a family: mean and deviation of the estimates over n, the exact value dashed."""
    figure = Figure(figsize=(11, 3.1))
    panels = figure.subplots(1, len(FAMILIES), sharey=True)
    for panel, family in zip(panels, FAMILIES, strict=True):
        mine = [row for row in rows if row["job"]["family"] == family]
        panel.axhline(mine[0]["exact"], color="black", linestyle="--", linewidth=1)
        for colour, dimension in zip(COLOURS, sorted({row["job"]["dimension"] for row in mine}), strict=False):
            points = by_size([row for row in mine if row["job"]["dimension"] == dimension], lambda row: row["tau"])
            label = f"{dimension} dimension{'s' if dimension > 1 else ''}"
            panel.errorbar(*points, color=colour, marker="o", markersize=3, capsize=2, label=label)
        panel.set(title=family, xscale="log", xlabel="points", ylim=(-0.02, 1.0))
    panels[0].set_ylabel("estimated overlap τ")
    panels[-1].legend(frameon=False, fontsize=8)
    return figure


def convergence_table(rows: Sequence[Row]) -> Table:
    """Mean error over families and seeds, and how many intervals hold the truth, by dimension and n."""
    sizes = sorted({row["job"]["n"] for row in rows})
    lines = [["dimensions", *(f"n = {n}" for n in sizes)]]
    for dimension in sorted({row["job"]["dimension"] for row in rows}):
        cells = [str(dimension)]
        for n in sizes:
            mine = [row for row in rows if (row["job"]["dimension"], row["job"]["n"]) == (dimension, n)]
            error, _ = spread([abs(row["tau"] - row["exact"]) for row in mine])
            held = sum(row["low"] <= row["exact"] <= row["high"] for row in mine)
            cells.append(f"{error:.3f} ({held} of {len(mine)})")
        lines.append(cells)
    return lines


def main(parser: Parser) -> None:
    """Measure and print."""
    show(parser, study_convergence, convergence_table, seeds=5)


if __name__ == "__main__":
    run(main, __doc__)
