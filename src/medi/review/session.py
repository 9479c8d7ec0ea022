"""A review under way: takes actions one at a time, writes each to the disk, and shows the state that they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from medi.core.errors import InputError
from medi.core.files import only_process
from medi.discover.output import move_results
from medi.discover.transfer import settle, transferring
from medi.review import accept as accepting
from medi.review.acceptance import accept
from medi.review.actions import ACTIONS, RefusedError, Setting, arguments_of, group_of, split_parts, whole
from medi.review.constraints import bundles, in_words, kept_apart
from medi.review.discovery_folder import Folder, read_folder
from medi.review.draft import Draft
from medi.review.history import REDO, UNDO, History
from medi.review.places import View
from medi.review.questions import questions
from medi.review.regrouping import load_pool, look, regroup
from medi.review.state import Question, ReviewState, shown
from medi.review.togetherness import near_groups

if TYPE_CHECKING:
    from medi.grouping.saved_pool import SavedPool

LIVE = 2_000
"""Photos up to which the pool is grouped again after every action; with more, when a person asks for it."""
LIKELY = 0.25
"""Probability from which on a photo outside a group is offered when the group is checked."""
ACCEPT, REGROUP = "accept", "regroup"


class StaleError(Exception):
    """An action upon a state that has changed meanwhile."""


class Review:
    """The review of one discovery; safe to use from several threads."""

    def __init__(self, folder: Folder, pool: SavedPool | None) -> None:
        if pool is not None and len(pool) != len(folder.start):
            raise InputError(
                f"{folder.model} holds {len(pool)} photos, but clusters.csv {len(folder.start)}: discover again."
            )
        self.folder, self.pool = folder, pool
        names = dict.fromkeys((*(pool.names if pool else ()), *folder.class_names))
        self.setting = Setting(folder.start.paths, tuple(names), pool)
        self.history = History(folder)
        self.lock = RLock()
        self._view: tuple[ReviewState, View] | None = None
        self._asked: dict[int, list[Question]] = {}

    @property
    def live(self) -> bool:
        """Whether the pool is grouped again after every action."""
        return self.pool is not None and len(self.pool) <= LIVE

    def check(self) -> None:
        """Refuse to go on where another program changed the journal."""
        with self.lock:
            self.history.journal.check()

    def check_open(self) -> None:
        """Refuse to change an earlier round."""
        if self.folder.closed:
            raise RefusedError(self.folder.closed)

    def act(self, request: Mapping[str, Any]) -> None:
        """Do what a request says; it is on the disk when this returns.

        Raises:
            RefusedError: It makes no sense, or contradicts what was said.
            StaleError: Its seq is not the present one.
        """
        seq, action = whole(request.get("seq"), "seq"), request.get("action")
        with self.lock:
            self.check_open()
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
                accept(self, groups, self.folder.known, doubtful=request.get("doubtful") is True)
            else:
                self._change(action, request)

    def state(self) -> dict[str, Any]:
        """As `GET /api/state` answers."""
        with self.lock:
            return shown(self.history.state, self.folder.start, self.history.seq, self._questions())

    @property
    def steps(self) -> tuple[str, str]:
        """What undo and redo would take back and do again, in words; empty where there is nothing."""
        last, next_one = ([_text_of(line) for line in lines[-1:]] for lines in (self.history.done, self.history.undone))
        return "".join(last), "".join(next_one)

    def preview_split(self, group: Any, parts: Any) -> list[list[int]]:
        """The items of each part that a split would make."""
        with self.lock:
            draft = Draft(self.history.state)
            return split_parts(draft, group_of(group, draft), parts, self.setting)

    def candidates(self, group: Any) -> list[int]:
        """Items to confirm in a group, the likeliest first: its own, then others that may belong to it."""
        with self.lock:
            state = self.history.state
            members = state.members[group_of(group, Draft(state))]
            own = [item for item in members if state.confidence[item] < 1]
            own.sort(key=lambda item: -state.confidence[item])
            view = self._present_view()
            if view is None:
                return own
            likely = near_groups(view.samples, {0: members})[:, 0]
            of = bundles(state.words)
            here = {of[item] for item in members}
            apart = {end for ends in kept_apart(state.words, of) if ends & here for end in ends - here}
            left_out = state.held.union(members)
            others = [
                item
                for item in np.argsort(-likely, kind="stable").tolist()
                if item not in left_out and of[item] not in apart and likely[item] >= LIKELY
            ]
            return own + others

    def likely_places(self, items: Sequence[int | None]) -> list[dict[str, Any]]:
        """Groups and known classes, those that some photos most probably belong to first."""
        with self.lock:
            state = self.history.state
            chosen = [item for item in items if item is not None and item < len(state.groups)]
            if not chosen:
                raise RefusedError("Say which photos, by their numbers.")
            view = self._present_view()
            if view is None:
                return []
            near, known = (some[chosen].mean(0).round(4).tolist() for some in (view.groups, view.known))
            places = [{"known": name, "probability": p} for name, p in zip(view.names, known, strict=True)]
            places += [{"group": group, "probability": p} for group, p in zip(state.members, near, strict=True)]
            return sorted(places, key=lambda place: -place["probability"])

    def _change(self, action: str, request: Mapping[str, Any]) -> None:
        draft = Draft(self.history.state)
        arguments: dict[str, Any] = {}
        draft.note = {"text": "Looked at everything again."}
        if action != REGROUP:
            arguments = arguments_of(action, request, len(self.folder.start))
            draft.note = {"text": ACTIONS[action](draft, arguments, self.setting)}
        elif self.pool is None:
            raise RefusedError("This discovery has no saved pool to look at again: discover again.")
        if draft.overruled:
            said = dict.fromkeys(in_words(word, self.setting.call) for word in draft.overruled)
            draft.note["overruled"] = [f"This overrules that {one}." for one in said][:5]
        view = None
        if self.pool is not None and (self.live or action == REGROUP):
            direct = draft.places
            view = regroup(draft, self.pool)
            if moved := [item for item, place in enumerate(draft.places) if place != direct[item]]:
                draft.note["moved"] = moved
                draft.note["why"] = self._why(draft, moved, set(arguments.get("items", ())))
            draft.questions = questions(draft, view, self.pool)
        else:
            draft.questions = _still_open(draft) if draft.questions else None
        self.history.write({"action": action, **arguments, "effect": draft.effect()})
        if view is not None:
            self._view = self.history.state, view

    def _why(self, draft: Draft, moved: Sequence[int], about: set[int]) -> str:
        """What grouping again moved: where the photo is now that the action was about, and how many others."""
        lines, only = [], about.intersection(moved) if len(about) == 1 else set[int]()
        for item in only:
            place = draft.call(draft.groups[item]) if draft.groups[item] >= 0 else draft.known[item]
            lines.append(f"It is now in {place}." if place else "It is now on its own.")
        if others := [item for item in moved if item not in only]:
            lines.append(f"{self.setting.call_all(others)} moved because of what you said.")
        return " ".join(lines)

    def _step(self, action: str) -> None:
        lines = self.history.done if action == UNDO else self.history.undone
        if not lines:
            raise RefusedError(f"There is nothing to {action}.")
        line = lines[-1]
        step = {"action": action, "of": line["seq"]}
        if line["action"] == ACCEPT:
            plan = accepting.withdrawal if action == UNDO else accepting.acceptance
            with transferring(self.folder.path, plan(self.folder, self.history, line)):
                self.history.write(step)
        else:
            self.history.write(step)

    def _present_view(self) -> View | None:
        """What the engine says under what was said up to now; it is asked again where that is not at hand.

        Of a pool that is too large for that, what it said last, if of these groups; None where there is nothing.
        """
        state = self.history.state
        if self.pool is None or not self.live:
            return self._view[1] if self._view and self._view[0].groups == state.groups else None
        if self._view is None or self._view[0] is not state:
            self._view = state, look(Draft(state), self.pool)
        return self._view[1]

    def _questions(self) -> list[Question]:
        state = self.history.state
        if state.questions is not None or not self.live:
            return state.questions or []
        # Before the first action, and after actions without the pool, the journal has none.
        key = self.history.done[-1]["seq"] if self.history.done else 0
        if key not in self._asked:
            view = self._present_view()
            if view is None or self.pool is None:
                return []
            self._asked[key] = questions(state, view, self.pool)
        return self._asked[key]


@contextmanager
def opened(path: Path, command: str, *, learning: bool = True) -> Iterator[Review]:
    """The review of the discovery in a folder, which no other process may use meanwhile.

    Without `learning` the pool is not loaded, and what is done changes nothing else.
    """
    read_folder(path)
    with only_process(path, command):
        settle(path)
        move_results(path)
        folder = read_folder(path)
        review = Review(folder, load_pool(folder.model) if learning else None)
        if not folder.closed:
            accepting.check_list(folder, review.history)
        yield review


def _text_of(line: Mapping[str, Any]) -> str:
    note = line["effect"].get("note", {})
    return str(note.get("text", line["action"]))


def _still_open(draft: Draft) -> list[Question]:
    """Questions that nothing said since has answered."""
    said, gone = {frozenset((word.a, word.b)) for word in draft.words}, draft.held
    asked = draft.questions or []
    return [one for one in asked if frozenset((one.a, one.b)) not in said and not {one.a, one.b} & gone]
