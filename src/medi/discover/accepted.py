"""What a person accepted as known classes: the photos, and the names of groups for the model that found them.

That is `accepted.json` beside `clusters.csv`; `medi schema accepted` says what is in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from medi.core.files import write_atomically
from medi.core.reading import input_errors, read_file
from medi.discover.output import CLUSTERS
from medi.schemas import read_document

ACCEPTED = "accepted.json"


def read_accepted(path: Path) -> dict[str, Any]:
    """What an `accepted.json` holds; empty where there is none."""
    if not path.exists():
        return {"accepted": [], "groups": {}, "discovery": ""}
    return read_document(path, "accepted", "delete it, then run `medi accept` or `medi review`, which write it anew")


def write_accepted(path: Path, facts: Mapping[str, Any]) -> None:
    """Write an `accepted.json`; where there is nothing to hold, there is none."""
    if facts["accepted"] or facts["groups"] or path.exists():
        write_atomically(path, (json.dumps(facts, indent=1) + "\n").encode())


def accepted_photos(out: Path) -> frozenset[bytes]:
    """SHA-256 of the contents of all photos that were accepted in an output folder."""
    return frozenset(bytes.fromhex(photo["sha256"]) for photo in read_accepted(out / ACCEPTED)["accepted"])


def group_names(model: Path) -> dict[int, str]:
    """The class that each accepted group of a model is, by number; none where nothing was accepted.

    `accepted.json` lies beside the folder of the model. It counts only where its numbers are those of the
    `clusters.csv` that is there: a new discovery numbers its groups anew.
    """
    for folder in (model, model.parent):
        if (folder / ACCEPTED).is_file() and (folder / CLUSTERS).is_file():
            facts = read_accepted(folder / ACCEPTED)
            with input_errors(folder / CLUSTERS, "read"):
                digest = sha256(read_file(folder / CLUSTERS)).hexdigest()[:16]
            if facts["discovery"] == digest:
                return {int(number): name for number, name in facts["groups"].items()}
    return {}
