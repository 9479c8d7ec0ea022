"""A review under way: takes actions one at a time, writes each to the disk, and shows the state that they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medi.errors import InputError
from medi.review import accept as accepting
from medi.review.actions import ACTIONS, split_parts
from medi.review.constraints import bundles, in_words
from medi.review.discovery_folder import Folder, read_folder
from medi.review.draft import Draft
from medi.review.pool import Pool, load_pool
from medi.review.questions import questions
from medi.review.regrouping import belonging_to, moved_items, regroup, sampled, thinned
from medi.review.requests import RefusedError, group_of, whole
from medi.review.setting import Setting, call_group, photos
from medi.review.shown import shown
from medi.review.state import REDO, UNDO, History, State, effect
from medi.runtime.files import append_to_journal, only_process, read_journal

LIVE = 2_000
"""Photos up to which the pool is grouped again after every action; with more, when a person asks for it."""
LIKELY = 0.25
"""Probability from which on a photo outside a group is offered when the group is checked."""
ACCEPT, REGROUP = "accept", "regroup"
OWN = "discovery"
"""The key of a line that holds the digest of the discovery that it belongs to."""


class StaleError(Exception):
    """An action upon a state that has changed meanwhile."""


class Review:
    """The review of one discovery; safe to use from several threads."""

    def __init__(self, folder: Folder, pool: Pool | None) -> None:
        if pool is not None and len(pool) != len(folder.start):
            raise InputError(
                f"{folder.model} holds {len(pool)} photos, but clusters.csv {len(folder.start)}: discover again."
            )
        self.folder, self.pool = folder, pool
        names = dict.fromkeys((*(pool.names if pool else ()), *folder.class_names))
        self.setting = Setting(folder.start.paths, tuple(names), pool)
        self.history = read_history(folder)
        self._lock = Lock()
        self._samples: tuple[State, NDArray[np.int64]] | None = None
        self._asked: dict[int, tuple[tuple[int, int, float], ...]] = {}

    @property
    def live(self) -> bool:
        """Whether the pool is grouped again after every action."""
        return self.pool is not None and len(self.pool) <= LIVE

    def act(self, request: Mapping[str, Any]) -> None:
        """Do what a request says; it is on the disk when this returns.

        Raises:
            RefusedError: It makes no sense, or contradicts what was said.
            StaleError: Its seq is not the present one.
        """
        seq, action = whole(request.get("seq"), "seq"), request.get("action")
        with self._lock:
            if seq != self.history.seq:
                raise StaleError
            if not isinstance(action, str) or action not in (*ACTIONS, UNDO, REDO, ACCEPT, REGROUP):
                raise RefusedError(f"There is no such action: choose {', '.join((*ACTIONS, UNDO, REDO, ACCEPT))}.")
            if action in (UNDO, REDO):
                self._step(action)
            elif action == ACCEPT:
                groups = request.get("groups")
                if groups is not None and not isinstance(groups, list):
                    raise RefusedError("“groups” must be a list of groups; leave it out for all that have a name.")
                self._accept(groups, self.folder.known, move=False)
            else:
                self._change(action, request)

    def accept(self, groups: Sequence[int] | None, into: Path, *, move: bool) -> accepting.Accepted:
        """Make named groups known classes: all that have a name, or some."""
        with self._lock:
            return self._accept(groups, into, move=move)

    def state(self) -> dict[str, Any]:
        """As `GET /api/state` answers."""
        with self._lock:
            state = self.history.state
            return shown(state, self.folder.start, self.history.seq, self._questions(state))

    @property
    def steps(self) -> tuple[str, str]:
        """The actions that undo and redo would take; empty where there is none."""
        done, undone = self.history.done, self.history.undone
        return str(done[-1]["action"]) if done else "", str(undone[-1]["action"]) if undone else ""

    def recent(self, count: int = 50) -> list[dict[str, Any]]:
        """The last actions in force, the latest first."""
        with self._lock:
            return [
                {"seq": line["seq"], "at": line["at"], "action": line["action"], "text": _text_of(line)}
                for line in reversed(self.history.done[-count:])
            ]

    def preview_split(self, group: Any, parts: Any) -> list[list[int]]:
        """The items of each part that a split would make."""
        with self._lock:
            draft = Draft(self.history.state)
            return split_parts(draft, group_of(group, draft), parts, self.setting)

    def candidates(self, group: Any) -> list[int]:
        """Items to confirm in a group, the likeliest first: its own, then others that may belong to it."""
        with self._lock:
            state = self.history.state
            draft = Draft(state)
            number = group_of(group, draft)
            own = [item for item in state.members[number] if state.confidence[item] < 1]
            own.sort(key=lambda item: -state.confidence[item])
            samples = self._samples_of(state)
            if samples is None:
                return own
            anchors = set(state.members[number])
            likely = belonging_to(samples, sorted(anchors))
            of = bundles(state.words)
            here = {of.get(item, item) for item in anchors}
            pairs = [(of.get(w.a, w.a), of.get(w.b, w.b)) for w in state.words if not w.same]
            apart = {b if a in here else a for a, b in pairs if a in here or b in here}
            others = [
                item
                for item in np.argsort(-likely, kind="stable").tolist()
                if item not in anchors
                and item not in state.held
                and of.get(item, item) not in apart
                and likely[item] >= LIKELY
            ]
            return own + others

    def _change(self, action: str, request: Mapping[str, Any]) -> None:
        before = self.history.state
        draft = Draft(before)
        arguments: dict[str, Any] = {}
        text = "Looked at everything again."
        if action != REGROUP:
            do, keys = ACTIONS[action]
            arguments = {key: request[key] for key in keys if key in request}
            if arguments.pop("override", None) is True:
                arguments["override"] = True
            text = do(draft, arguments, self.setting)
        elif self.pool is None:
            raise RefusedError("This discovery has no saved pool to look at again: discover again.")
        note: dict[str, Any] = {"text": text}
        if draft.overruled:
            said = dict.fromkeys(in_words(word, self.setting.call) for word in draft.overruled)
            note["overruled"] = [f"This overrules that {one}." for one in said][:5]
        asked = None
        if self.pool is not None and (self.live or action == REGROUP):
            direct = dict(enumerate(zip(draft.groups, draft.known, strict=True)))
            samples = regroup(draft, self.pool)
            if moved := moved_items(draft, direct):
                note["moved"] = moved
                note["why"] = self._why(draft, moved, set(arguments.get("items", ())))
            settled = frozenset(draft.aside | draft.marked)
            asked = questions(samples, draft.groups, draft.words, settled, draft.confidence, self.pool.split)
        elif before.questions:
            asked = _still_open(before.questions, draft)
        after = draft.finish(asked, note)
        self._write({"action": action, **arguments, "effect": effect(before, after)})
        if self.pool is not None and (self.live or action == REGROUP):
            self._samples = self.history.state, samples

    def _why(self, draft: Draft, moved: Sequence[int], about: set[int]) -> str:
        """What grouping again moved: where the photos are now that the action was about, and how many others."""
        lines = []
        for item in moved:
            if item in about and len(about) == 1:
                place = call_group(draft, draft.groups[item]) if draft.groups[item] >= 0 else draft.known[item]
                lines.append(f"It is now in {place}." if place else "It is now on its own.")
        others = [item for item in moved if item not in about or len(about) > 1]
        if others:
            lines.append(f"{photos(others, self.setting)} moved because of what you said.")
        return " ".join(lines)

    def _step(self, action: str) -> None:
        lines = self.history.done if action == UNDO else self.history.undone
        if not lines:
            raise RefusedError(f"There is nothing to {action}.")
        if lines[-1]["action"] == ACCEPT:
            (accepting.withdraw if action == UNDO else accepting.repeat)(self.folder, lines[-1]["files"])
        accepted = lines[-1]["action"] == ACCEPT
        self._write({"action": action, "of": lines[-1]["seq"]})
        if accepted:
            accepting.write_list(self.folder, self.history)

    def _accept(self, groups: Sequence[Any] | None, into: Path, *, move: bool) -> accepting.Accepted:
        before = self.history.state
        chosen = sorted(before.names) if groups is None else [group_of(group, Draft(before)) for group in groups]
        for group in chosen:
            if group not in before.names:
                raise RefusedError(f"Group {group} has no name: name it first.")
        names = {item: before.names[group] for group in chosen for item in before.members[group]}
        if groups is None:
            names |= {item: before.known[item] for item in before.marked}
        names = {item: name for item, name in names.items() if before.accepted.get(item) != name}
        if not names:
            raise RefusedError("There is nothing new to accept: name a group first.")
        done = accepting.accept(self.folder, names, into, move=move)
        text = f"Accepted {photos(list(names), self.setting)} into {into}."
        accepted = {**before.accepted, **names}
        after = replace(before, accepted=accepted, questions=self._questions(before), note={"text": text})
        self._write(
            {
                "action": ACCEPT,
                "groups": {str(group): before.names[group] for group in chosen},
                "into": str(into.absolute()),
                "files": [list(file) for file in done.files],
                "effect": effect(before, after),
            }
        )
        accepting.write_list(self.folder, self.history)
        return done

    def _write(self, line: Mapping[str, Any]) -> None:
        """Number a line, write it to the disk, and only then take it."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        whole_line = {"seq": self.history.seq + 1, "at": at, **line, OWN: self.folder.start.digest}
        append_to_journal(self.folder.journal, whole_line)
        self.history.add(whole_line)

    def _samples_of(self, state: State) -> NDArray[np.int64] | None:
        """Samples under what was said up to a state; they are drawn again where they are not at hand.

        Of a pool that is too large for that, the last ones; None where there are none.
        """
        if self.pool is None or not self.live:
            return self._samples[1] if self._samples else None
        if self._samples is None or self._samples[0] is not state:
            self._samples = state, thinned(sampled(Draft(state), self.pool).samples)
        return self._samples[1]

    def _questions(self, state: State) -> tuple[tuple[int, int, float], ...]:
        if state.questions is not None or not self.live:
            return state.questions or ()
        # Before the first action, and after actions without the pool, the journal has none.
        key = self.history.done[-1]["seq"] if self.history.done else 0
        if key not in self._asked:
            samples = self._samples_of(state)
            settled = state.aside | state.marked
            if samples is None or self.pool is None:
                return ()
            self._asked[key] = questions(samples, state.groups, state.words, settled, state.confidence, self.pool.split)
        return self._asked[key]


def read_history(folder: Folder) -> History:
    """What the journal of a discovery says so far."""
    lines = read_journal(folder.journal)
    for line in lines:
        if line.get(OWN) != folder.start.digest:
            raise InputError(
                f"{folder.journal} belongs to another discovery than the clusters.csv beside it: move it away."
            )
    return History(folder.start, lines, str(folder.journal))


@contextmanager
def opened(path: Path, *, learning: bool = True) -> Iterator[Review]:
    """The review of the discovery in a folder, which no other process may use meanwhile.

    Without `learning` the pool is not loaded, and what is done changes nothing else.
    """
    folder = read_folder(path)
    with only_process(path):
        yield Review(folder, load_pool(folder.model) if learning else None)


def _text_of(line: Mapping[str, Any]) -> str:
    note = line["effect"].get("note", {})
    return str(note.get("text", line["action"]))


def _still_open(asked: Sequence[tuple[int, int, float]], draft: Draft) -> tuple[tuple[int, int, float], ...]:
    """Questions that nothing said since has answered."""
    said = {frozenset((word.a, word.b)) for word in draft.words}
    gone = draft.aside | draft.marked
    return tuple((a, b, p) for a, b, p in asked if frozenset((a, b)) not in said and not {a, b} & gone)
