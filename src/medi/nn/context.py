"""Where work is done, from which seed, and who watches."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch

from medi.core.progress import Reporter, Silent


class Stopwatch:
    """Adds up what trainings took, those before an interruption included."""

    def __init__(self) -> None:
        self.seconds = 0.0


@dataclass(frozen=True)
class Context:
    """Where a training is done and who watches: the same for every method.

    Attributes:
        device: Where tensors live.
        seed: Start of every random draw.
        folder: Where checkpoints and logs go and are looked for; nothing is kept without one.
        reporter: Shows progress.
        checkpoint_seconds: Time between two checkpoints.
        stopwatch: Adds up the time of all trainings done here.
    """

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    seed: int = 0
    folder: Path | None = None
    reporter: Reporter = field(default_factory=Silent)
    checkpoint_seconds: float = 20.0
    stopwatch: Stopwatch = field(default_factory=Stopwatch, compare=False)

    def generator(self, stream: int = 0) -> torch.Generator:
        """A fresh generator on the device; different streams are independent."""
        return torch.Generator(self.device).manual_seed((self.seed + 1) * 1_000_003 + stream)
