"""What is offered beside groups that a person has looked at, where regrouping moves nothing any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from medi.core.arrays import Ints
from medi.review.constraints import bundles
from medi.review.draft import Draft
from medi.review.state import Offer
from medi.review.togetherness import near_groups, near_known

BELONGS = 0.5
"""How probable a place must be before it is offered."""
CLEARLY_BELONGS = 0.2
"""How much more probable another group must be than the one that a person left a photo in."""


def offers(draft: Draft, samples: Ints, names: Sequence[str] = ()) -> list[Offer]:
    """Photos that may belong to a settled group, and photos in one that look more like another.

    What a person put somewhere photo by photo is not doubted, only what was left in a group as a whole.

    Args:
        draft: Where items are, and what was said of them.
        samples: (s, n): in each sample, items with equal numbers are together; known classes have their labels.
        names: Of the known classes.
    """
    held, members = draft.held, draft.members
    owned = {group: kept for group, items in members.items() if (kept := held.intersection(items))}
    if not owned or not len(samples):
        return []
    numbers = list(owned)
    near, of = near_groups(samples, owned), bundles(draft.words)
    known = near_known(samples, len(names))
    stands = draft.anchors()
    apart = {frozenset((of[word.a], of[word.b])) for word in draft.words if not word.same}
    found: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    for item, here in enumerate(draft.groups):
        if item in draft.settled or (item in held and of[item] == of[stands[here]]):
            continue
        order = np.argsort(-near[item], kind="stable")
        likely = float(near[item, order[0]])
        there = numbers[order[0]]
        own = float(near[item, numbers.index(here)]) if item in held else 0.0
        forbidden = {frozenset((of[item], of[other])) for other in members[there]} & apart
        if there != here and not forbidden and likely >= max(BELONGS, own + CLEARLY_BELONGS):
            found[here if item in held else there, there, ""].append(item)
        elif item in held:
            likely, name = max(zip(known[item].tolist(), names, strict=True), default=(0.0, ""))
            if likely >= max(BELONGS, own + CLEARLY_BELONGS) and (item, name) not in draft.refused:
                found[here, -1, name].append(item)
    return [Offer(beside, items, there, name) for (beside, there, name), items in sorted(found.items())]
