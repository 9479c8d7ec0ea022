"""The state of a review: a pure function of `clusters.csv` and the lines of `review.jsonl`.

A line holds an action, its arguments, and under "effect" everything that it changed, so that replaying needs neither
the pool nor luck, and undoing is replaying without it. A field of the state is declared here, with how lines hold it;
`shown` says what of it a page gets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import takewhile
from typing import Any, NamedTuple

from medi.grouping.engine import Kind
from medi.review.constraints import Word
from medi.review.discovery_folder import Start


class Question(NamedTuple):
    """A question about photos that nobody has settled.

    Attributes:
        a: The photo in question; of a merge or a half, what stands for it.
        b: What it is compared with.
        probability: That both belong together; which: of the likeliest place.
        kind: "which" group or known class is a photo of, "merge" two groups, is a "half" another kind.
        worth: Photos that the answer is expected to correct.
        items: Which: what stands for each group that it may be of, the likeliest first; half: its photos.
        known: Which: known classes that it may be of, each after its place among those groups.
        chances: Which: how probable each of these groups and classes is.
    """

    a: int
    b: int
    probability: float
    kind: str = "which"
    worth: float = 0.0
    items: Sequence[int] = ()
    known: Sequence[Sequence[Any]] = ()
    chances: Sequence[float] = ()


class Offer(NamedTuple):
    """Photos that may belong somewhere else; a person takes the offer, or leaves it.

    Attributes:
        beside: The group that it is shown beside.
        items: The photos.
        group: The group that they may belong to; -1 where it is a known class.
        known: That class; empty where it is a group.
    """

    beside: int
    items: list[int]
    group: int
    known: str


def _write_items(before: Sequence[Any], after: Sequence[Any]) -> list[list[Any]]:
    return [[item, new] for item, (old, new) in enumerate(zip(before, after, strict=True)) if new != old]


def _read_items(before: Sequence[Any], written: Any) -> list[Any]:
    after = list(before)
    for item, value in written:
        after[item] = value
    return after


def _write_words(before: Sequence[Word], after: Sequence[Word]) -> list[Any]:
    """How many of the earlier words still stand, and those that follow."""
    kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    return [kept, [[int(word.same), *word[1:]] for word in after[kept:]]]


def _read_words(before: Sequence[Word], written: Any) -> list[Word]:
    kept, more = written
    return [*before[:kept], *(Word(bool(same), a, b, why) for same, a, b, why in more)]


def _form(write: Callable[[Any, Any], Any], read: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """How lines hold a field: what makes JSON of it, before and after, and what makes it of that before and JSON."""
    return {"form": (write, read)}


_BY_ITEM = _form(_write_items, _read_items)
_BY_NUMBER = _form(
    lambda _, after: {str(number): name for number, name in sorted(after.items())},
    lambda _, written: {int(number): name for number, name in written.items()},
)
_WORDS = _form(_write_words, _read_words)
_ITEMS = _form(lambda _, after: sorted(after), lambda _, written: set(written))
_PAIRS = _form(lambda _, after: [list(pair) for pair in sorted(after)], lambda _, written: set(map(tuple, written)))
_QUESTIONS = _form(lambda _, after: list(map(list, after)), lambda _, written: [Question(*row) for row in written])
_OFFERS = _form(lambda _, after: list(map(list, after)), lambda _, written: [Offer(*row) for row in written])
_AS_IT_IS = _form(lambda _, after: after, lambda _, written: written)


@dataclass
class ReviewState:
    """Where every photo is, and what a person said.

    Parts of it are shared between states: who changes one takes a copy, which is a `Draft`.

    Attributes:
        groups: Group of each item; -1 where it is in none.
        known: The known class of each item; empty where it is none.
        confidence: 0 to 1.
        names: Of groups that have one.
        words: What was said of pairs of items.
        claimed: Items that a person saw in their group and left there: they stay.
        aside: Items that were set aside: they stay alone.
        marked: Items that a person marked as a known class.
        refused: Items, each with the known class that a person said it is not.
        accepted: The class that an item was accepted into, by item.
        next_group: The number of the next new group.
        questions: Pairs worth asking about, the best first; None where they have not been looked for.
        offers: Beside groups that a person has looked at.
        note: What the last action did, in words.
    """

    groups: list[int]
    known: list[str]
    confidence: list[float] = field(metadata=_BY_ITEM)
    names: dict[int, str] = field(default_factory=dict, metadata=_BY_NUMBER)
    words: list[Word] = field(default_factory=list, metadata=_WORDS)
    claimed: set[int] = field(default_factory=set, metadata=_ITEMS)
    aside: set[int] = field(default_factory=set, metadata=_ITEMS)
    marked: set[int] = field(default_factory=set, metadata=_ITEMS)
    refused: set[tuple[int, str]] = field(default_factory=set, metadata=_PAIRS)
    accepted: dict[int, str] = field(default_factory=dict, metadata=_BY_NUMBER)
    next_group: int = field(default=0, metadata=_AS_IT_IS)
    questions: list[Question] | None = field(default=None, metadata=_QUESTIONS)
    offers: list[Offer] = field(default_factory=list, metadata=_OFFERS)
    note: dict[str, Any] = field(default_factory=dict, metadata=_AS_IT_IS)

    @classmethod
    def of(cls, start: Start) -> ReviewState:
        """As `clusters.csv` has it."""
        next_group = max(start.groups, default=-1) + 1
        return ReviewState(list(start.groups), list(start.known), list(start.confidence), next_group=next_group)

    def kind(self, item: int) -> Kind:
        """In a group, of a known class, or neither."""
        return "novel" if self.groups[item] >= 0 else "known" if self.known[item] else "alone"

    @property
    def places(self) -> list[tuple[int, str]]:
        """Group and known class of each item."""
        return list(zip(self.groups, self.known, strict=True))

    @property
    def members(self) -> dict[int, list[int]]:
        """Items of each group, by number."""
        found: dict[int, list[int]] = defaultdict(list)
        for item, group in enumerate(self.groups):
            if group >= 0:
                found[group].append(item)
        return dict(sorted(found.items()))

    @property
    def settled(self) -> set[int]:
        """Items that a person put in no group."""
        return self.aside | self.marked

    @property
    def held(self) -> set[int]:
        """Items whose place a person settled: grouping again leaves them alone, and nothing is asked about them.

        Journals of 0.2.0 have no claims, only what was said to belong together.
        """
        said = (word for word in self.words if word.same and word.why != "answer")
        return self.settled | self.claimed | {item for word in said for item in (word.a, word.b)}


def effect(before: ReviewState, after: ReviewState) -> dict[str, Any]:
    """Everything that differs, as JSON can hold it; `apply` turns it back."""
    before, changed = _begun(before), dict[str, Any]()
    if places := _write_items(before.places, after.places):
        changed["places"] = [[item, group, known] for item, (group, known) in places]
    for name, write, _ in _forms():
        old, new = getattr(before, name), getattr(after, name)
        if new != old:
            changed[name] = write(old, new)
    return changed


def apply(state: ReviewState, changed: Mapping[str, Any]) -> ReviewState:
    """The state after an effect."""
    after = _begun(state)
    if "places" in changed:
        places = _read_items(state.places, ((item, (group, known)) for item, group, known in changed["places"]))
        after.groups, after.known = [group for group, _ in places], [known for _, known in places]
    for name, _, read in _forms():
        if name in changed:
            setattr(after, name, read(getattr(state, name), changed[name]))
    return after


def _begun(state: ReviewState) -> ReviewState:
    """A state as the next action finds it: what the last one asked and said is not carried on."""
    return replace(state, questions=None, offers=[], note={})


def _forms() -> list[tuple[str, Any, Any]]:
    return [(one.name, *one.metadata["form"]) for one in fields(ReviewState) if one.metadata]


def shown(state: ReviewState, start: Start, seq: int, questions: Sequence[Question]) -> dict[str, Any]:
    """What `GET /api/state` answers; keys of items that say nothing are left out."""
    asked = [one._asdict() for one in questions]
    offers: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for beside, some, to, known in state.offers:
        offers[beside].append({"items": some} | ({"known": known} if known else {"group": to}))
    held, items = state.held, []
    groups = [
        {
            "id": group,
            "name": state.names.get(group),
            "items": members,
            "confidence": round(sum(state.confidence[item] for item in members) / len(members), 4),
        }
        | ({"offers": offers[group]} if group in offers else {})
        | ({"finished": True} if group not in offers and held.issuperset(members) else {})
        for group, members in state.members.items()
    ]
    for item, path in enumerate(start.paths):
        always = {"id": item, "path": path, "kind": state.kind(item), "confidence": state.confidence[item]}
        sometimes = {
            "known": state.known[item],
            "nearest": start.nearest[item],
            "held": item in held,
            "aside": item in state.aside,
            "accepted": state.accepted.get(item),
        }
        items.append(always | {key: value for key, value in sometimes.items() if value})
    return {
        "seq": seq,
        "groups": groups,
        "items": items,
        "question": asked[0] if asked else None,
        "questions": asked,
        "note": dict(state.note) or None,
    }
