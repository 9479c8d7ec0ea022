"""How fast is the search for clusters, and how often does it fail, ending above the cost of the true grouping?

    python benchmarks/clustering.py [--out FILE.json]

Gaussian classes of 5 points, 200 episodes, one seed, at several distances of the classes. Prints for each way of
clustering the fraction of episodes whose cost is above the true grouping's, ACC and seconds.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import torch
from script import Parser, run, write_json

from medi.kmeans.balanced import balanced_kmeans
from medi.kmeans.free import free_kmeans
from medi.kmeans.kmeans import describe, kmeans
from medi.metrics import score_episodes
from medi.nn.devices import describe_device

EPISODES, POINTS = 200, 5
SEARCHES = {
    "k-means, 10 starts": lambda x, k, g: kmeans(x, k, generator=g),
    "any sizes, default (Ward, then single moves)": lambda x, k, g: free_kmeans(x, k, generator=g),
    "balanced, 10 starts, descent by swaps": lambda x, k, g: balanced_kmeans(x, k, generator=g, restarts=10, swaps=0),
    "balanced, default (annealed swaps)": lambda x, k, g: balanced_kmeans(x, k, generator=g),
}


def measure(way: int, width: int, scale: float) -> dict[str, dict[str, float]]:
    """Class means of standard deviation `scale` under unit noise."""
    g = torch.Generator().manual_seed(0)
    means = scale * torch.randn(EPISODES, way, 1, width, generator=g)
    points = (means + torch.randn(EPISODES, way, POINTS, width, generator=g)).flatten(1, 2)
    labels = torch.arange(way).repeat_interleave(POINTS).expand(EPISODES, -1)
    true_cost = describe(points, labels, way).cost
    found = {}
    for name, search in SEARCHES.items():
        start = perf_counter()
        partition = search(points, way, torch.Generator().manual_seed(1))
        found[name] = {
            "share above the true grouping's cost": float((partition.cost > true_cost * (1 + 1e-5)).float().mean()),
            "acc": float(score_episodes(labels, partition.labels).acc.mean()),
            "seconds": perf_counter() - start,
        }
    return found


def main(parser: Parser) -> None:
    """Measure and print."""
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    figures: dict[str, object] = {"device": describe_device(torch.device("cpu")), "torch": torch.__version__}
    for way, width, scale in ((5, 64, 0.5), (20, 64, 0.4), (20, 64, 0.6), (20, 256, 0.25)):
        setting = f"{way} classes, {width} dimensions, means {scale}"
        figures[setting] = measure(way, width, scale)
        for name, values in figures[setting].items():
            print(setting, "|", name, "|", ", ".join(f"{key} {value:.3f}" for key, value in values.items()))
    write_json(out, figures)


if __name__ == "__main__":
    run(main, __doc__)
