"""Processes killed at any moment, full disks, read-only folders: what was finished stays, the next run completes."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from errno import ENOSPC
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from people import PALETTES, tinted
from pools import Pool
from processes import end, kill, start, start_ranks
from systems import disk_of
from tiny import some_classes

from medi.bench import run as bench_run
from medi.bench.grid import Run
from medi.bench.run import run_grid
from medi.bench.setup import Setup
from medi.core.errors import InputError
from medi.core.files import only_process, read_journal
from medi.core.progress import Silent
from medi.core.tensors import load_arrays
from medi.data.benchmarks import Benchmark
from medi.data.facts import facts_of
from medi.discover import assign, run
from medi.discover.arguments import AssignArguments, Manner
from medi.discover.assign import run_assign
from medi.methods.mp import MP
from medi.nn.context import Context
from medi.nn.loop import _Run
from medi.photos import encode_folder
from medi.photos.cache import PhotoCache
from medi.report.assigned import render_assigned
from medi.report.page import render

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
MP_RUN = Run("rules", "mp", "tiny", "uniform", 3, 2, "honest", "episode", 0)
RUNS = [
    replace(MP_RUN, method="kmeans", config="default", sampler=None),
    MP_RUN,
    replace(MP_RUN, regime="grouped"),
    replace(MP_RUN, seed=1),
]


@pytest.fixture(autouse=True)
def small_grid(monkeypatch):
    """Two stages of training with a checkpoint every other step, on images that take no time."""
    before = {"network": "conv4", "batch": 20, "schedule": {"steps": 6, "decay": 0.0, "shape": "cosine"}}
    tiny = {"queries": 2, "images": 12, "pretraining": before, "schedule": {"steps": 8}}
    benchmark = Benchmark(facts_of("rules"), some_classes(0, 4), some_classes(1, 4))
    monkeypatch.setattr(MP, "presets", {**MP.presets, "tiny": tiny})
    monkeypatch.setattr(bench_run, "load_dataset", lambda *_, **__: benchmark)
    monkeypatch.setattr(bench_run, "Context", lambda **options: Context(**options, checkpoint_seconds=0))
    monkeypatch.setattr(_Run, "LOG_EVERY", 2)
    bench_run.commit()  # asks git once, before the clock runs


def grid(out: Path, runs=RUNS) -> list[dict]:
    return run_grid(runs, Setup(out, 4, torch.device("cpu"), Silent(), resume=True))


def what_matters(out: Path) -> tuple[list, dict, dict]:
    """Results but for the time they took, every bit of trained weights, the logs' steps; nothing else lies about."""
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in read_journal(out / "results.jsonl")]
    weights = {
        path.name: {name: array.tobytes() for name, array in load_arrays(path)[0].items()}
        for path in (out / "models").glob("*.safetensors")
    }
    logs = {path.name: [row["step"] for row in read_journal(path)] for path in (out / "models").glob("*.jsonl")}
    assert not list(out.rglob("*.tmp"))
    return rows, weights, logs


def dies(work: Callable[[Path], object], out: Path, at_write: int | None, cut: int) -> None:
    """Some work in a process that kills itself at a write, its last bytes not on the disk yet."""
    real, writes = os.fsync, 0

    def fsync(handle: int) -> None:
        nonlocal writes
        writes += 1
        if writes == at_write:
            size = os.fstat(handle).st_size
            if not os.path.isdir(f"/proc/self/fd/{handle}"):  # noqa: PTH112 (a handle, not a path)
                os.ftruncate(handle, max(0, size - cut))
            os.kill(os.getpid(), signal.SIGKILL)
        real(handle)

    os.fsync = fsync
    work(out)


def survive(
    work: Callable[[Path], object],
    outcome: Callable[[Path], object],
    folder: Path,
    *,
    kills: int,
    writes: int,
    seed: int,
) -> None:
    """Kill it again and again, by the clock and in the middle of writes; whenever it completes, compare."""
    whole = folder / "whole"
    began = time.monotonic()
    work(whole)
    seconds = time.monotonic() - began
    expected = outcome(whole)
    draw = random.Random(seed)
    killed, completed = 0, 0
    while killed < kills or not completed:
        out = folder / f"disturbed{completed}"
        at_write = draw.randint(1, writes) if draw.random() < 0.5 else None
        process = start(dies, work, out, at_write, draw.randint(0, 30))
        if at_write is None:
            process.join(draw.uniform(0, seconds))
            if process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
        code = end(process)
        assert code in (0, -signal.SIGKILL)
        killed += code != 0
        if code == 0 or killed == kills:
            work(out)
            assert outcome(out) == expected, f"after {killed} kills, seed {seed}"
            completed += 1


