"""Order is information: where all images are alike, no method does better than chance, whatever it may see."""

import pytest
import torch
from small_sets import hurried

from medi.bench.grid import REGIMES
from medi.bench.score import evaluate
from medi.core.progress import Silent
from medi.data.benchmarks import Benchmark
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.methods import METHODS, Plan
from medi.metrics import chance
from medi.nn.context import Context


def alike(classes: int, each: int) -> ImageSet:
    """Images of classes, one after the other, that are all the same."""
    images = torch.full((classes * each, 1, 16, 16), 90, dtype=torch.uint8)
    return ImageSet(images, torch.arange(classes).repeat_interleave(each), tuple(map(str, range(classes))))


BENCHMARK = Benchmark.of("alike", alike(6, 24), alike(5, 24), way=5, augmentation=Augmentation())


@pytest.mark.parametrize("score", ["episode", "pooled"])
@pytest.mark.parametrize("name", METHODS)
def test_images_that_are_all_alike_are_grouped_by_chance(name: str, score: str) -> None:
    method = hurried(METHODS[name].preset("cpu"))
    learner = method.fit(BENCHMARK.known, Plan.of(BENCHMARK, 5, context=Context()))
    trained = METHODS[name].trains_on_observations
    episodes = 3 if trained else 40
    scores = evaluate(learner, BENCHMARK, 5, regimes=REGIMES, score=score, episodes=episodes, reporter=Silent())
    sizes = [15] * 5 if score == "episode" else [19] * 5
    for regime in REGIMES:
        assert scores[regime].acc < chance(sizes, 5) + (0.1 if trained or score == "pooled" else 0.03), regime
