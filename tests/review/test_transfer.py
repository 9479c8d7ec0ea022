"""Accepting and taking back, stopped at any moment: photos are where they should be, byte for byte."""

import errno
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from processes import end, start
from reviews import act, toy_pool, write_discovery

from medi.cli.accept import run_accept
from medi.core.errors import InputError
from medi.discover import transfer
from medi.discover.accepted import ACCEPTED, read_accepted
from medi.review.acceptance import accept
from medi.review.actions import RefusedError
from medi.review.session import opened

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
OPERATIONS = ("fsync", "mkdir", "link", "replace", "unlink", "rmdir")
WATCHED = ("accept.py", "acceptance.py", "accepted.py", "files.py", "session.py", "system.py", "transfer.py")
"""A process can be stopped before each line of these."""


class Case:
    """A pool with equal names in two subfolders and a photo that is there twice; a class has a photo of such a name."""

    def __init__(self, folder: Path, *, move: bool) -> None:
        self.folder, self.out, self.move = folder, folder / "out", move
        paths = [f"{number % 2}/{number // 2}.jpg" for number in range(8)]
        write_discovery(folder, toy_pool((5, 2), known=0, alone=1), paths=paths)
        shutil.copyfile(folder / "novel/0/0.jpg", folder / "novel/0/1.jpg")
        (folder / "known/holly").mkdir()
        (folder / "known/holly/0.jpg").write_bytes(b"another photo")
        self.save()

    def accept(self) -> None:
        run_accept(self.out, self.folder / "known", ["0=holly", "1=new"], move=self.move, doubtful=True)

    def undo(self) -> None:
        with opened(self.out, "a test", learning=False) as review:
            if review.history.done and review.history.done[-1]["action"] == "accept":
                review.act({"seq": review.history.seq, "action": "undo"})

    def redo(self) -> None:
        with opened(self.out, "a test", learning=False) as review:
            if review.history.undone:
                review.act({"seq": review.history.seq, "action": "redo"})

    def save(self, *steps: Callable[[], None]) -> None:
        for step in steps:
            step()
        shutil.rmtree(self.folder.with_name("backup"), ignore_errors=True)
        shutil.copytree(self.folder, self.folder.with_name("backup"))

    def put_back(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self.folder.with_name("backup"), self.folder)

    def tree(self) -> dict[str, object]:
        """All there is, but for the journal and its lock."""
        found = {str(path.relative_to(self.folder)): path for path in self.folder.rglob("*")}
        apart = ("out/review.jsonl", "out/.lock")
        return {name: path.is_file() and path.read_bytes() for name, path in found.items() if name not in apart}

    def accepted(self) -> list[str]:
        return [entry["path"] for entry in read_accepted(self.out / ACCEPTED)["accepted"]]


def stopped(work: Callable[[], None], at: int, how: str, count: Path) -> None:
    """Some work in a process that is stopped before one of its lines, or operations; their number goes into a file."""
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if done == at:
            if how == "Ctrl-C":
                raise KeyboardInterrupt
            os.kill(os.getpid(), signal.SIGKILL)

    def trace(frame, event, _):
        if not frame.f_code.co_filename.endswith(WATCHED) or "medi" not in frame.f_code.co_filename:
            return None
        if event == "line":
            step()
        return trace

    def counted(real: Callable) -> Callable:
        return lambda *arguments, **options: (step(), real(*arguments, **options))[1]

    if how == "killed at an operation":
        for name in OPERATIONS:
            setattr(os, name, counted(getattr(os, name)))
    else:
        sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        os._exit(130)
    sys.settrace(None)
    count.write_text(str(done))


@pytest.fixture(params=[False, True], ids=["copied", "moved"])
def case(request, monkeypatch) -> Iterator[Case]:
    monkeypatch.setattr(transfer, "BYTES_AT_ONCE", 200)
    in_memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with TemporaryDirectory(dir=in_memory) as folder:  # thousands of times things are written through
        yield Case(Path(folder, "case"), move=request.param)


STEPS = {"accept": (), "undo": ("accept",), "redo": ("accept", "undo")}


