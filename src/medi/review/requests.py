"""The arguments of an action, checked: whatever a page or a script sends, nonsense is refused in one sentence."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from medi.review.draft import Draft

LONGEST_NAME = 200
"""Characters of a name."""
MOST_PARTS = 50


class RefusedError(Exception):
    """An action that makes no sense, or contradicts what was said; the message says which and what to do.

    Attributes:
        overridable: The same action with `"override": true` goes through.
    """

    def __init__(self, message: str, *, overridable: bool = False) -> None:
        super().__init__(message)
        self.overridable = overridable


def whole(value: Any, what: str) -> int:
    """A whole number; JSON's true is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise RefusedError(f"“{what}” must be a whole number.")
    return value


def item_of(arguments: Mapping[str, Any], key: str, draft: Draft) -> int:
    """The number of a photo."""
    item = whole(arguments.get(key), key)
    if not 0 <= item < len(draft.groups):
        raise RefusedError(f"There is no photo {item}: they are numbered 0 to {len(draft.groups) - 1}.")
    return item


def items_of(arguments: Mapping[str, Any], draft: Draft, key: str = "items", *, empty: bool = False) -> list[int]:
    """Numbers of photos, each once."""
    values = arguments.get(key)
    if not isinstance(values, list) or not (values or empty):
        raise RefusedError(f"“{key}” must be a list of photos, with at least one.")
    return list(dict.fromkeys(item_of({key: value}, key, draft) for value in values))


def group_of(value: Any, draft: Draft) -> int:
    """The number of a group that has photos."""
    group = whole(value, "group")
    if group < 0 or group not in draft.groups:
        raise RefusedError(f"There is no group {group}; it may have been merged or emptied: load the page again.")
    return group


def groups_of(arguments: Mapping[str, Any], draft: Draft) -> list[int]:
    """Numbers of two groups or more."""
    values = arguments.get("groups")
    if not isinstance(values, list):
        raise RefusedError("“groups” must be a list of groups.")
    groups = list(dict.fromkeys(group_of(value, draft) for value in values))
    if len(groups) < 2:
        raise RefusedError("A merge needs two groups or more.")
    return groups


def name_of(value: Any) -> str:
    """A name as it is shown: one line without control characters; empty to take a name away."""
    if not isinstance(value, str):
        raise RefusedError("“name” must be text.")
    if len(value) > LONGEST_NAME:
        raise RefusedError(f"A name has at most {LONGEST_NAME} characters.")
    if any(unicodedata.category(c) == "Cs" for c in value):
        raise RefusedError("That name is no valid text.")
    spaced = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in value)
    return unicodedata.normalize("NFC", " ".join(spaced.split()))


def truth(arguments: Mapping[str, Any], key: str) -> bool:
    """True or false."""
    value = arguments.get(key)
    if not isinstance(value, bool):
        raise RefusedError(f"“{key}” must be true or false.")
    return value
