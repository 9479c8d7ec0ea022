"""Small sets of classes, of plain vectors and of images, that a small network tells apart in no time."""

from dataclasses import fields, is_dataclass, replace

import torch

from medi.data.imageset import ImageSet


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(classes: int, each: int = 25, seed: int = 0) -> ImageSet:
    """Vectors around the means of their classes."""
    means = 4 * torch.randn(classes, 8, generator=generator(seed))
    items = means.repeat_interleave(each, 0) + torch.randn(classes * each, 8, generator=generator(seed + 1))
    return ImageSet(items, torch.arange(classes).repeat_interleave(each), tuple(map(str, range(classes))))


def patterns(classes: int = 4, each: int = 8, channels: int = 3, side: int = 16) -> ImageSet:
    """Images that are noise around the pattern of their class; classes take turns."""
    labels = torch.arange(classes).repeat(each)
    means = torch.randint(0, 256, (classes, channels, side, side), generator=generator())
    noise = torch.randint(-60, 60, (classes * each, channels, side, side), generator=generator(1))
    return ImageSet((means[labels] + noise).clamp(0, 255).to(torch.uint8), labels, tuple("abcdefgh"[:classes]))


def cosines(n: int, k: int, seed: int = 0) -> torch.Tensor:
    return 2 * torch.rand(n, k, generator=generator(seed), dtype=torch.float64) - 1


KNOWN, NOVEL = blobs(8), blobs(3, each=10, seed=5)


def bags(episodes: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    """Of three novel classes five items each to observe and five to ask about: indices, in random order."""
    order = torch.stack([torch.randperm(10, generator=generator(i)) for i in range(episodes)])
    items = order[:, None] + 10 * torch.arange(3)[:, None]
    return items[:, :, :5].flatten(1), items[:, :, 5:].flatten(1)


def hurried(settings):
    """Settings that are through in two steps, at any depth."""
    if isinstance(settings, tuple):
        return tuple(map(hurried, settings))
    if not is_dataclass(settings):
        return settings
    counts = ("steps", "epochs", "least_steps", "tasks")
    values = {one.name: getattr(settings, one.name) for one in fields(settings)}
    short = {name: 2 for name in counts if isinstance(values.get(name), int)}
    return replace(settings, **{name: hurried(value) for name, value in values.items()} | short)


def episodes_of(episodes: int, k: int, size: int, d: int = 8, apart: float = 20.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Points of Gaussian classes with means so many times as wide as the noise, shuffled, and their classes."""
    means = apart * torch.randn(episodes, k, 1, d, generator=generator())
    points = (means + torch.randn(episodes, k, size, d, generator=generator(1))).flatten(1, 2)
    order = torch.rand(episodes, k * size, generator=generator(2)).argsort(1)
    labels = torch.arange(k).repeat_interleave(size)[order]
    return points.gather(1, order.unsqueeze(-1).expand_as(points)), labels
