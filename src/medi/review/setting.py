"""What actions need besides the draft, and how they call photos and groups in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from medi.review.draft import Draft
from medi.review.pool import Pool


@dataclass(frozen=True)
class Setting:
    """What actions need besides the draft: paths of photos, names of known classes, and the pool where there is one."""

    paths: Sequence[str]
    class_names: Sequence[str]
    pool: Pool | None

    def call(self, item: int) -> str:
        """A photo's name in a sentence."""
        return PurePosixPath(self.paths[item]).name


def call_group(draft: Draft, number: int) -> str:
    """A group's name in a sentence."""
    return f"“{draft.names[number]}”" if number in draft.names else f"group {number}"


def photos(items: Sequence[int], setting: Setting) -> str:
    """One photo by its name, several by their number."""
    return setting.call(items[0]) if len(items) == 1 else f"{len(items)} photos"
