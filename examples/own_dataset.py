"""A dataset of one's own: stripes, whose classes differ in their direction.

`python examples/own_dataset.py` scores K-means and the paper's MP on it.
"""

import subprocess
import sys

import torch

from medi.data.benchmarks import Benchmark
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet


def stripes() -> Benchmark:
    """Twelve directions to learn from, and twelve between them to discover."""
    return Benchmark.of("stripes", draw(0), draw(1), way=5, augmentation=Augmentation())


def draw(first: int) -> ImageSet:
    """Images (480, 1, 32, 32) uint8 of every second of 24 directions."""
    generator = torch.Generator().manual_seed(first)
    labels = torch.arange(12).repeat_interleave(40)
    angles = (torch.pi / 24 * (2 * labels + first))[:, None, None]
    y, x = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
    phase = 2 * torch.pi * torch.rand(480, 1, 1, generator=generator)
    noise = 20 * torch.randn(480, 32, 32, generator=generator)
    grey = 128 + 80 * torch.sin(x * angles.cos() + y * angles.sin() + phase) + noise
    return ImageSet(grey.clamp(0, 255).byte()[:, None], labels, tuple(map(str, range(first, 24, 2))))


if __name__ == "__main__":
    words = f"bench run --dataset {__file__}:stripes --method kmeans,mp --seeds 1 --out own_dataset --resume"
    subprocess.run([sys.executable, "-m", "medi", *words.split()], check=True)
