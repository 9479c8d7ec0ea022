"""Where work is done, from which seed, and who watches."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from medi.core.errors import refuse_unknown
from medi.core.progress import Reporter, Silent

DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class Workplace:
    """Of one discovery.

    Attributes:
        device: Where networks are trained: auto, cpu or cuda.
        seed: Start of every random draw.
        folder: Where checkpoints of trainings go and are looked for; nothing is kept without one.
        reporter: Shows progress.
    """

    device: str = "cpu"
    seed: int = 0
    folder: Path | None = None
    reporter: Reporter = field(default_factory=Silent)

    def __post_init__(self) -> None:
        check_device(self.device)


def check_device(name: str) -> None:
    """Refuse what is the name of no device."""
    refuse_unknown("device", name, DEVICES)
