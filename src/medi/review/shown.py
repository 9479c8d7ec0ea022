"""The state of a review as a page gets it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from medi.review.discovery_folder import Start
from medi.review.state import State


def shown(state: State, start: Start, seq: int, questions: Sequence[tuple[int, int, float]]) -> dict[str, Any]:
    """What `GET /api/state` answers; keys of items that say nothing are left out."""
    asked = [{"a": a, "b": b, "probability": p} for a, b, p in questions]
    groups = [
        {
            "id": group,
            "name": state.names.get(group),
            "items": members,
            "confidence": round(sum(state.confidence[item] for item in members) / len(members), 4),
        }
        for group, members in state.members.items()
    ]
    return {
        "seq": seq,
        "groups": groups,
        "items": [_item(state, start, item) for item in range(len(start))],
        "question": asked[0] if asked else None,
        "questions": asked,
        "note": dict(state.note) or None,
    }


def _item(state: State, start: Start, item: int) -> dict[str, Any]:
    one: dict[str, Any] = {
        "id": item,
        "path": start.paths[item],
        "kind": state.kind(item),
        "confidence": state.confidence[item],
    }
    if state.known[item]:
        one["known"] = state.known[item]
    if start.nearest[item]:
        one["nearest"] = start.nearest[item]
    if item in state.held:
        one["held"] = True
    if item in state.aside:
        one["aside"] = True
    if item in state.accepted:
        one["accepted"] = state.accepted[item]
    return one
