"""Where work is done, from which seed, and who watches."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from medi.core.errors import refuse_unknown
from medi.core.progress import Reporter, Silent

DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class Workplace:
    """Where one discovery works."""

    device: str = "cpu"  # where networks are trained: auto, cpu or cuda
    seed: int = 0  # start of every random draw
    folder: Path | None = None  # where checkpoints of trainings go and are looked for; nothing is kept without one
    reporter: Reporter = field(default_factory=Silent)

    def __post_init__(self) -> None:
        check_device(self.device)


def check_device(name: str) -> None:
    """Refuse what is the name of no device."""
    refuse_unknown("device", name, DEVICES)
