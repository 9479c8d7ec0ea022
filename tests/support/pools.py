"""Pools of photos that take no time to encode: their features are mean colours, a few or many times over."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from pictures import noise

from medi.cluster.class_model import Anchors, ClassModel
from medi.discovery.recogniser import Recogniser
from medi.discovery.recognition import Recognition, curve
from medi.discovery.representations import Representation
from medi.photos.decode import Cut
from medi.photos.encoders import Encoder


@dataclass
class Pool:
    """Photos, and a model that knows three classes and two groups of colours; `encoded` gets a line a photo."""

    folder: Path
    repeats: int = 1

    @property
    def encoder(self) -> Encoder:
        def encode(images: torch.Tensor) -> torch.Tensor:
            with (self.folder / "encoded").open("a") as file:
                file.write("1\n" * len(images))
            return images.float().mean((2, 3)).repeat(1, self.repeats)

        return Encoder("means", f"means-{self.repeats}", Cut(8), (3 * self.repeats,), encode)

    @property
    def recogniser(self) -> Recogniser:
        items = 255 * torch.rand(17, 3, generator=torch.Generator().manual_seed(0)).repeat(1, self.repeats)
        representation = Representation("encoder", (3 * self.repeats,)).framed(items)
        points = representation(items).numpy()
        known = Anchors(points[:12].reshape(4, 3, -1).mean(0), np.full(3, 4.0))
        recognition = Recognition(0.5, 0.0, curve(np.linspace(-2, 8, 50)), np.zeros(0))
        labels, model = np.array([0, 0, 1, 1, 1]), ClassModel(0.5, 3.0)
        return Recogniser.of(
            representation, points[12:], labels, known, ("a", "b", "c"), model, recognition, calibrated=False
        )  # fmt: skip

    def load_model(self, folder: Path, device: torch.device) -> tuple[Recogniser, Encoder]:
        """In place of `medi.discovery.model_folder.load_model`."""
        return self.recogniser, self.encoder

    def write(self, count: int) -> Path:
        """So many photos, no two the same."""
        for number in range(count):
            noise(self.folder / "photos" / f"{number % 3}" / f"{number:04}.png", seed=number, size=(8, 8))
        return self.folder / "photos"

    def encoded(self) -> int:
        """How many photos were encoded since it was last asked."""
        path = self.folder / "encoded"
        lines = path.read_text().split() if path.exists() else []
        path.unlink(missing_ok=True)
        return len(lines)
