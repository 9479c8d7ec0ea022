"""Where benchmark data lies: `$MEDI_DATA`, or the user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

from medi.core.errors import InputError
from medi.data.facts import Facts


def data_folder() -> Path:
    """The folder that holds the official archives as they extract; it may not exist yet."""
    if chosen := os.environ.get("MEDI_DATA"):
        folder = Path(chosen).expanduser()
        if folder.is_file():
            raise InputError(f"MEDI_DATA is {folder}, which is a file: set it to the folder that holds the data.")
        return folder
    from platformdirs import user_cache_path  # only asked when the environment is silent

    return user_cache_path("medi") / "data"


def path_of(facts: Facts, file: str) -> Path:
    """Where a file of a benchmark lies, or would lie."""
    return data_folder() / facts.folder / file
