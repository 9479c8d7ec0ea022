"""What is read off trained networks for clustering: several views of an image, several levels, several networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from medi.cluster.preparation import Preparation
from medi.cluster.whitening import weighing, whitening
from medi.data.augment import crop, to_float
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.nets import Network
from medi.nets.conv4 import Conv4
from medi.nets.embed import in_batches
from medi.nets.resnet18 import ResNet18
from medi.runtime.devices import Precision

STATISTICS = 5_000
"""Known images, at most, that means and covariances are taken from."""


@dataclass(frozen=True)
class Readout:
    """How images become features once networks are trained; a block is one level of one network, or of one turn.

    The order is power, whitening, weights, centre, unit. All statistics are those of known images.

    Attributes:
        levels: How many of the network's stages, from the last, are read.
        shift: Pixels by which further views of an image are shifted, one to each corner; 0 for none.
        flip: Whether there is a mirrored view of every view.
        turned: Whether the image turned by 90, 180 and 270 degrees is read too, each a block of its own: what a network
            that knows turned classes makes of it is not what it makes of the upright one.
        power: Exponent on absolute values, signs kept.
        whiten: Features are divided by the root of the within-class covariance after it was shrunk by this towards a
            round one: 1 changes nothing, near 0 trusts it fully. None for no whitening.
        weigh: After whitening, every direction counts by the part b / (b + w) of its variance that is between known
            classes (w: the mean over directions), once b was shrunk by this towards the same in all directions: 1
            changes nothing. None for no weights.
        centred: Whether the mean is subtracted from every block.
        unit: Whether every block is scaled to length 1.
    """

    levels: int = 1
    shift: int = 0
    flip: bool = False
    turned: bool = False
    power: float = 1.0
    whiten: float | None = None
    weigh: float | None = None
    centred: bool = False
    unit: bool = False

    def __post_init__(self) -> None:
        if self.whiten is not None and not 0 < self.whiten <= 1:
            raise InputError(f"whiten={self.whiten}: give a shrinkage above 0, or it divides by zero, and up to 1.")
        if self.weigh is not None and not 0 <= self.weigh <= 1:
            raise InputError(f"weigh={self.weigh}: give a shrinkage from 0 to 1.")
        if self.weigh is not None and self.whiten is None:
            raise InputError("weigh takes classes to be equally wide in all directions: give whiten, too.")


class ReadoutEncoder:
    """A function from images (n, …) to features (n, d) float32, each image on its own.

    Every block is prepared and scaled so that known images have a mean squared length of 1 in it: blocks weigh equally.

    Args:
        networks: Trained, on the device.
        known: What statistics are taken from.
        config: What is read.
        device: Where to work.
        precision: Of the networks.
    """

    def __init__(
        self,
        networks: Sequence[Network],
        known: ImageSet,
        config: Readout,
        device: torch.device,
        precision: Precision = "auto",
    ) -> None:
        self.networks, self.config, self.device, self.precision = networks, config, device, precision
        if config.turned and known.images.ndim != 4:
            raise InputError("only images can be turned: read plain vectors with turned=False.")
        labelled = (known.labels >= 0).nonzero().squeeze(1)
        # Evenly over the whole set, whose order is by class or none.
        chosen = labelled[:: -(-len(labelled) // STATISTICS)]
        self.blocks = [
            _Block(features, known.labels[chosen], config) for features in self._features(known.images[chosen])
        ]

    def __call__(self, images: Tensor) -> Tensor:
        """Features (n, d) of images (n, …)."""
        features = self._features(images)
        return torch.cat([block(some) for block, some in zip(self.blocks, features, strict=True)], dim=1)

    def _features(self, images: Tensor) -> list[Tensor]:
        """The blocks (n, d) of images, averaged over views."""
        blocks: list[Tensor] = []
        for network, turns in product(self.networks, range(4) if self.config.turned else (0,)):
            network.eval()
            widths: list[int] = []

            def read(
                batch: Tensor, network: Network = network, turns: int = turns, widths: list[int] = widths
            ) -> Tensor:
                total, views = torch.zeros((), device=self.device), 0
                seen = torch.rot90(to_float(batch), turns, (-2, -1)) if turns else to_float(batch)
                for view in views_of(seen, self.config.shift, flip=self.config.flip):
                    levels = levels_of(network, view, self.config.levels)
                    widths[:] = [level.shape[1] for level in levels]
                    total, views = total + torch.cat(levels, 1).float(), views + 1
                return total / views

            together = in_batches(read, self.device, images, precision=self.precision)
            blocks += torch.split(together, widths, dim=1)
        return blocks


class _Block:
    """Preparation, whitening, weights and scale of one block, as known features (n, d) and labels (n,) have them."""

    def __init__(self, features: Tensor, labels: Tensor, config: Readout) -> None:
        self.power = Preparation(power=config.power)
        self.last = Preparation(centre="known" if config.centred else "none", unit=config.unit)
        features = self.power.apply(features)
        self.map: Tensor | None = None
        if config.whiten is not None:
            self.map = whitening(features, labels, config.whiten)
            if config.weigh is not None:
                self.map = self.map @ weighing(features @ self.map, labels, config.weigh)
        features = self._mapped(features)
        self.centre = self.last.fit(features[None], features.mean(0, keepdim=True))
        self.scale = float(self.last.apply(features, self.centre).square().sum(1).mean().clamp(min=1e-12).rsqrt())

    def __call__(self, features: Tensor) -> Tensor:
        """Features (n, d), prepared."""
        return self.scale * self.last.apply(self._mapped(self.power.apply(features)), self.centre)

    def _mapped(self, features: Tensor) -> Tensor:
        return features if self.map is None else features @ self.map


def views_of(images: Tensor, shift: int, *, flip: bool) -> Iterator[Tensor]:
    """Float images (n, c, h, w) as they are, shifted to each corner, and each of these mirrored."""
    if images.ndim != 4 and (shift or flip):
        raise InputError("only images can be shifted or mirrored: read plain vectors with shift=0 and flip=False.")
    corners = [(top, left) for top in (0, 2 * shift) for left in (0, 2 * shift)] if shift else []
    for corner in (None, *corners):
        view = images
        if corner:
            top, left = (torch.full((len(images),), place, device=images.device) for place in corner)
            view = crop(images, shift, top, left)
        yield view
        if flip:
            yield view.flip(-1)


def levels_of(network: Network, images: Tensor, levels: int) -> list[Tensor]:
    """The embedding of images and, after it, what earlier stages make of them, each (n, d).

    An earlier stage is averaged over space to the side that the last one has in the embedding.
    """
    if levels == 1:
        return [network(images)]
    body = network.body
    match body:
        case ResNet18():
            stages, x = body.stages, body.stem(images)
        case Conv4():
            stages, x = body.blocks, images
        case _:
            raise InputError("only ResNet-18 and Conv-4 have stages to read: use levels=1 with other networks.")
    if not 1 <= levels <= len(body.widths):
        raise InputError(f"levels={levels}: the network has {len(body.widths)} stages; ask for so many at most.")
    each = len(stages) // len(body.widths)
    outputs = []
    for number, stage in enumerate(stages, 1):
        x = stage(x)
        if number % each == 0:
            outputs.append(x)
    size = (1, 1) if isinstance(body, ResNet18) else tuple(outputs[-1].shape[-2:])
    pooled = [adaptive_avg_pool2d(output, size).flatten(1) for output in outputs[-levels:]]
    return [network.head(pooled[-1]), *pooled[-2::-1]]
