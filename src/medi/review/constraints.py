"""What a person said, as pairs: two photos belong together, or apart; and where two words contradict each other."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

WHOLESALE = frozenset({"merge", "name", "split", "carry"})
"""Actions upon whole groups: what they say of single photos gives way when a group is split."""


class Word(NamedTuple):
    """One thing that a person said about two photos.

    Attributes:
        same: They belong together; otherwise apart.
        a: The one photo.
        b: The other.
        why: The action that said so.
    """

    same: bool
    a: int
    b: int
    why: str

    def touches(self, items: Collection[int]) -> bool:
        """Whether one of its photos is among some."""
        return self.a in items or self.b in items

    def other(self, item: int) -> int:
        """The photo at its other end."""
        return self.b if item == self.a else self.a


class Bundles(dict[int, int]):
    """For every photo in a word of togetherness, the smallest photo that it must be together with; else itself."""

    def __missing__(self, item: int) -> int:
        return item


def bundles(words: Iterable[Word]) -> Bundles:
    """Which photos must be together."""
    root = Bundles()

    def find(item: int) -> int:
        while root[item] != item:
            root[item] = root[root[item]]
            item = root[item]
        return item

    for word in words:
        if word.same:
            a, b = find(word.a), find(word.b)
            root[a] = root[b] = min(a, b)
    return Bundles({item: find(item) for item in root})


def bundle(item: int, words: Iterable[Word]) -> set[int]:
    """All photos that must be together with one, itself among them."""
    of = bundles(words)
    return {item, *(other for other, first in of.items() if first == of[item])}


def kept_apart(words: Iterable[Word], of: Bundles) -> set[frozenset[int]]:
    """Pairs of bundles, each by its smallest photo, that were said to be apart."""
    return {frozenset((of[word.a], of[word.b])) for word in words if not word.same}


def detached(items: Collection[int], words: Sequence[Word]) -> list[Word]:
    """Words of togetherness without some photos; what they held together stays together."""
    kept = [word for word in words if not (word.same and word.touches(items))]
    ways = _ways(words)
    seen: set[int] = set()
    for start in items:
        rim, queue = dict[int, str](), deque([start])
        while queue:
            item = queue.popleft()
            if item in seen:
                continue
            seen.add(item)
            for word in ways[item]:
                other = word.other(item)
                if other in items:
                    queue.append(other)
                else:
                    rim.setdefault(other, word.why)
        first, *rest = sorted(rim) or [-1]
        kept += [Word(True, first, other, rim[other]) for other in rest]
    return kept


def cut(parts: Mapping[int, int], words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """Words when photos are divided into parts: those that stay, and those that are overruled.

    A bundle that falls into several parts stays together in each.
    """
    kept: list[Word] = []
    lost: list[Word] = []
    for word in words:
        divided = word.same and word.a in parts and word.b in parts and parts[word.a] != parts[word.b]
        (lost if divided else kept).append(word)
    if lost:
        of, still = bundles(words), bundles(kept)
        by_part: dict[tuple[int, int], list[int]] = defaultdict(list)
        for item, part in parts.items():
            by_part[of[item], part].append(item)
        why = lost[0].why
        for items in by_part.values():
            first, *rest = sorted(items)
            kept += [Word(True, first, other, why) for other in rest if still[other] != still[first]]
    return kept, lost


def between(left: Collection[int], right: Collection[int], words: Iterable[Word]) -> list[Word]:
    """Words that keep a photo of one side apart from one of the other."""
    ends = ((word, word.a, word.b) for word in words if not word.same)
    return [word for word, a, b in ends if (a in left and b in right) or (b in left and a in right)]


def contradiction(a: int, b: int, same: bool, words: Sequence[Word]) -> list[Word]:
    """The earlier words that a new one contradicts, as a chain from `a` to `b`; empty where it contradicts none."""
    if not same:
        return _chain(a, b, words)
    left, right = bundle(a, words), bundle(b, words)
    if b in left:
        return []
    apart = between(left, right, words)
    if not apart:
        return []
    word = apart[-1]
    near, far = (word.a, word.b) if word.a in left else (word.b, word.a)
    return [*_chain(a, near, words), word, *_chain(far, b, words)]


def _chain(start: int, goal: int, words: Sequence[Word]) -> list[Word]:
    """The fewest words of togetherness that lead from one photo to another."""
    ways = _ways(words)
    came: dict[int, Word | None] = {start: None}
    queue = deque([start])
    while queue:
        item = queue.popleft()
        if item == goal:
            chain = []
            while (step := came[item]) is not None:
                chain.append(step)
                item = step.other(item)
            return chain[::-1]
        for word in ways[item]:
            if word.other(item) not in came:
                came[word.other(item)] = word
                queue.append(word.other(item))
    return []


def _ways(words: Iterable[Word]) -> dict[int, list[Word]]:
    """The words of togetherness of each photo."""
    ways: dict[int, list[Word]] = defaultdict(list)
    for word in words:
        if word.same:
            ways[word.a].append(word)
            ways[word.b].append(word)
    return ways


def overruled(a: int, b: int, same: bool, words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """Make room for a new word: those that stay, and the ones given up, the latest of each chain first."""
    kept, lost = list(words), []
    while chain := contradiction(a, b, same, kept):
        victims = [word for word in chain if word.same != same]
        victim = max(victims, key=lambda word: max(i for i, other in enumerate(kept) if other == word))
        lost.append(victim)
        kept = [word for word in kept if word != victim]
    return kept, lost


def in_words(word: Word, call: Callable[[int], str]) -> str:
    """One word as half a sentence: what the person did."""
    a, b = call(word.a), call(word.b)
    if word.why == "answer":
        return f"you answered that {a} and {b} are {'the same' if word.same else 'different'}"
    if word.same:
        return {
            "merge": f"you merged the groups of {a} and {b}",
            "name": f"you gave one name to the group of {a} and {b}",
            "split": f"you kept {a} and {b} in one part",
            "check": f"you confirmed that {a} belongs with {b}",
        }.get(word.why, f"you put {a} and {b} together")
    return {
        "name": f"you gave the groups of {a} and {b} different names",
        "split": f"you split {a} from {b}",
        "reject": f"you said that {a} does not belong with {b}",
    }.get(word.why, f"you took {a} away from {b}")
