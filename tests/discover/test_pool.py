"""Pools of photos: a shard at a time, shared by processes, continued where they were stopped."""

import importlib.util
import json
import os
import shutil
import sys
import time
from dataclasses import replace
from functools import partial

import pytest
from people import PALETTES, discover, facts_of, program, refused, rows_of, tinted
from pools import Pool
from processes import end, kill, start, start_ranks
from systems import peak_megabytes
from worlds import gaussian_classes

from medi.core.progress import Silent
from medi.core.workplace import Workplace
from medi.discover import assign, large_pools, parallel_encoding, run
from medi.discover.arguments import AssignArguments, Manner
from medi.discover.assign import run_assign
from medi.discover.config import DiscoveryConfig
from medi.discover.pipeline import discover_groups
from medi.methods.mp import MP
from medi.methods.teacher import MethodTeacher
from medi.nn.schedule import Schedule
from medi.photos import encode_folder
from medi.report.assigned import render_assigned

SILENT = Silent()
RAY = importlib.util.find_spec("ray") is not None
linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")


@pytest.fixture
def pool(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDI_CACHE", str(tmp_path / "cache"))
    pool = Pool(tmp_path)
    monkeypatch.setattr(assign, "load_model", pool.load_model)
    small_shards(monkeypatch, 8)
    return pool


def small_shards(monkeypatch, size):
    monkeypatch.setattr(encode_folder, "BATCH", 2)
    for module in (encode_folder, parallel_encoding):
        monkeypatch.setattr(module, "SHARD", size)


def table(pool, out="out.csv", reporter=SILENT):
    asked = AssignArguments(pool.folder / "model", pool.folder / "photos", pool.folder / out)
    run_assign(asked, render_assigned, reporter, Manner(force=True))


def test_a_pool_is_continued_at_the_shard_it_was_stopped_in(pool, monkeypatch):
    pool.write(50)
    real = parallel_encoding.read_shards

    def stopped(*arguments, **options):
        for number, shard in enumerate(real(*arguments, **options)):
            if number == 3:
                raise KeyboardInterrupt
            yield shard

    with monkeypatch.context() as patch:
        patch.setattr(encode_folder, "_cores", lambda: 1)
        patch.setattr(assign, "read_shards", stopped)
        with pytest.raises(KeyboardInterrupt):
            table(pool)
    kept = pool.encoded()
    assert not (pool.folder / "out.csv").exists()
    table(pool)
    assert kept >= 3 * 8
    assert pool.encoded() <= 50 - 3 * 8
    assert len(rows_of(pool.folder / "out.csv")) == 50
    table(pool, "again.csv")
    assert pool.encoded() == 0
    assert (pool.folder / "again.csv").read_bytes() == (pool.folder / "out.csv").read_bytes()


@linux
def test_processes_share_a_pool_by_shards_and_write_the_table_that_one_writes(pool):
    pool.write(50)
    table(pool)
    assert pool.encoded() == 50
    for count in (2, 3):
        shutil.rmtree(pool.folder / "cache")
        assert [end(process) for process in start_ranks(count, table, pool, f"{count}.csv")] == [0] * count
        assert pool.encoded() == 50, "every photo once, by whichever process"
        assert (pool.folder / f"{count}.csv").read_bytes() == (pool.folder / "out.csv").read_bytes()


@linux
def test_when_one_of_two_processes_is_killed_the_other_ends_and_one_goes_on_from_their_shards(pool, monkeypatch):
    pool.write(60)

    def slow_second(*arguments, **options):
        for shard in real(*arguments, **options):
            if os.environ["RANK"] == "1":
                (pool.folder / "begun").touch()
                time.sleep(60)
            yield shard

    real = parallel_encoding.read_shards
    with monkeypatch.context() as patch:
        patch.setattr(parallel_encoding, "read_shards", slow_second)
        first, second = start_ranks(2, table, pool)
        while not (pool.folder / "begun").exists():
            assert second.is_alive()
            time.sleep(0.02)
        kill(second)
        assert end(first) == 1
    assert not (pool.folder / "out.csv").exists()
    kept = pool.encoded()
    assert 32 <= kept < 60, "the first did its part"
    table(pool)
    assert pool.encoded() <= 60 - kept + 8
    assert len(rows_of(pool.folder / "out.csv")) == 60


@linux
def test_features_that_do_not_arrive_are_computed_again_and_that_is_said(pool, monkeypatch):
    pool.write(20)
    said = []

    class Told(Silent):
        def say(self, message):
            said.append(message)

    # As if others had put them into a folder of their own.
    monkeypatch.setattr(assign, "encode_together", lambda *_: True)
    table(pool, reporter=Told())
    assert len(rows_of(pool.folder / "out.csv")) == 20
    assert any("20 photos were encoded again" in line and "MEDI_CACHE" in line for line in said)


@linux
def test_memory_does_not_grow_with_the_pool(pool, monkeypatch):
    """Features of 200 kB a photo: 400 photos more would be 80 MB, and as much again for their points."""
    large = Pool(pool.folder, repeats=17_000)
    monkeypatch.setattr(assign, "load_model", large.load_model)

    def measured(out):
        table(large, out)
        peak = peak_megabytes()
        (large.folder / f"{out}.peak").write_text(str(peak))

    peaks = []
    for count in (60, 460):
        large.write(count)
        assert end(start(measured, str(count))) == 0
        peaks.append(float((large.folder / f"{count}.peak").read_text()))
        assert len(rows_of(large.folder / str(count))) == count
    assert peaks[1] - peaks[0] < 15, peaks


@linux
def test_discover_on_two_processes_writes_what_one_writes_and_the_first_alone_prints(folders, medi_, monkeypatch):
    for i in range(12):
        tinted(folders / "known" / "reds" / f"more {i}.png", PALETTES["reds"], 600 + i)
    small_shards(monkeypatch, 4)
    assert medi_(*discover(folders, "--classes", "2", out="one")).code == 0
    monkeypatch.setenv("MEDI_CACHE", str(folders / "cache"))
    real = run.choose_encoder

    def noting(name, device):
        encoder = real(name, device)

        def encode(images):
            with (folders / f"encoded{os.environ['RANK']}").open("a") as file:
                file.write("1\n" * len(images))
            return encoder.encode(images)

        return replace(encoder, encode=encode)

    monkeypatch.setattr(run, "choose_encoder", noting)
    words = discover(folders, "--classes", "2", out="two")
    assert [end(process) for process in start_ranks(2, program, words, folders)] == [0, 0]
    first, second = (len((folders / f"encoded{rank}").read_text().split()) for rank in (0, 1))
    assert first + second == 18 + 8
    assert min(first, second) >= 10
    for name in ("clusters.csv", "model/recogniser.safetensors"):
        assert (folders / "two" / name).read_bytes() == (folders / "one" / name).read_bytes(), name
    assert "2 groups in 8 pictures" in (folders / "stdout0").read_text()
    assert (folders / "stdout1").read_text() == (folders / "stderr1").read_text() == ""
    assert facts_of(folders, "two")["device"].startswith("2 x cpu")


@linux
def test_a_network_that_discover_trains_is_trained_by_all_processes(folders, medi_, monkeypatch):
    quick = MP(images=12, schedule=Schedule(steps=4))
    monkeypatch.setattr(MethodTeacher, "configured", lambda *_, **__: quick)
    monkeypatch.setattr(run, "DiscoveryConfig", partial(DiscoveryConfig, sampler="uniform"))
    words = ("--classes", "2", "--encoder", "conv4", "--method", "mp")
    assert medi_(*discover(folders, *words, out="one")).code == 0
    processes = start_ranks(2, program, discover(folders, *words, out="two"), folders)
    assert [end(process) for process in processes] == [0, 0]
    one, two = (rows_of(folders / out / "clusters.csv") for out in ("one", "two"))
    assert [(row["path"], row["cluster"]) for row in one] == [(row["path"], row["cluster"]) for row in two]
    assert facts_of(folders, "two")["representation"]["used"] == facts_of(folders, "one")["representation"]["used"]
    assert not (folders / "two" / "unfinished").exists()


def test_of_many_novel_photos_some_are_grouped_the_others_join_and_the_report_stays_small(folders, medi_, monkeypatch):
    from medi.discover import pipeline as discover_module
    from medi.report import strips

    for module in (large_pools, discover_module, run):
        monkeypatch.setattr(module, "MOST_GROUPED", 6)
    monkeypatch.setattr(strips, "MOST_SHOWN", 4)
    result = medi_(*discover(folders, "--classes", "2", "--only-novel"))
    assert result.code == 0, result.err
    rows = rows_of(folders / "out" / "clusters.csv")
    assert len({(row["path"].split()[0], row["cluster"]) for row in rows}) == 2, "blue and grey told apart"
    assert "among 6 of the 8 novel photos" in result.err
    assert any("among 6 of the 8" in warning for warning in facts_of(folders)["warnings"])
    assert 4 <= (folders / "out" / "report.html").read_text().count("data:image/jpeg") <= 4 + 2
    refused(medi_(*discover(folders, "--classes", "7", "--force")), "more than 6 groups")


@pytest.mark.slow
@linux
def test_of_known_photos_the_features_alone_grow(tmp_path):
    """From 8,000 to 40,000 vectors of 256 floats: 33 MB of features, and nothing else in proportion."""

    def measured(items):
        known = gaussian_classes(20, items // 20, width=256)
        novel = gaussian_classes(3, 10, width=256, seed=1).values
        discover_groups(known, novel, DiscoveryConfig(classes=3), Workplace())
        peak = peak_megabytes()
        (tmp_path / str(items)).write_text(str(peak))

    for items in (8_000, 40_000):
        assert end(start(measured, items)) == 0
    small, large = (float((tmp_path / str(items)).read_text()) for items in (8_000, 40_000))
    # The vectors themselves, and as much again while `gaussian_classes` makes them.
    assert large - small < 3.5 * 33, (small, large)


def test_ray_is_named_where_it_is_missing_and_does_not_go_with_torchrun(folders, medi_, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("WORLD_SIZE", "2")
        refused(medi_(*discover(folders, "--ray")), "torchrun and --ray", "use one")
    if RAY:
        pytest.skip("Ray is installed")
    refused(medi_(*discover(folders, "--ray", "--classes", "2")), 'pip install "medi[ray]"')


@pytest.mark.slow
@pytest.mark.skipif(not RAY, reason="Ray is not installed: pip install 'medi[ray]'")
def test_ray_encodes_what_discover_and_assign_then_find(folders, medi_, monkeypatch):
    monkeypatch.setenv("MEDI_CACHE", str(folders / "cache"))
    result = medi_(*discover(folders, "--classes", "2", "--ray"))
    assert result.code == 0, result.err
    assert "2 shards of photos" in result.err
    assert "encoded again" not in result.err
    shutil.copytree(folders / "novel", folders / "new")
    words = ("assign", "--model", folders / "out", "--images", folders / "new", "--out", folders / "new.csv")
    assert medi_(*words, "--ray").code == 0
    by_ray = (folders / "new.csv").read_bytes()
    assert medi_(*words, "--force").code == 0
    assert (folders / "new.csv").read_bytes() == by_ray


def test_what_a_ray_worker_is_asked_for_and_what_it_answers(pool, monkeypatch):
    photos = pool.write(10)
    names = tuple(path.relative_to(photos).as_posix() for path in sorted(photos.rglob("*.png")))
    order = parallel_encoding.Order(str(photos), names, "means", "means-1", "cpu")
    for function in (parallel_encoding._encoder, parallel_encoding._cache):
        function.cache_clear()
    monkeypatch.setattr(parallel_encoding, "choose_encoder", lambda name, device: pool.encoder)
    assert json.loads(parallel_encoding.do(order.as_json())) == {"rows": [{"encoded": 10}]}
    assert json.loads(parallel_encoding.do(order.as_json())) == {"rows": [{"encoded": 0}]}, (
        "what is kept is not encoded again"
    )
    (fault,) = json.loads(parallel_encoding.do(replace(order, identity="means-2").as_json())).values()
    assert "means-2" in fault
    assert "same versions" in fault
    table(pool)
    assert pool.encoded() == 10, "the worker's features are found here"
    for function in (parallel_encoding._encoder, parallel_encoding._cache):
        function.cache_clear()