few_or_many_kills = pytest.mark.parametrize("kills", [6, pytest.param(60, marks=pytest.mark.slow)])


@few_or_many_kills
def test_a_grid_that_is_killed_again_and_again_ends_as_an_undisturbed_one(tmp_path, kills):
    survive(grid, what_matters, tmp_path, kills=kills, writes=60, seed=kills)


@pytest.fixture
def assign_pool(tmp_path, monkeypatch):
    """`medi assign` over 60 photos in shards of 4, features kept beside the table; and what must come of it."""
    pool = Pool(tmp_path)
    photos = pool.write(60)
    monkeypatch.setattr(assign, "load_model", pool.load_model)
    monkeypatch.setattr(encode_folder, "BATCH", 2)
    monkeypatch.setattr(encode_folder, "SHARD", 4)

    def work(out: Path) -> None:
        os.environ["MEDI_CACHE"] = str(out / "cache")
        run_assign(
            AssignArguments(tmp_path / "model", photos, out / "table.csv"),
            render_assigned,
            Silent(),
            Manner(force=True),
        )

    def outcome(out: Path) -> tuple[bytes, dict[bytes, bytes | None]]:
        """The table, and what the cache says of every photo: all of it, and to the bit."""
        assert not list(out.glob(".*.tmp"))
        cache = PhotoCache(pool.encoder.identity, Silent(), out / "cache")
        digests = [sha256(path.read_bytes()).digest() for path in sorted(photos.rglob("*.png"))]
        return (out / "table.csv").read_bytes(), {digest: cache.get(digest) for digest in digests}

    monkeypatch.setenv("MEDI_CACHE", "")  # so that it is put back
    return work, outcome


@few_or_many_kills
def test_a_pool_whose_features_are_being_kept_can_be_killed_again_and_again(tmp_path, assign_pool, kills):
    survive(*assign_pool, tmp_path, kills=kills, writes=32, seed=kills)


def test_the_run_after_a_kill_encodes_only_what_was_not_kept(tmp_path, assign_pool):
    work, _ = assign_pool
    pool, out = Pool(tmp_path), tmp_path / "out"
    # A shard is two writes, the file and its folder: in the middle of the fourth shard's file.
    assert end(start(dies, work, out, 7, 20)) == -signal.SIGKILL
    pool.encoded()
    work(out)
    assert pool.encoded() == 60 - 3 * 4


FILE_OPERATIONS = ("fsync", "mkdir", "rename", "replace", "rmdir", "unlink")


def stopped(work: Callable[[Path], object], out: Path, at: int | None, killed: bool, count: Path) -> None:
    """Some work in a process that is stopped just before one of its file operations; their number goes into a file."""
    done = 0

    def counted(real: Callable) -> Callable:
        def call(*arguments, **options):
            nonlocal done
            done += 1
            if done == at:
                if killed:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise KeyboardInterrupt
            return real(*arguments, **options)

        return call

    for name in FILE_OPERATIONS:
        setattr(os, name, counted(getattr(os, name)))
    try:
        work(out)
    except KeyboardInterrupt:
        os._exit(130)
    count.write_text(str(done))


@dataclass
class Replacement:
    """`discover --force` in a folder that holds a finished discovery of 2 groups, which a person has sorted.

    Attributes:
        out: The folder.
        work: Puts a discovery of 3 groups there, or of another number.
        before: What is in the folder.
        after: What has to be in it when `work` is done.
        operations: Number of file operations of `work`.
    """

    out: Path
    work: Callable[..., None]
    before: dict[str, object]
    after: dict[str, object]
    operations: int

    def stop(self, at: int, *, killed: bool) -> None:
        code = end(start(stopped, self.work, self.out, at, killed, self.out.with_name("count")))
        assert code == (-signal.SIGKILL if killed else 130)

    def put_back(self) -> None:
        shutil.rmtree(self.out)
        shutil.copytree(self.out.with_name("backup"), self.out)


