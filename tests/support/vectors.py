"""Classes of plain vectors that a small network tells apart in no time."""

import torch

from medi.data.imageset import ImageSet


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(classes: int, each: int = 25, seed: int = 0) -> ImageSet:
    means = 4 * torch.randn(classes, 8, generator=generator(seed))
    items = means.repeat_interleave(each, 0) + torch.randn(classes * each, 8, generator=generator(seed + 1))
    return ImageSet(items, torch.arange(classes).repeat_interleave(each), tuple(map(str, range(classes))))


KNOWN, NOVEL = blobs(8), blobs(3, each=10, seed=5)


def bags(episodes: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    """Five items of each of three classes to observe, five to ask about; in random order."""
    order = torch.stack([torch.randperm(10, generator=generator(i)) for i in range(episodes)])
    items = order[:, None] + 10 * torch.arange(3)[:, None]
    return items[:, :, :5].flatten(1), items[:, :, 5:].flatten(1)
