"""What a person can do: each action changes a draft exactly as said, and says so in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from medi.review.answers import answer
from medi.review.constraints import WHOLESALE, bundles
from medi.review.draft import Draft, take_out
from medi.review.requests import MOST_PARTS, RefusedError, group_of, groups_of, items_of, name_of, whole
from medi.review.setting import Setting, call_group, photos

Action = Callable[[Draft, Mapping[str, Any], Setting], str]


def name(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Name a group: its sure photos stay together, and apart from groups with other names."""
    group, text = group_of(arguments.get("group"), draft), name_of(arguments.get("name"))
    if not text:
        draft.names.pop(group, None)
        return f"Group {group} has no name any more."
    members = draft.members(group)
    draft.names[group] = text
    draft.hold_sure(members, "name")
    draft.touched.update(members)
    stands = draft.anchors()
    others = [
        other for other, called in draft.names.items() if other in stands and called.casefold() != text.casefold()
    ]
    draft.apart([(stands[group], stands[other]) for other in others], "name")
    return f"Group {group} is called “{text}”."


def merge(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Make one group of several; it keeps the first name among them."""
    groups = groups_of(arguments, draft)
    target = next((group for group in groups if group in draft.names), groups[0])
    parts = [draft.members(group) for group in groups]
    everything = [item for part in parts for item in part]
    draft.allow(set(everything))
    called = draft.names.get(target)
    for part in parts:
        draft.hold_sure(part, "merge")
    anchors = [draft.anchor(part) for part in parts]
    for group in groups:
        draft.names.pop(group, None)
    draft.place(everything, target)
    draft.all_together(anchors, "merge")
    if called:
        draft.names[target] = called
    return f"Merged {len(groups)} groups into {call_group(draft, target)}."


def split(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Divide a group: into a number of parts by what is inside it, or into given lists of photos."""
    group = group_of(arguments.get("group"), draft)
    parts = split_parts(draft, group, arguments.get("parts"), setting)
    draft.divide({item: number for number, part in enumerate(parts) for item in part})
    held = draft.held()
    keeps = max(range(len(parts)), key=lambda n: (sum(item in held for item in parts[n]), len(parts[n]), -n))
    new = []
    for number, part in enumerate(parts):
        if number == keeps:
            draft.touched.update(part)
        else:
            new.append(draft.new_group())
            draft.place(part, new[-1])
    anchors = [draft.anchor(part) for part in parts]
    draft.apart(combinations(anchors, 2), "split")
    verb = "is" if len(new) == 1 else "are"
    return f"Split {call_group(draft, group)} into {len(parts)}: new {verb} {_listed(map(str, new))}."


def split_parts(draft: Draft, group: int, parts: Any, setting: Setting) -> list[list[int]]:
    """The items of each part of a group, the largest first: what a split would do."""
    members = draft.members(group)
    if isinstance(parts, list):
        lists = [items_of({"items": part}, draft) for part in parts]
        if len(lists) < 2 or sorted(i for part in lists for i in part) != members:
            raise RefusedError(f"The parts must hold each of the {len(members)} photos of group {group} once.")
        return lists
    count = whole(parts, "parts")
    most = min(MOST_PARTS, len(members))
    if most < 2:
        raise RefusedError(f"Group {group} has one photo: there is nothing to split.")
    if not 2 <= count <= most:
        raise RefusedError(f"Group {group} has {len(members)} photos: it can be split into 2 to {most} parts.")
    if setting.pool is None:
        raise RefusedError("This discovery has no saved pool to split by: discover again, or move photos by hand.")
    labels = dict(zip(members, map(int, setting.pool.split(members, count)), strict=True))
    of = bundles(word for word in draft.words if word.why not in WHOLESALE)
    votes: dict[int, Counter[int]] = {}
    for item in members:
        votes.setdefault(of.get(item, -1 - item), Counter())[labels[item]] += 1
    kept = {item: votes[of.get(item, -1 - item)].most_common(1)[0][0] for item in members}
    if len(set(kept.values())) == count:  # where all of them can be had, photos said to be together stay so
        labels = kept
    found = [[item for item in members if labels[item] == label] for label in sorted(set(labels.values()))]
    return sorted(found, key=lambda part: (-len(part), part[0]))


def move(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Put photos into a group, or with null into none."""
    items = items_of(arguments, draft)
    if "group" not in arguments:
        raise RefusedError("“group” must be a group, or null for none.")
    if arguments["group"] is None:
        return aside(draft, arguments, setting)
    group = group_of(arguments["group"], draft)
    put(draft, items, group, "move")
    return f"Put {photos(items, setting)} into {call_group(draft, group)}."


def put(draft: Draft, items: Sequence[int], group: int, why: str) -> None:
    """Put items into a group and settle them there."""
    coming = [item for item in items if draft.groups[item] != group]
    members = draft.members(group)
    anchor = draft.anchor(members)
    draft.touched.update(members)
    take_out(draft, coming, why)
    draft.place(coming, group)
    draft.allow({*members, *coming})
    draft.place(items, group, sure=True)
    draft.all_together([anchor, *(item for item in items if item != anchor)], why)


def reject(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Say that photos do not belong where they are; they go wherever else they fit, or stay alone."""
    items = items_of(arguments, draft)
    for item in items:
        if draft.groups[item] < 0 and not draft.known[item]:
            raise RefusedError(f"{setting.call(item)} is in no group: there is nothing to reject.")
    refuse(draft, items, "reject")
    return f"Rejected {photos(items, setting)}: “not this”."


def refuse(draft: Draft, items: Sequence[int], why: str) -> None:
    """Take items out of where they are; a group that loses all of them is dissolved."""
    out = set(items)
    dissolved = {draft.groups[item] for item in items if draft.groups[item] >= 0}
    dissolved -= {draft.groups[item] for item in range(len(draft.groups)) if item not in out}
    gone = [item for item in items if draft.groups[item] in dissolved]
    take_out(draft, items, why)
    draft.refused.update((item, draft.known[item]) for item in items if draft.known[item])
    draft.place(items, -1)
    draft.touched.difference_update(items)
    draft.aside.update(gone)


def aside(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Set photos aside: they are in no group and stay so."""
    items = items_of(arguments, draft)
    draft.free(set(items))
    draft.place(items, -1, sure=True)
    draft.aside.update(items)
    return f"Set {photos(items, setting)} aside."


def known(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Say that photos are of a known class."""
    items, value = items_of(arguments, draft), arguments.get("name")
    if not isinstance(value, str) or value not in setting.class_names:
        raise RefusedError("“name” must be one of the known classes.")
    draft.free(set(items))
    draft.place(items, -1, sure=True)
    for item in items:
        draft.known[item] = value
    draft.marked.update(items)
    draft.refused.difference_update((item, value) for item in items)
    return f"Marked {photos(items, setting)} as the known class “{value}”."


def group(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Make a new group of photos."""
    items = items_of(arguments, draft)
    text = name_of(arguments.get("name", ""))
    number = draft.new_group()
    take_out(draft, items, "group")
    draft.allow(set(items))
    draft.place(items, number, sure=True)
    draft.all_together(items, "group")
    if text:
        draft.names[number] = text
    return f"Made {call_group(draft, number)} of {photos(items, setting)}."


def check(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Confirm photos of a group, and reject others, in one go."""
    into = group_of(arguments.get("group"), draft)
    yes, no = items_of(arguments, draft, "yes", empty=True), items_of(arguments, draft, "no", empty=True)
    if not yes and not no:
        raise RefusedError("Say of at least one photo whether it belongs to the group.")
    if set(yes) & set(no):
        raise RefusedError("A photo cannot belong to the group and not belong to it.")
    inside = [item for item in no if draft.groups[item] == into]
    if yes:
        put(draft, yes, into, "check")
    anchor = draft.anchor(draft.members(into))
    refuse(draft, inside, "check")
    draft.apart([(item, anchor) for item in no if item not in inside and item != anchor], "check")
    parts = [f"confirmed {photos(yes, setting)}"] * bool(yes) + [f"rejected {photos(no, setting)}"] * bool(no)
    return f"In {call_group(draft, into)} you {' and '.join(parts)}."


def _listed(words: Any) -> str:
    *most, last = list(words)
    return f"{', '.join(most)} and {last}" if most else last


ACTIONS: dict[str, tuple[Action, tuple[str, ...]]] = {
    "name": (name, ("group", "name")),
    "merge": (merge, ("groups",)),
    "split": (split, ("group", "parts")),
    "move": (move, ("items", "group")),
    "reject": (reject, ("items",)),
    "answer": (answer, ("a", "b", "same", "override")),
    "aside": (aside, ("items",)),
    "known": (known, ("items", "name")),
    "group": (group, ("items", "name")),
    "check": (check, ("group", "yes", "no")),
}
"""Actions by name, and the arguments that they take."""
