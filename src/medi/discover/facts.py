"""What `discovery.json` says of a run."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from medi import __version__
from medi.core.terminal import plain
from medi.discover.arguments import Arguments
from medi.discover.inputs import Inputs
from medi.discover.result import Discovery
from medi.photos.encoders import Encoder
from medi.photos.features_file import Features


def discovery_facts(
    arguments: Arguments,
    inputs: Inputs,
    discovery: Discovery,
    encoder: Encoder,
    seconds: Mapping[str, float],
    device: str,
) -> dict[str, Any]:
    """What `discovery.json` says."""
    packages = (
        "numpy",
        "scikit-learn",
        "pillow",
        *filter(None, [encoder.package]),
        *(["torch"] if "torch" in sys.modules else []),
    )
    paths = inputs.novel.paths
    facts: dict[str, Any] = plain(
        {
            "arguments": arguments.as_facts(encoder),
            "command": arguments.command(),
            "versions": {
                "medi": __version__,
                "python": platform.python_version(),
                **{package: version(package) for package in packages},
            },
            "device": device,
            "seed": arguments.seed,
            "encoder": {
                "name": encoder.name,
                "identity": encoder.identity,
                "engine": encoder.engine,
                "licence": encoder.licence,
                "source": encoder.source,
            },
            "features": encoder.facts() if isinstance(encoder, Features) else None,
            **found(discovery, paths),
            "already_known": dict(inputs.already_known),
            "known_classes": inputs.known.n_classes,
            "known_photos": len(inputs.known),
            "novel_photos": len(paths),
            "warnings": list(inputs.warnings),
            "skipped": [asdict(item) for item in inputs.skipped],
            "seconds": {name: round(value, 2) for name, value in seconds.items()},
        }
    )
    return facts


def found(discovery: Discovery, paths: Sequence[str]) -> dict[str, Any]:
    """What it says of the groups and kinds among photos with these paths."""
    return {
        "n_classes": discovery.count.k,
        "classes": asdict(discovery.count),
        "diagnostics": asdict(discovery.diagnosis),
        "representation": {"used": discovery.representation, "scores": dict(discovery.representation_scores)},
        "groups": [
            {
                "cluster": number,
                "photos": group.items,
                "typical": paths[group.medoid],
                "confidence": group.confidence,
                "together": group.together,
                "pure": group.pure,
                "verdict": group.verdict,
                "sibling": group.sibling,
                "sibling_probability": group.sibling_probability,
                "nearest_known": list(group.neighbours),
            }
            for number, group in enumerate(discovery.groups)
        ],
        "kinds": {kind: discovery.kinds.count(kind) for kind in ("novel", "known", "alone")},
        "known_photos_found": dict(sorted(Counter(name for name in discovery.known if name).items())),
        "alone": discovery.kinds.count("alone"),
    }


def compared_by(encoder: Encoder) -> dict[str, str]:
    """What the page says about an encoder."""
    if isinstance(encoder, Features):
        return {"Features": encoder.describe()}
    about = {"Encoder": encoder.name, "Source": encoder.source, "Licence": encoder.licence}
    return {name: fact for name, fact in about.items() if fact}