@pytest.fixture
def replacement(tmp_path, monkeypatch):
    pool, out = Pool(tmp_path), tmp_path / "out"
    for number, name in enumerate(PALETTES):
        for i in range(3):
            folder = tmp_path / ("known" if number < 2 else "novel") / name
            tinted(folder / f"{i}.png", PALETTES[name], 10 * number + i)
    monkeypatch.setenv("MEDI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(run, "choose_encoder", lambda name, device: pool.encoder)
    found, real = {}, run.discover_groups

    def discover_once(known, novel, config, context):
        if config.classes not in found:
            found[config.classes] = real(known, novel, config, context)
        return found[config.classes]

    monkeypatch.setattr(run, "discover_groups", discover_once)

    def work(out: Path, classes: int = 3) -> None:
        arguments = run.Arguments(tmp_path / "known", tmp_path / "novel", out, classes, method="kmeans", export=True)
        run.run_discover(arguments, render, Silent(), Manner(force=True))

    work(out, classes=2)
    (out / "groups" / "1").rename(out / "groups" / "my animals")
    (out / "groups" / "0" / "notes.txt").write_text("mine")
    before = results_in(out)
    shutil.copytree(out, tmp_path / "backup")
    work(out)
    after = results_in(out)
    by_hand = {name for name in before if "my animals" in name or "notes" in name}
    assert len(by_hand) > 1
    assert {name for name in after if "my animals" in name or "notes" in name} == by_hand
    case = Replacement(out, work, before, after, 0)
    case.put_back()
    assert end(start(stopped, work, out, None, False, tmp_path / "count")) == 0
    case.operations = int((tmp_path / "count").read_text())
    case.put_back()
    return case


def results_in(out: Path) -> dict[str, object]:
    """Files and their contents, but for unfinished work and times."""
    found: dict[str, object] = {}
    for path in out.rglob("*"):
        name = path.relative_to(out).as_posix()
        if path.is_file() and not name.startswith(("unfinished/", ".lock")):
            found[name] = path.read_bytes()
    facts = json.loads(found["discovery.json"])
    return found | {
        "discovery.json": {name: value for name, value in facts.items() if name != "seconds"},
        "report.html": re.sub(rb"<dd>\d+ s</dd>", b"", found["report.html"]),
    }


def check_stops(case: Replacement, moments: Iterable[int], *, killed: bool) -> None:
    """Whenever it is stopped, the old results are whole or the new ones complete, and the same command finishes."""
    for moment in moments:
        case.put_back()
        case.stop(moment, killed=killed)
        there = results_in(case.out)
        if (case.out / "unfinished" / "results" / "discovery.json").exists():  # complete, and being moved
            assert all(content in (case.before.get(name), case.after.get(name)) for name, content in there.items())
        else:
            assert there in (case.before, case.after), moment
        case.work(case.out)
        assert results_in(case.out) == case.after, moment
        assert not (case.out / "unfinished").exists()


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "every"])
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "Ctrl-C"])
def test_discover_that_is_stopped_leaves_the_old_results_or_the_new_and_can_be_repeated(replacement, killed, every):
    operations = replacement.operations
    moments = range(1, operations + 1) if every else range(2 + killed, operations, operations // 8)
    check_stops(replacement, moments, killed=killed)


def test_after_a_stop_in_the_middle_of_replacing_results_another_discovery_can_begin(replacement):
    out, moment = replacement.out, 0
    while not (out / "unfinished" / "results" / "discovery.json").exists():
        moment += 5
        replacement.stop(moment, killed=True)
    replacement.work(out, classes=4)
    assert json.loads((out / "discovery.json").read_text())["n_classes"] == 4
    assert (out / "groups" / "0" / "notes.txt").read_text() == "mine"
    assert not (out / "unfinished").exists()


def command(out: Path, stderr: Path) -> None:
    """`medi bench run --resume` as the command line runs it: K-means, then MP."""
    from medi.cli.main import run

    sys.argv = f"medi bench run --dataset rules --method kmeans,mp --way 3 --observations 2 --out {out}".split()
    sys.argv += ["--seeds", "1", "--episodes", "4", "--device", "cpu", "--resume"]
    stderr = stderr.with_name(stderr.name + os.environ.get("RANK", ""))
    handle = os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 2)
    sys.stderr = os.fdopen(2, "w")
    run()


@pytest.fixture
def tiny_is_default(monkeypatch):
    monkeypatch.setattr(MP, "presets", {**MP.presets, "cpu": MP.presets["tiny"]})


