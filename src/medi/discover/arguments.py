"""What `medi discover` and `medi assign` are asked for, and how they go about it."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from medi.photos.encoders import DEFAULT_ENCODER, Encoder
from medi.photos.features_file import Features
from medi.registry import GROUPING_NAMES, PLAIN


@dataclass(frozen=True)
class Arguments:
    """What `medi discover` was asked for; an encoder, or files with features that were made elsewhere."""

    known: Path
    novel: Path
    out: Path
    classes: int | Literal["auto"] = "auto"
    method: str = PLAIN
    encoder: str | None = DEFAULT_ENCODER
    seed: int = 0
    device: str = "auto"
    export: bool = False
    features: tuple[Path, ...] = ()
    only_novel: bool = False
    grouping: str = GROUPING_NAMES[0]

    def as_facts(self, encoder: Encoder) -> dict[str, Any]:
        """As JSON-able values, by which an unfinished run is recognised; folders and files in full."""
        digests = [source.sha256 for source in encoder.sources] if isinstance(encoder, Features) else []
        files = zip(self.features, digests, strict=True)
        return (
            asdict(self)
            | {name: str(getattr(self, name).resolve()) for name in ("known", "novel", "out")}
            | {"features": [{"file": str(file.resolve()), "sha256": digest} for file, digest in files]}
        )

    def command(self) -> str:
        """The command that does the same again, also when defaults have changed."""
        words = ["medi", "discover"]
        for name, value in asdict(self).items():
            if name == "features":
                words += [word for file in self.features for word in ("--features", str(file))]
            elif isinstance(value, bool):
                words += [f"--{name.replace('_', '-')}"] if value else []
            elif value is not None:
                words += [f"--{name}", str(value)]
        return shlex.join(words)


@dataclass(frozen=True)
class AssignArguments:
    """What `medi assign` was asked for.

    Attributes:
        model: The model, or the output folder that it lies in.
        images: A folder with new photos.
        out: The table to write.
        none_rate: Share of the photos of groups and known classes that may be called none; None for what is likeliest.
        sure: How probable an answer must be; what is less sure is none.
        features: Files with features of the new photos, where those of the model were made elsewhere.
        page: An HTML file to write, with the pictures; None for none.
    """

    model: Path
    images: Path
    out: Path
    none_rate: float | None = None
    sure: float = 0.0
    features: tuple[Path, ...] = ()
    page: Path | None = None


@dataclass(frozen=True)
class Manner:
    """How a command goes about its work; no result depends on it.

    Attributes:
        force: Whether what an earlier run wrote is replaced.
        ray: Address of a Ray cluster that encodes photos; None for none.
        verbose: Whether is said what runs the encoder, where it comes from, and its licence.
    """

    force: bool = False
    ray: str | None = None
    verbose: bool = False
