"""A new discovery of the same pool keeps what a person said: names, what belongs together or not, what was set aside.

Photos are known again by their path. What was said becomes one line of the new journal, which can be undone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from medi.review.constraints import Word, detached
from medi.review.discovery_folder import Start, read_clusters, read_folder
from medi.review.draft import Draft
from medi.review.session import OWN, read_history
from medi.review.state import State, effect

CARRY = "carry"
_SETTLED = 1000
"""Weight of a photo that a person settled when an old group is recognised among the new ones."""


def carry_over(out: Path, clusters: Path) -> bytes | None:
    """The journal for a new `clusters.csv`, from the review in a folder; None where nothing was said.

    Args:
        out: The folder with the old clusters.csv and its review.jsonl.
        clusters: The new clusters.csv.
    """
    folder = read_folder(out)
    old, start = read_history(folder).state, read_clusters(clusters)
    line = carried(old, folder.start, start)
    return None if line is None else (json.dumps(line) + "\n").encode()


def carried(old: State, before: Start, now: Start) -> dict[str, Any] | None:
    """What was said of the old items, as the first line of the journal of the new ones; None where that is nothing."""
    number = {path: item for item, path in enumerate(now.paths)}
    to = {item: number[path] for item, path in enumerate(before.paths) if path in number}
    held = {item for item in old.held if item in to}
    said = old.names or old.words or old.aside or old.marked or old.refused or old.accepted
    if not said or not to:
        return None
    begun = State.of(now)
    draft = Draft(begun)
    names = _place_groups(draft, old, to, held)
    lost = {item for word in old.words for item in (word.a, word.b) if item not in to}
    for word in detached(lost, old.words):
        if word.a in to and word.b in to:
            draft.words.append(Word(word.same, to[word.a], to[word.b], word.why))
    for item in old.aside & to.keys():
        draft.place([to[item]], -1, sure=True)
        draft.aside.add(to[item])
    for item in old.marked & to.keys():
        draft.place([to[item]], -1, sure=True)
        draft.known[to[item]] = old.known[item]
        draft.marked.add(to[item])
    for item, name in old.refused:
        if item in to:
            draft.refused.add((to[item], name))
            if draft.known[to[item]] == name and to[item] not in draft.marked:
                draft.known[to[item]] = ""
    for item in held:
        if old.confidence[item] == 1:
            draft.confidence[to[item]] = 1.0
    for group in sorted(set(draft.groups) - {-1}):
        draft.expel(group)
    draft.names = names
    draft.accepted = {to[item]: name for item, name in old.accepted.items() if item in to}
    kept = f"{len(names)} name{'s' * (len(names) != 1)} and {len(held)} settled photo{'s' * (len(held) != 1)}"
    after = draft.finish(None, {"text": f"Kept from the review before this discovery: {kept}."})
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"seq": 1, "at": at, "action": CARRY, "effect": effect(begun, after), OWN: now.digest}


def _place_groups(draft: Draft, old: State, to: Mapping[int, int], held: set[int]) -> dict[int, str]:
    """Put the settled photos of each old group into the new group that shares most with it, and give it its name."""
    groups = [g for g, items in old.members.items() if any(i in to and (g in old.names or i in held) for i in items)]
    there = sorted(set(draft.groups) - {-1})
    table = np.zeros((len(groups), len(there)))
    for row, group in enumerate(groups):
        for item in old.members[group]:
            if item in to and draft.groups[to[item]] >= 0:
                table[row, there.index(draft.groups[to[item]])] += _SETTLED if item in held else 1
    rows, columns = linear_sum_assignment(-table)
    target = {groups[r]: there[c] for r, c in zip(rows, columns, strict=True) if table[r, c]}
    names = {}
    for group in groups:
        place = target[group] if group in target else draft.new_group()
        settled = [to[item] for item in old.members[group] if item in held]
        if not settled and group not in target:
            continue
        draft.place(settled, place)
        if group in old.names:
            names[place] = old.names[group]
    return names