def check_stops(case: Case, step: str, every: int, how: str) -> None:
    """Whenever it is stopped, the same again leads to the same, and then undo to what was before."""
    before, after = prepared(case, step)
    work, listed, count = getattr(case, step), case.accepted(), case.folder.with_name("count")
    case.put_back()
    assert end(start(stopped, work, 0, how, count)) == 0
    for at in range(1 + every // 2, int(count.read_text()) + 1, every):
        case.put_back()
        assert end(start(stopped, work, at, how, count)) == (130 if how == "Ctrl-C" else -signal.SIGKILL)
        work()
        assert (case.tree(), case.accepted()) == (after, listed), at
        case.undo()
        assert case.tree() == before, at


def prepared(case: Case, step: str) -> tuple[dict[str, object], dict[str, object]]:
    """Do all that comes before a step, save that, and do the step; what is there once it was undone, and when done."""
    case.save(*(getattr(case, name) for name in STEPS[step]))
    getattr(case, step)()
    after = case.tree()
    case.undo()
    before = case.tree()
    case.put_back()
    getattr(case, step)()
    return before, after


@pytest.mark.parametrize("step", STEPS)
def test_accept_undo_and_redo_that_are_killed_are_finished_or_taken_back_by_the_same_again(case, step):
    check_stops(case, step, 193, "killed")


@pytest.mark.slow
@pytest.mark.parametrize(("every", "how"), [(1, "killed at an operation"), (29, "killed"), (31, "Ctrl-C")])
@pytest.mark.parametrize("step", STEPS)
def test_accept_undo_and_redo_can_be_stopped_at_each_sync_rename_and_many_lines(case, step, every, how):
    check_stops(case, step, every, how)


def test_undo_brings_every_photo_back_to_its_own_path(case):
    original = {name: content for name, content in case.tree().items() if not name.startswith("out")}
    case.accept()
    holly = sorted(path.name for path in (case.folder / "known/holly").iterdir())
    assert holly == ["0-2.jpg", "0-3.jpg", "0.jpg", "1.jpg", "2.jpg"]
    assert all((case.folder / "novel" / path).exists() is not case.move for path in case.accepted())
    case.undo()
    assert {name: content for name, content in case.tree().items() if not name.startswith("out")} == original


class FullDisk:
    """One of the operations fails for want of space; the same process may go on after that."""

    def __init__(self, at: int) -> None:
        self.at, self.done = at, 0

    def counted(self, real: Callable) -> Callable:
        def call(*arguments, **options):
            self.done += 1
            if self.done == self.at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*arguments, **options)

        return call


@pytest.mark.parametrize("step", STEPS)
def test_wherever_the_disk_is_full_nothing_is_half_done_and_the_same_again_finishes(case, step, monkeypatch):
    _, after = prepared(case, step)
    work, disk = getattr(case, step), FullDisk(0)
    while disk.done >= disk.at:
        disk = FullDisk(disk.at + 1)
        case.put_back()
        with monkeypatch.context() as patch:
            for name in OPERATIONS:
                patch.setattr(os, name, disk.counted(getattr(os, name)))
            with suppress(InputError):
                work()
        work()
        assert case.tree() == after, disk.at
    assert disk.at > 20


def test_what_the_pool_or_the_class_lost_meanwhile_is_never_the_last_of_a_photo(case):
    case.accept()
    for path in (case.folder / "known/new").iterdir():
        path.write_bytes(b"edited")
    case.undo()
    with pytest.raises(InputError, match="in the way"):
        case.redo()
    assert all(path.read_bytes() == b"edited" for path in (case.folder / "known/new").iterdir())


def test_a_damaged_list_is_refused_with_a_cure_that_works(case):
    case.accept()
    listed, path = case.accepted(), case.out / ACCEPTED
    for damage in ("{", "[]", '{"accepted": [{}], "groups": {}, "discovery": ""}', "[" * 100_000, '{"accepted": 3}'):
        path.write_text(damage)
        with pytest.raises(InputError, match="delete it"):
            case.accept()
    path.unlink()
    case.accept()
    assert case.accepted() == listed


def test_a_transfer_that_somebody_changed_is_refused(case):
    case.out.joinpath(transfer.TRANSFER).write_text("0" * 64 + "\n{}")
    with pytest.raises(InputError, match="damaged"):
        case.accept()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_after_anything_with_kills_in_between_undoing_all_of_it_leaves_no_trace(case, seed):
    generator = random.Random(seed)
    original = {name: content for name, content in case.tree().items() if not name.startswith("out")}
    photos = {content for content in original.values() if content}

    def one() -> None:
        with opened(case.out, "a test", learning=False) as review:
            state, history = review.history.state, review.history
            action = generator.choice(["name", "name", "accept", "accept", "undo", "redo", "move"])
            with suppress(RefusedError):
                if action == "name":
                    group, name = generator.choice(list(state.members)), generator.choice(["holly", "new", "rose"])
                    act(review, "name", group=group, name=name)
                elif action == "accept":
                    accept(review, None, case.folder / "known", move=case.move, doubtful=True)
                elif action == "move":
                    item, group = generator.randrange(len(state.groups)), generator.choice(list(state.members))
                    act(review, "move", items=[item], group=group)
                elif action == "undo" or history.undone:
                    act(review, action)

    for _ in range(50):
        random_state = generator.random()
        generator.seed(random_state)
        if generator.random() < 0.5:
            end(start(stopped, one, generator.randrange(1, 1500), "killed", case.folder.with_name("count")))
        else:
            one()
        generator.seed(random_state + 1)
        with opened(case.out, "a test", learning=False) as review:
            assert sorted(case.accepted()) == sorted(review.setting.paths[i] for i in review.history.state.accepted)
        there = {content for name, content in case.tree().items() if not name.startswith("out")}
        assert photos <= there
    with opened(case.out, "a test", learning=False) as review:
        while review.history.done:
            act(review, "undo")
    assert {name: content for name, content in case.tree().items() if not name.startswith("out")} == original
