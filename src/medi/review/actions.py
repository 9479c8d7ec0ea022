"""What a person can do: each action changes a draft exactly as said, and says so in a sentence.

Whatever a page or a script sends, nonsense is refused in one sentence: first what no line of the journal may hold.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from medi.review.constraints import contradiction, in_words, overruled
from medi.review.draft import Draft
from medi.review.history import rule
from medi.review.regrouping import divided
from medi.schemas import fault

if TYPE_CHECKING:
    from medi.grouping.saved_pool import SavedPool

LONGEST_NAME = 200
"""Characters of a name."""


class RefusedError(Exception):
    """An action that makes no sense, or contradicts what was said; the message says which and what to do.

    Attributes:
        overridable: The same action with `"override": true` goes through.
    """

    def __init__(self, message: str, *, overridable: bool = False) -> None:
        super().__init__(message)
        self.overridable = overridable


@dataclass(frozen=True)
class Setting:
    """What actions need besides the draft: paths of photos, names of known classes, and the pool where there is one."""

    paths: Sequence[str]
    class_names: Sequence[str]
    pool: SavedPool | None

    def call(self, item: int) -> str:
        """A photo's name in a sentence."""
        return PurePosixPath(self.paths[item]).name

    def call_all(self, items: Sequence[int]) -> str:
        """One photo by its name, several by their number."""
        return self.call(items[0]) if len(items) == 1 else f"{len(items)} photos"


Action = Callable[[Draft, Mapping[str, Any], Setting], str]


