"""What the runs of a command share: the folder of their results, what they are scored on, and where they are done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch

from medi.core.errors import InputError
from medi.core.files import LOCK, make_folder, only_process
from medi.core.progress import Reporter
from medi.core.reading import input_errors
from medi.jobs import ranks

RESULTS = "results.jsonl"


@dataclass(frozen=True)
class Setup:
    """Where and how runs are done: the results folder, how many scoring episodes, and whether to continue there."""

    out: Path
    episodes: int
    device: torch.device
    reporter: Reporter
    resume: bool = False

    @property
    def models(self) -> Path:
        """Where trained models are kept."""
        return self.out / "models"

    def refuse_used_folder(self) -> None:
        """Results go to a folder that is new, empty, or explicitly continued."""
        if self.resume or not ranks.is_first():
            return
        with input_errors(self.out, "read"):
            if self.out.is_dir() and any(path.name != LOCK for path in self.out.iterdir()):
                raise InputError(f"{self.out} is not empty: add --resume to continue it, or choose another --out.")

    @contextmanager
    def held_folder(self) -> Iterator[Path]:
        """The results folder, made where it is missing and held for this process alone."""
        with only_process(make_folder(self.out)) if ranks.is_first() else nullcontext():  # the first holds it for all
            yield self.out
