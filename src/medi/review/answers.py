"""Answers to "same or different?": what they change at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medi.review.constraints import bundle, contradiction, in_words, overruled
from medi.review.draft import Draft, take_out
from medi.review.requests import RefusedError, item_of, truth
from medi.review.setting import Setting


def answer(draft: Draft, arguments: Mapping[str, Any], setting: Setting) -> str:
    """Say whether two photos show the same thing."""
    a, b, same = item_of(arguments, "a", draft), item_of(arguments, "b", draft), truth(arguments, "same")
    if a == b:
        raise RefusedError("A question needs two different photos.")
    said = f"{setting.call(a)} and {setting.call(b)} are {'the same' if same else 'different'}"
    chain = contradiction(a, b, same, draft.words)
    if chain and arguments.get("override") is not True:
        because = " and ".join(in_words(word, setting.call) for word in chain)
        raise RefusedError(f"That {said} contradicts what you said before: {because}.", overridable=True)
    if chain:
        draft.words, lost = overruled(a, b, same, draft.words)
        draft.overruled += lost
    (_same if same else _different)(draft, a, b)
    return f"You said that {said}."


def _same(draft: Draft, a: int, b: int) -> None:
    here, there = draft.groups[a], draft.groups[b]
    if here == there >= 0:
        draft.together(a, b, "answer")
    elif a in draft.marked or b in draft.marked:
        one, other = (a, b) if a in draft.marked else (b, a)
        everyone = [one, other] if other in draft.marked else sorted({one, *bundle(other, draft.words)})
        called = draft.known[one]
        draft.free(set(everyone))
        draft.place(everyone, -1, sure=True)
        for item in everyone:
            draft.known[item] = called
        draft.marked.update(everyone)
    elif here < 0 and there < 0:
        take_out(draft, [a, b], "answer")
        draft.place([a, b], draft.new_group())
        draft.together(a, b, "answer")
    elif here >= 0 and there >= 0 and _stand_for_groups(draft, a, b):
        everyone = draft.members(here) + draft.members(there)
        called = draft.names.pop(there, "")
        draft.place(everyone, here)
        draft.touched = {a, b}
        if called:
            draft.names.setdefault(here, called)
        draft.together(a, b, "answer")
        draft.expel(here)
    else:
        stays, goes = (a, b) if there < 0 or (here >= 0 and _weight(draft, a) >= _weight(draft, b)) else (b, a)
        moved = sorted(bundle(goes, draft.words))
        draft.place(moved, draft.groups[stays])
        draft.together(stays, goes, "answer")
        draft.expel(draft.groups[stays])


def _stand_for_groups(draft: Draft, a: int, b: int) -> bool:
    """Whether both are what their groups are known by: then the groups are the same."""
    return all(draft.anchor(draft.members(draft.groups[item])) == item for item in (a, b))


def _weight(draft: Draft, item: int) -> tuple[bool, int, float]:
    """How settled an item is where it is."""
    return draft.groups[item] in draft.names, len(bundle(item, draft.words)), draft.confidence[item]


def _different(draft: Draft, a: int, b: int) -> None:
    if draft.groups[a] == draft.groups[b] >= 0:
        goes = min((a, b), key=lambda item: _weight(draft, item)[1:])
        leaving = sorted(bundle(goes, draft.words))
        if len(leaving) > 1:
            draft.place(leaving, draft.new_group())
        else:
            draft.place(leaving, -1)
            draft.touched.difference_update(leaving)
    draft.apart([(a, b)], "answer")