def name(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Name a group: the photos that the person sees stay in it, all of them where it is not said which.

    Its sure photos are known to be together, and apart from groups with other names.
    """
    group, text = group_of(arguments["group"], draft), name_of(arguments["name"])
    if not text:
        draft.names.pop(group, None)
        return f"Group {group} has no name any more."
    members = draft.members[group]
    shown = arguments.get("items", members)
    if not set(shown) <= set(members):
        raise RefusedError(f"Not all of these photos are in group {group}: load the page again.")
    draft.names[group] = text
    if shown:
        draft.hold_sure(shown, "name")
    draft.claim(shown)
    draft.touched.update(members)
    stands = draft.anchors()
    others = [other for other, called in draft.names.items() if called.casefold() != text.casefold()]
    draft.apart([(stands[group], stands[other]) for other in others if other in stands], "name")
    return f"Group {group} is called “{text}”."


def merge(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Make one group of several; it keeps the first name among them, and what the person sees stays in it."""
    groups = list(dict.fromkeys(group_of(value, draft) for value in arguments["groups"]))
    if len(groups) < 2:
        raise RefusedError("A merge needs two groups or more.")
    target = next((group for group in groups if group in draft.names), groups[0])
    members = draft.members
    parts = [members[group] for group in groups]
    everything = [item for part in parts for item in part]
    draft.allow(set(everything))
    called = draft.names.get(target)
    for part in parts:
        draft.hold_sure(part, "merge")
    anchors = [draft.anchor(part) for part in parts]
    for group in groups:
        draft.names.pop(group, None)
    draft.place(everything, target)
    draft.together(anchors, "merge")
    draft.claim(arguments.get("items", everything))
    if called:
        draft.names[target] = called
    return f"Merged {len(groups)} groups into {draft.call(target)}."


def split(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Divide a group: into a number of parts by what is inside it, or into given lists of photos."""
    group = group_of(arguments["group"], draft)
    parts = split_parts(draft, group, arguments["parts"], setting)
    draft.divide({item: number for number, part in enumerate(parts) for item in part})
    held = draft.held
    keeps = max(range(len(parts)), key=lambda n: (sum(item in held for item in parts[n]), len(parts[n]), -n))
    draft.touched.update(parts[keeps])
    new = []
    for number, part in enumerate(parts):
        if number != keeps:
            new.append(draft.new_group())
            draft.place(part, new[-1])
    draft.apart(combinations([draft.anchor(part) for part in parts], 2), "split")
    return f"Split {draft.call(group)} into {len(parts)}; new: {', '.join(map(str, new))}."


def split_parts(draft: Draft, group: int, parts: Any, setting: Setting) -> list[list[int]]:
    """The items of each part of a group, the largest first: what a split would do."""
    members = draft.members[group]
    if isinstance(parts, list):
        if sorted(item for part in parts for item in part) != members:
            raise RefusedError(f"The parts must hold each of the {len(members)} photos of group {group} once.")
        return parts
    count = whole(parts, "parts")
    if not 2 <= count <= len(members):
        raise RefusedError(f"Group {group} has a size of {len(members)}: it cannot be split into {count}.")
    if setting.pool is None:
        raise RefusedError("This discovery has no saved pool to split by: discover again, or move photos by hand.")
    return divided(members, count, setting.pool, draft.words)


def move(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Put photos into a group, or with null into none, where they stay."""
    items = arguments["items"]
    if arguments["group"] is None:
        draft.set_aside(items)
        return f"Set {setting.call_all(items)} aside."
    group = group_of(arguments["group"], draft)
    draft.put(items, group, "move")
    return f"Put {setting.call_all(items)} into {draft.call(group)}."


def reject(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Say that photos do not belong where they are; they go wherever else they fit, or stay alone."""
    items = _in_places(arguments["items"], "reject", draft, setting)
    draft.refuse(items, "reject")
    return f"Rejected {setting.call_all(items)}: “not this”."


def answer(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Say whether two photos show the same thing; what is different may be so from others, and of no known class."""
    a, b, same = arguments["a"], arguments["b"], arguments["same"]
    if a == b:
        raise RefusedError("A question needs two different photos.")
    others, classes = (() if same else arguments.get(key, ()) for key in ("others", "known"))
    compared = "those that you saw" if others or classes else setting.call(b)
    said = f"{setting.call(a)} and {compared} are {'the same' if same else 'different'}"
    for other in (b, *others):
        chain = contradiction(a, other, same, draft.words)
        if chain and not arguments.get("override"):
            because = " and ".join(in_words(word, setting.call) for word in chain)
            raise RefusedError(f"That {said} contradicts what you said before: {because}.", overridable=True)
        draft.words, lost = overruled(a, other, same, draft.words)
        draft.overruled += lost
        (draft.join if same else draft.part)(a, other)
    draft.refused.update((a, class_of(value, setting)) for value in classes)
    return f"You said that {said}."


def known(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Say that photos are of a known class."""
    items, value = arguments["items"], class_of(arguments["name"], setting)
    draft.mark(items, value)
    draft.refused.difference_update((item, value) for item in items)
    return f"Marked {setting.call_all(items)} as the known class “{value}”."


def group(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Make a new group of photos."""
    items, text = arguments["items"], name_of(arguments.get("name", ""))
    number = draft.new_group()
    draft.take_out(items, "group")
    draft.allow(set(items))
    draft.place(items, number)
    draft.together(items, "group")
    draft.claim(items)
    if text:
        draft.names[number] = text
    return f"Made {draft.call(number)} of {setting.call_all(items)}."


def check(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Confirm photos of a group, and reject others, in one go."""
    into, yes, no = group_of(arguments["group"], draft), arguments["yes"], arguments["no"]
    if not yes and not no:
        raise RefusedError("Say of at least one photo whether it belongs to the group.")
    if set(yes) & set(no):
        raise RefusedError("A photo cannot belong to the group and not belong to it.")
    inside = [item for item in no if draft.groups[item] == into]
    if yes:
        draft.put(yes, into, "check")
    anchor = draft.anchor(draft.members[into])
    draft.refuse(inside, "check")
    draft.apart([(item, anchor) for item in no if item not in inside and item != anchor], "check")
    parts = [f"confirmed {setting.call_all(yes)}"] * bool(yes) + [f"rejected {setting.call_all(no)}"] * bool(no)
    return f"In {draft.call(into)} you {' and '.join(parts)}."


def confirm(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Say that photos are right where they are: in their groups, or of the known classes that they look like."""
    items = _in_places(arguments["items"], "confirm", draft, setting)
    places: dict[tuple[int, str], list[int]] = defaultdict(list)
    for item in items:
        places[draft.groups[item], draft.known[item]].append(item)
    for (group, known), some in places.items():
        if known:
            draft.mark(some, known)
        else:
            draft.put(some, group, "check")
    return f"All right: confirmed {setting.call_all(items)}."


def _in_places(items: list[int], verb: str, draft: Draft, setting: Setting) -> list[int]:
    """The items, unless one of them is on its own."""
    if alone := [item for item in items if draft.kind(item) == "alone"]:
        raise RefusedError(f"{setting.call(alone[0])} is in no group: there is nothing to {verb}.")
    return items


ACTIONS: dict[str, Action] = {
    "name": name,
    "merge": merge,
    "split": split,
    "move": move,
    "reject": reject,
    "answer": answer,
    "known": known,
    "group": group,
    "check": check,
    "confirm": confirm,
}
"""Actions by name."""


def arguments_of(action: str, request: Mapping[str, Any], photos: int) -> dict[str, Any]:
    """What a request says, as lines of the journal hold it; what else it says is left out.

    Raises:
        RefusedError: No line about so many photos may hold it.
    """
    lines = rule(photos)
    form = next(form for form in lines["oneOf"] if form["properties"]["action"] == {"const": action})
    said = {key: request[key] for key in form["properties"] if key in request}
    if (place := fault(form, said | {"action": action, "effect": {}}, lines)) is not None:
        raise RefusedError(f"“{place}” is not as `medi schema review` has it.")
    return {key: value for key, value in said.items() if key != "action"}


def whole(value: Any, what: str) -> int:
    """A whole number; JSON's true is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise RefusedError(f"“{what}” must be a whole number.")
    return value


def group_of(value: Any, draft: Draft) -> int:
    """The number of a group that has photos."""
    group = whole(value, "group")
    if group < 0 or group not in draft.groups:
        raise RefusedError(f"There is no group {group}; it may have been merged or emptied: load the page again.")
    return group


def class_of(value: str, setting: Setting) -> str:
    """The name of a known class."""
    if value not in setting.class_names:
        raise RefusedError("There is no such known class: load the page again.")
    return value


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
