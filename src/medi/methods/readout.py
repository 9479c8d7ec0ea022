"""What medi reads off trained networks: several views of an image, several levels, several networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, normalize

from medi.core.errors import InputError
from medi.core.tensors import under_prefix, with_prefix
from medi.data.augment import crop, to_float
from medi.data.imageset import ImageSet
from medi.grouping.whitening import weighing, whitening
from medi.nn import Network, rebuild
from medi.nn.conv4 import Conv4
from medi.nn.devices import Precision
from medi.nn.embed import Embedding, exact_network, in_batches, load_weights
from medi.nn.resnet18 import ResNet18

STATISTICS_ITEMS = 5_000
"""Known images, at most, that means and covariances are taken from."""


@dataclass(frozen=True)
class Readout:
    """How images become points once networks are trained; a block is one level of one network, or of one turn.

    Every block is whitened, weighed, centred and scaled to length 1, by statistics of known images.

    Attributes:
        levels: How many of the network's stages, from the last, are read.
        shift: Pixels by which further views of an image are shifted, one to each corner; 0 for none.
        flip: Whether there is a mirrored view of every view.
        turned: Whether the image turned by 90, 180 and 270 degrees is read too, each a block of its own: what a network
            that knows turned classes makes of it is not what it makes of the upright one.
        whiten: Features are divided by the root of the within-class covariance after it was shrunk by this towards a
            round one: 1 changes nothing, near 0 trusts it fully.
        weigh: After whitening, every direction counts by the part b / (b + w) of its variance that is between known
            classes (w: the mean over directions), once b was shrunk by this towards the same in all directions: 1
            changes nothing. None for no weights.
    """

    levels: int = 1
    shift: int = 0
    flip: bool = False
    turned: bool = False
    whiten: float = 0.5
    weigh: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.whiten <= 1:
            raise InputError(f"whiten={self.whiten}: give a shrinkage above 0, or it divides by zero, and up to 1.")
        if self.weigh is not None and not 0 <= self.weigh <= 1:
            raise InputError(f"weigh={self.weigh}: give a shrinkage from 0 to 1.")


class ReadoutEmbedding(Embedding):
    """Items to points by several networks, block beside block; known images have a mean squared length of 1 in each."""

    kind = "readout"

    def __init__(
        self,
        networks: Sequence[Network],
        readout: Readout,
        blocks: Sequence[ReadoutBlock],
        precision: Precision = "auto",
    ) -> None:
        self.networks, self.readout, self.blocks, self.precision = networks, readout, blocks, precision

    @classmethod
    def fit(cls, networks: Sequence[Network], known: ImageSet, readout: Readout) -> Self:
        """Take the statistics of every block from known images."""
        if readout.turned and known.images.ndim != 4:
            raise InputError("only images can be turned: read plain vectors with turned=False.")
        labelled = known.labelled()
        # Evenly over the whole set, whose order is by class or none.
        chosen = labelled[:: -(-len(labelled) // STATISTICS_ITEMS)]
        features = cls(networks, readout, [])._features(known.images[chosen])
        return cls(networks, readout, [ReadoutBlock.fit(some, known.labels[chosen], readout) for some in features])

    @property
    def network_name(self) -> str:
        """Names of the networks."""
        return "+".join(str(network.blueprint["name"]) for network in self.networks)

    def __call__(self, items: Tensor) -> Tensor:
        """Points (n, d) of items (n, …)."""
        features = self._features(items)
        return torch.cat([block(some) for block, some in zip(self.blocks, features, strict=True)], dim=1)

    def _features(self, items: Tensor) -> list[Tensor]:
        """The blocks (n, d) of items, averaged over views."""
        blocks: list[Tensor] = []
        for network, turns in product(self.networks, range(4) if self.readout.turned else (0,)):
            network.eval()
            device = next(network.parameters()).device
            widths: list[int] = []

            def read(
                batch: Tensor, network: Network = network, turns: int = turns, widths: list[int] = widths
            ) -> Tensor:
                seen = to_float(batch).to(next(network.parameters()).dtype)
                seen = torch.rot90(seen, turns, (-2, -1)) if turns else seen
                total, views = torch.zeros((), device=seen.device), 0
                for view in views_of(seen, self.readout.shift, flip=self.readout.flip):
                    levels = levels_of(network, view, self.readout.levels)
                    widths[:] = [level.shape[1] for level in levels]
                    features = torch.cat(levels, 1)
                    total = total + features.to(torch.promote_types(features.dtype, torch.float32))
                    views += 1
                return total / views

            together = in_batches(read, device, items, precision=self.precision)
            blocks += torch.split(together, widths, dim=1)
        return blocks

    def pack(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Weights of the networks and statistics of the blocks."""
        tensors: dict[str, Tensor] = {}
        for number, network in enumerate(self.networks):
            tensors |= with_prefix(f"network-{number}", network.state_dict())
        for number, block in enumerate(self.blocks):
            tensors |= with_prefix(f"block-{number}", asdict(block))
        blueprints = [dict(network.blueprint) for network in self.networks]
        return tensors, {"readout": asdict(self.readout), "networks": blueprints, "blocks": len(self.blocks)}

    @classmethod
    def unpack(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Self:
        """What `pack` took apart."""
        networks = [
            load_weights(rebuild(blueprint), under_prefix(f"network-{number}", tensors))
            for number, blueprint in enumerate(facts["networks"])
        ]
        blocks = [ReadoutBlock(**under_prefix(f"block-{number}", tensors)) for number in range(int(facts["blocks"]))]
        return cls(networks, Readout(**facts["readout"]), blocks, "float32")

    def exact(self) -> Self:
        """The same without mixed precision, and in float64 on vectors."""
        if len(self.networks[0].blueprint["shape"]) != 1:
            return type(self)(self.networks, self.readout, self.blocks, "float32")
        blocks = [ReadoutBlock(*(value.double() for value in asdict(block).values())) for block in self.blocks]
        return type(self)([exact_network(network) for network in self.networks], self.readout, blocks, "float32")


@dataclass(frozen=True)
class ReadoutBlock:
    """Whitening and weights (d, d), centre (1, d) and scale () of one block.

    Known features then have a mean squared length of 1.
    """

    matrix: Tensor
    centre: Tensor
    scale: Tensor

    @classmethod
    def fit(cls, features: Tensor, labels: Tensor, readout: Readout) -> ReadoutBlock:
        """As known features (n, d) of classes (n,) have it."""
        matrix = _by_classes(whitening, features, labels, readout.whiten)
        if readout.weigh is not None:
            matrix = matrix @ _by_classes(weighing, features @ matrix, labels, readout.weigh)
        mapped = features @ matrix
        centre = mapped.mean(0, keepdim=True)
        lengths = normalize(mapped - centre, dim=-1).square().sum(1)
        return cls(matrix, centre, lengths.mean().clamp(min=1e-12).rsqrt())

    def __call__(self, features: Tensor) -> Tensor:
        """Features (n, d), prepared."""
        return self.scale * normalize(features @ self.matrix - self.centre, dim=-1)


def _by_classes(
    matrix_of: Callable[[NDArray[Any], NDArray[np.int64], float], NDArray[np.float64]],
    features: Tensor,
    labels: Tensor,
    shrinkage: float,
) -> Tensor:
    """A matrix (d, d) float32, where the features (n, d) are, of a function that takes arrays."""
    found = matrix_of(features.cpu().numpy(), labels.cpu().numpy(), shrinkage)
    return torch.from_numpy(found).float().to(features.device)


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