def methods(out: Path) -> list[str]:
    return [row["method"] for row in read_journal(out / "results.jsonl")]


@pytest.mark.usefixtures("tiny_is_default")
@pytest.mark.parametrize(
    ("size", "why"),
    [
        pytest.param("300k", "no space left on device; free some space", marks=pytest.mark.slow),
        ("8m", "read-only file system"),
    ],
)
def test_a_disk_that_takes_no_more_ends_with_2_and_a_line_and_keeps_what_was_finished(tmp_path, size, why):
    with disk_of(size, tmp_path / "disk") as disk:
        if "read-only" in why:
            grid(disk / "out", RUNS[:1])
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        assert end(start(command, disk / "out", tmp_path / "stderr")) == 2
        said = (tmp_path / "stderr").read_text()
        assert why in said.splitlines()[-1]
        assert "Traceback" not in said
        assert methods(disk / "out") == ["kmeans"]
        shutil.copytree(disk / "out", tmp_path / "roomy")
    assert end(start(command, tmp_path / "roomy", tmp_path / "stderr")) == 0
    assert methods(tmp_path / "roomy") == ["kmeans", "mp"]


@pytest.mark.parametrize("at_write", [1, 2, 5, 12])
def test_wherever_space_runs_out_finished_rows_stay_and_the_grid_can_be_continued(tmp_path, monkeypatch, at_write):
    real, writes = os.fsync, 0

    def full(handle: int) -> None:
        nonlocal writes
        writes += 1
        if writes >= at_write:
            raise OSError(ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="no space left on device; free some space"):
        grid(tmp_path / "out")
    kept = read_journal(tmp_path / "out" / "results.jsonl")
    monkeypatch.setattr(os, "fsync", real)
    rows = grid(tmp_path / "out")
    assert read_journal(tmp_path / "out" / "results.jsonl")[: len(kept)] == kept
    assert len(rows) == len(RUNS) == len(read_journal(tmp_path / "out" / "results.jsonl"))


def test_a_second_process_on_the_same_folder_is_refused_and_spoils_nothing(tmp_path):
    def hold() -> None:
        with only_process(tmp_path):
            (tmp_path / "held").touch()
            time.sleep(60)

    process = start(hold)
    while not (tmp_path / "held").exists():
        time.sleep(0.02)
    with pytest.raises(InputError, match="in use by another medi process"):
        grid(tmp_path)
    process.kill()
    process.join()
    assert len(grid(tmp_path)) == len(RUNS)


@pytest.mark.usefixtures("tiny_is_default")
def test_the_command_on_two_processes_writes_every_row_once_and_another_number_continues(tmp_path):
    out = tmp_path / "out"
    assert [end(process) for process in start_ranks(2, command, out, tmp_path / "stderr")] == [0, 0]
    rows = read_journal(out / "results.jsonl")
    assert [row["method"] for row in rows] == ["kmeans", "mp"]
    assert all(row["device"].startswith("2 x cpu") for row in rows)
    assert (tmp_path / "stderr1").read_text() == "", "the first process alone reports"
    shutil.copytree(out, tmp_path / "again")
    (tmp_path / "again" / "results.jsonl").write_text("")
    assert [end(process) for process in start_ranks(3, command, tmp_path / "again", tmp_path / "stderr")] == [0] * 3
    for ours, theirs in zip(read_journal(tmp_path / "again" / "results.jsonl"), rows, strict=True):
        assert ours["acc"] == theirs["acc"], "the trained model is found by any number of processes"


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_is_default")
def test_the_command_on_two_processes_ends_with_1_and_a_line_when_one_is_killed(tmp_path, monkeypatch):
    out, real = tmp_path / "out", _Run.train_step
    with monkeypatch.context() as patch:
        patch.setattr(_Run, "train_step", lambda self: time.sleep(0.3) or real(self))
        first, second = start_ranks(2, command, out, tmp_path / "stderr")
    while not list(out.glob("models/*.safetensors")):
        assert first.is_alive()
        time.sleep(0.05)
    kill(second)
    assert end(first) == 1
    said = (tmp_path / "stderr0").read_text()
    assert said.splitlines()[-1].startswith("medi: another process of the job is gone")
    assert "Traceback" not in said
    assert end(start(command, out, tmp_path / "stderr")) == 0
    assert methods(out) == ["kmeans", "mp"]
