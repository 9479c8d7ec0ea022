"""What a person accepted as known classes: the photos, and the names of groups for the model that found them."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

FILE, CLUSTERS = "accepted.json", "clusters.csv"


def accepted_photos(out: Path) -> frozenset[bytes]:
    """SHA-256 of the contents of all photos that were accepted in an output folder."""
    try:
        facts = json.loads((out / FILE).read_text(encoding="utf-8"))
        return frozenset(bytes.fromhex(photo["sha256"]) for photo in facts["accepted"])
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset()


def group_names(model: Path) -> dict[int, str]:
    """The class that each accepted group of a model is, by number; none where nothing was accepted.

    `accepted.json` lies beside the folder of the model. It counts only where its numbers are those of the
    `clusters.csv` that is there: a new discovery numbers its groups anew.
    """
    for folder in (model, model.parent):
        try:
            facts = json.loads((folder / FILE).read_text(encoding="utf-8"))
            digest = sha256((folder / CLUSTERS).read_bytes()).hexdigest()[:16]
            if facts["discovery"] == digest:
                return {int(number): str(name) for number, name in facts["groups"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return {}
