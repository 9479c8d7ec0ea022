"""How fast MP trains and scores, as ratios against plain baselines in the same run.

    python benchmarks/speed.py [--device auto|cpu|cuda] [--dataset cifar10] [--episodes 600] [--out FILE.json]

Baselines, written the way few-shot code is usually written:
- training: one episode a step in float32, drawn with numpy and copied to the device, each image augmented alone;
- scoring: one episode after the other with scikit-learn's KMeans.

Prints one line a figure and, with --out, writes them all with device and versions.
"""

from __future__ import annotations

import platform
from pathlib import Path
from time import perf_counter

import numpy as np
import sklearn.cluster
import torch
from script import Parser, positive, run, write_json

from medi.bench.grid import REGIMES, Run
from medi.bench.questions import draw_questions
from medi.bench.score import Conditions, ask
from medi.core.progress import Silent
from medi.data.augment import augment
from medi.data.benchmarks import Benchmark, load
from medi.data.facts import facts_of
from medi.data.imageset import ImageSet
from medi.methods import Plan
from medi.methods.embedding import GroupingConfig
from medi.methods.kmeans import KMeans
from medi.methods.mp import MP
from medi.methods.prototypes import prototype_loss
from medi.metrics import score_episodes
from medi.nn import build
from medi.nn.context import Context
from medi.nn.devices import choose_device, describe_device, wait_for
from medi.nn.schedule import Schedule

WAY, SHOTS, QUERIES = 5, 5, 15


def ours_per_second(known: ImageSet, plan: Plan, steps: int, tasks: int) -> float:
    """Episodes a second of the training loop as it is, first steps (warm-up) not counted."""
    MP(images=100 * tasks, schedule=Schedule(steps=max(5, steps // 10))).fit(known, plan)
    learner = MP(images=100 * tasks, schedule=Schedule(steps=steps)).fit(known, plan)
    return steps * tasks / learner.training_seconds


def plain_per_second(known: ImageSet, plan: Plan, steps: int) -> float:
    """Episodes a second of the baseline."""
    device, rng = plan.context.device, np.random.default_rng(0)
    images, labels = known.images.cpu(), known.labels.cpu().numpy()
    model = build("conv4", tuple(known.images.shape[1:])).to(device).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(0)
    for step in range(steps + 2):
        if step == 2:
            wait_for(device)
            start = perf_counter()
        classes = rng.choice(known.n_classes, WAY, replace=False)
        items = np.stack([rng.choice(np.flatnonzero(labels == c), SHOTS + QUERIES, replace=False) for c in classes])
        batch = torch.stack([augment(images[i][None], plan.augmentation, generator)[0] for i in items.flatten()])
        embedded = model(batch.to(device)).unflatten(0, items.shape)
        loss = prototype_loss(embedded[:, :SHOTS][None], embedded[:, SHOTS:][None])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        loss.item()
    wait_for(device)
    return steps / (perf_counter() - start)


def scoring(device: torch.device, way: int, episodes: int, width: int = 256) -> dict[str, float]:
    """Seconds to score on precomputed features: ours in each regime, and scikit-learn's KMeans on a tenth of them."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(way * 3, 1, width, generator=generator)
    features = (centres + 1.5 * torch.randn(way * 3, 40, width, generator=generator)).flatten(0, 1).to(device)
    labels = torch.arange(way * 3).repeat_interleave(40).to(device)
    pool = ImageSet(features, labels, tuple(map(str, range(way * 3))))
    plan = Plan(way, SHOTS, context=Context(device))
    learner = KMeans(grouping=GroupingConfig(balanced=True)).fit(pool, plan)
    benchmark = Benchmark(facts_of("glyphs"), pool, pool)
    run = Run("glyphs", "mp", "default", "uniform", way, SHOTS, "honest", "episode", 0)
    warm = draw_questions(benchmark, run, 4)
    questions = draw_questions(benchmark, run, episodes)
    seconds: dict[str, float] = {}
    for regime in REGIMES:
        conditions = Conditions([regime], balance=True)
        ask(learner, features, warm, conditions, Silent())
        start = perf_counter()
        ask(learner, features, questions, conditions, Silent())
        wait_for(device)
        seconds[regime] = perf_counter() - start
    few = max(1, episodes // 10)
    host = features.cpu().numpy()
    start = perf_counter()
    answers = []
    for bag, query in zip(questions.bag[:few].cpu().numpy(), questions.query[:few].cpu().numpy(), strict=True):
        answers.append(sklearn.cluster.KMeans(way, n_init=10, random_state=0).fit(host[bag]).predict(host[query]))
    score_episodes(questions.labels[:few].cpu().numpy(), np.stack(answers))
    seconds["scikit-learn"] = (perf_counter() - start) * episodes / few
    return seconds


def main(parser: Parser) -> None:
    """Measure and print."""
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dataset", default="cifar10")
    parser.add_argument("--episodes", type=positive, default=600, help="episodes to score")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = choose_device(arguments.device)
    torch.zeros(1, device=device)  # starting the device is not loading
    figures: dict[str, object] = {
        "device": describe_device(device),
        "torch": torch.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
        "dataset": arguments.dataset,
    }
    start = perf_counter()
    benchmark = load(arguments.dataset, device)
    wait_for(device)
    figures["load seconds"] = perf_counter() - start
    plan = Plan(WAY, SHOTS, QUERIES, augmentation=benchmark.facts.augmentation, context=Context(device))
    large = device.type == "cuda"
    plain = plain_per_second(benchmark.known, plan, 30 if large else 5)
    figures["training, plain: episodes/s"] = plain
    for tasks in (1, 4, 16) if large else (1, 4):
        rate = ours_per_second(benchmark.known, plan, 300 if large else 5, tasks)
        figures[f"training, {tasks} tasks a step: episodes/s"] = rate
        figures[f"training, {tasks} tasks a step: ratio to plain"] = rate / plain
    for way in (5, 20):
        seconds = scoring(device, way, arguments.episodes)
        for name, value in seconds.items():
            figures[f"scoring {arguments.episodes} episodes {way}-way 5-obs, {name}: s"] = value
        figures[f"scoring {way}-way, honest: ratio to scikit-learn"] = seconds["scikit-learn"] / seconds["honest"]
    for name, value in figures.items():
        print(f"{name}: {value:.3g}" if isinstance(value, float) else f"{name}: {value}")
    write_json(arguments.out, figures)


if __name__ == "__main__":
    run(main, __doc__)
