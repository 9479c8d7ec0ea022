"""Pools of photos that take no time to encode: their features are mean colours, a few or many times over."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pictures import noise

from medi.grouping.class_model import ClassModel
from medi.grouping.engine import Anchors
from medi.grouping.moves import Places
from medi.grouping.recogniser import Recogniser
from medi.grouping.recognition import Recognition, curve
from medi.grouping.representation import Representation
from medi.photos.decode import Cut
from medi.photos.encoders import Encoder


@dataclass
class Pool:
    """Photos, and a model that knows three classes and two groups of colours; `encoded` gets a line a photo."""

    folder: Path
    repeats: int = 1

    @property
    def encoder(self) -> Encoder:
        def encode(images: NDArray[np.uint8]) -> NDArray[np.float32]:
            with (self.folder / "encoded").open("a") as file:
                file.write("1\n" * len(images))
            return np.tile(images.mean((2, 3), dtype=np.float32), self.repeats)

        return Encoder("means", f"means-{self.repeats}", Cut(8), (3 * self.repeats,), encode)

    @property
    def recogniser(self) -> Recogniser:
        items = np.tile(np.random.default_rng(0).uniform(0, 255, (17, 3)), self.repeats)
        representation = Representation("encoder", (3 * self.repeats,)).framed(items)
        points = representation(items)
        known = Anchors(points[:12].reshape(4, 3, -1).mean(0), np.full(3, 4.0))
        recognition = Recognition(0.5, 0.0, 0.0, 0.0, curve(np.linspace(-1, 4, 50)))
        places = Places.of(points[12:], np.array([0, 0, 1, 1, 1]), known)
        return Recogniser(
            representation, places, ("a", "b", "c"), ClassModel(0.5, 3.0), recognition, np.zeros(6), calibrated=False
        )

    def load_model(self, folder: Path, device: str) -> tuple[Recogniser, Encoder]:
        """In place of `medi.discover.model_folder.load_model`."""
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
