"""Where benchmark data lies: `$MEDI_DATA`, or the user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

from medi.data.facts import Facts


def data_folder() -> Path:
    """The folder that holds the official archives as they extract; it may not exist yet."""
    if chosen := os.environ.get("MEDI_DATA"):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path  # only asked when the environment is silent

    return user_cache_path("medi") / "data"


def path_of(facts: Facts, file: str) -> Path:
    """Where a file of a benchmark lies, or would lie."""
    return data_folder() / facts.folder / file
