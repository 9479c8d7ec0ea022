"""A benchmark that takes a moment: noisy images, and settings of MP."""

import torch

from medi.bench.grid import Run
from medi.data.benchmarks import Benchmark
from medi.data.facts import facts_of
from medi.data.imageset import ImageSet

# Trained for two observations whatever is asked: runs with other numbers of observations share a training.
TINY = {"from": "cpu", "network": "mlp", "observations": 2, "queries": 3, "images": 60, "schedule": {"steps": 4}}
KMEANS_RUN = Run("rules", "kmeans", "default", None, 5, 5, "honest", "episode", 0)
TINY_RUN = Run("rules", "mp", "tiny", "uniform", 5, 2, "honest", "episode", 0, TINY)


def tiny_benchmark(name: str = "rules", *_: object, **__: object) -> Benchmark:
    """What `load_dataset` gives, but six known and six novel classes of 24 noisy images."""
    return Benchmark(facts_of(name), some_classes(seed=0), some_classes(seed=1))


def some_classes(seed: int, count: int = 6) -> ImageSet:
    """Classes of 24 noisy images each."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count).repeat(24)
    classes = torch.randint(0, 256, (count, 1, 16, 16), generator=generator)
    noise = torch.randint(-90, 90, (len(labels), 1, 16, 16), generator=generator)
    images = (classes[labels] + noise).clamp(0, 255).to(torch.uint8)
    return ImageSet(images, labels, tuple(f"class {number}" for number in range(count)))
