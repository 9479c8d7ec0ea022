"""A new discovery of the same pool keeps what a person said: names, what belongs together or not, what was set aside.

Photos are known again by their path. What was said becomes one line of the new journal, which can be undone.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medi.discover.run import Carry
from medi.grouping.engine import GUESS
from medi.review.constraints import bundles, detached
from medi.review.discovery_folder import Start, read_clusters, read_folder
from medi.review.draft import Draft
from medi.review.history import History, numbered
from medi.review.regrouping import SETTLED, matched
from medi.review.state import ReviewState

CARRY = "carry"


def carry_over(out: Path, clusters: Path) -> bytes | None:
    """The journal for a new `clusters.csv`, from the review in a folder; None where nothing was said.

    Args:
        out: The folder with the old clusters.csv and its review.jsonl.
        clusters: The new clusters.csv.
    """
    folder = read_folder(out)
    line = carried(History(folder).state, folder.start, read_clusters(clusters))
    return None if line is None else (json.dumps(line) + "\n").encode()


def set_aside(out: Path) -> frozenset[str]:
    """The paths of photos that were set aside in the review in a folder."""
    folder = read_folder(out)
    return frozenset(folder.start.paths[item] for item in History(folder).state.aside)


CARRIED = Carry(set_aside, carry_over)


def carried(old: ReviewState, before: Start, now: Start) -> dict[str, Any] | None:
    """What was said of the old items, as the first line of the journal of the new ones; None where that is nothing."""
    number = {path: item for item, path in enumerate(now.paths)}
    to = {item: number[path] for item, path in enumerate(before.paths) if path in number}
    held = {item for item in old.held if item in to}
    said = old.names or old.words or old.settled or old.refused or old.accepted
    if not said or not to:
        return None
    draft = Draft(ReviewState.of(now))
    names = _place_groups(draft, old, to, held)
    gone = {item for word in old.words for item in (word.a, word.b) if item not in to}
    left = (word for word in detached(gone, old.words) if not word.touches(gone))
    draft.words = [word._replace(a=to[word.a], b=to[word.b]) for word in left]
    for item in old.settled & to.keys():
        draft.place([to[item]], -1, known=old.known[item])
    draft.claimed = {to[item] for item in old.claimed if item in to}
    draft.aside = {to[item] for item in old.aside & to.keys()}
    draft.marked = {to[item] for item in old.marked & to.keys()}
    draft.refused = {(to[item], name) for item, name in old.refused if item in to}
    for item, name in draft.refused:
        if draft.known[item] == name and item not in draft.marked:
            draft.known[item] = ""
            draft.confidence[item] = round(min(GUESS, 1 - draft.confidence[item]), 4)  # that it is not is certain
    for item in held:
        if old.confidence[item] == 1:
            draft.confidence[to[item]] = 1.0
    _unite(draft)
    for group in draft.members:
        draft.expel(group)
    draft.names = names
    draft.accepted = {to[item]: name for item, name in old.accepted.items() if item in to}
    kept = f"{len(names)} name{'s' * (len(names) != 1)} and {len(held)} settled photo{'s' * (len(held) != 1)}"
    draft.note = {"text": f"Kept from the review before this discovery: {kept}."}
    return numbered(1, now, {"action": CARRY, "effect": draft.effect()})


def _place_groups(draft: Draft, old: ReviewState, to: Mapping[int, int], held: set[int]) -> dict[int, str]:
    """Put the settled photos of each old group into the new group that shares most with it, and give it its name."""
    members = {group: [item for item in items if item in to] for group, items in old.members.items()}
    members = {g: items for g, items in members.items() if items and (g in old.names or held.intersection(items))}
    overlap = Counter[tuple[int, int]]()
    for group, items in members.items():
        for item in items:
            overlap[group, draft.groups[to[item]]] += SETTLED if item in held else 1
    target, names = matched(overlap, list(members), list(draft.members)), {}
    for group, items in members.items():
        settled = [to[item] for item in items if item in held]
        place = target[group] if group in target else draft.new_group()
        if not settled and group not in target:
            continue
        draft.place(settled, place)
        if group in old.names:
            names[place] = old.names[group]
    return names


def _unite(draft: Draft) -> None:
    """Put photos that were said to be the same into the group of the one that is most settled."""
    same: dict[int, list[int]] = defaultdict(list)
    for item, root in bundles(draft.words).items():
        same[root].append(item)
    for items in same.values():
        places = {draft.groups[item] for item in items}
        if len(items) > 1 and (len(places) > 1 or -1 in places) and not draft.settled.intersection(items):
            group = draft.groups[draft.anchor(items)]
            group = draft.new_group() if group < 0 else group
            draft.place([item for item in items if draft.groups[item] != group], group)
