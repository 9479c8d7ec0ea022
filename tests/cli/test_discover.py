"""`medi discover` and `medi assign` on folders as people have them, good and bad."""

import os
import shlex
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from people import PALETTES, discover, facts_of, program, refused, rows_of, tinted
from pictures import bomb, noise, truncated
from processes import end, start
from systems import SIGKILL, disk_of

from medi.discover import output, run
from medi.methods import teacher
from medi.methods.cata_views import ViewsConfig
from medi.photos import encode_folder
from medi.report import page


def test_photos_are_grouped_and_everything_is_written(folders, medi_):
    result = medi_(*discover(folders, "--classes", "2", "--export"))
    assert result.code == 0, result.err
    out = folders / "out"
    rows = rows_of(out / "clusters.csv")
    assert list(rows[0]) == ["path", "kind", "cluster", "known", "confidence", "nearest_known"]
    assert [row["path"] for row in rows] == sorted(path.name for path in (folders / "novel").iterdir())
    assert len({(row["path"].split()[0], row["cluster"]) for row in rows}) == 2  # blue and grey told apart
    assert all((row["kind"], row["known"]) == ("novel", "") for row in rows)
    assert all(0 <= float(row["confidence"]) <= 0.5 for row in rows), "two known classes rehearse nothing"
    assert {row["nearest_known"] for row in rows} <= {"reds", "greens"}
    for row in rows:
        copy = out / "groups" / row["cluster"] / row["path"]
        assert copy.read_bytes() == (folders / "novel" / row["path"]).read_bytes()
    facts = facts_of(folders)
    assert facts["n_classes"] == 2
    assert facts["seed"] == 0
    assert facts["arguments"]["classes"] == 2
    assert {"medi", "torch", "python"} <= set(facts["versions"])
    assert facts["skipped"] == []
    assert "<html" in (out / "report.html").read_text()
    assert sorted(path.name for path in out.iterdir()) == [
        *("clusters.csv", "discovery.json", "groups", "model", "report.html")
    ]
    assert "2 groups in 8 pictures" in result.out
    assert str(out / "report.html") in result.out


def test_known_photos_and_one_offs_among_the_novel_ones_are_told_apart(folders, medi_):
    for i in range(3):
        tinted(folders / "novel" / f"reds {i}.png", PALETTES["reds"], 900 + i)
    noise(folders / "novel" / "odd.png", seed=7)
    result = medi_(*discover(folders, "--export"))
    assert result.code == 0, result.err
    rows, facts = rows_of(folders / "out" / "clusters.csv"), facts_of(folders)
    for row in rows:
        assert (row["kind"] == "novel") == (row["cluster"] != "")
        assert (row["kind"] == "known") == (row["known"] != "")
        copies = list((folders / "out" / "groups").rglob(row["path"])) if (folders / "out" / "groups").exists() else []
        assert len(copies) == (row["kind"] == "novel"), "only groups are exported"
    kinds = [row["kind"] for row in rows]
    assert facts["kinds"] == {kind: kinds.count(kind) for kind in ("novel", "known", "alone")}
    assert sum(facts["known_photos_found"].values()) == kinds.count("known")
    assert facts["alone"] == kinds.count("alone")
    assert facts["n_classes"] == len({row["cluster"] for row in rows} - {""})
    assert "--only-novel" not in facts["command"]


def test_the_command_in_the_report_does_the_same_again(folders, medi_):
    assert medi_(*discover(folders, "--classes", "3", "--seed", "5")).code == 0
    first = (folders / "out" / "clusters.csv").read_bytes()
    words = shlex.split(facts_of(folders)["command"])
    assert words[0] == "medi"
    assert medi_(*words[1:], "--force").code == 0
    assert (folders / "out" / "clusters.csv").read_bytes() == first


def test_bad_files_are_skipped_listed_with_the_reason_and_counted(folders, medi_):
    novel = folders / "novel"
    truncated(novel / "half.jpg")
    (novel / "empty.jpg").touch()
    (novel / "text.jpg").write_text("this is a letter")
    bomb(novel / "bomb.png")
    (novel / "film.heic").write_bytes(b"x")
    (novel / "loop").symlink_to(novel)
    (folders / "known" / "stray.png").write_bytes((novel / "blues 0.png").read_bytes())
    result = medi_(*discover(folders, "--classes", "2"))
    assert result.code == 0, result.err
    paths = {row["path"] for row in rows_of(folders / "out" / "clusters.csv")}
    assert len(paths) == 8
    reasons = {Path(item["path"]).name: item["reason"] for item in facts_of(folders)["skipped"]}
    assert set(reasons) == {"half.jpg", "empty.jpg", "text.jpg", "bomb.png", "film.heic", "loop", "stray.png"}
    assert "damaged" in reasons["half.jpg"]
    assert "empty" in reasons["empty.jpg"]
    assert reasons["text.jpg"] == "not an image"
    assert "pixels" in reasons["bomb.png"]
    assert "folder of a class" in reasons["stray.png"]
    assert "7 files were skipped" in result.err


def test_any_name_survives_into_table_and_groups(folders, medi_):
    names = ["with space.png", "line\nbreak.png", "ünï 🦊.png", 'a,"b".png', "-x.png", "sub/deep/same.png", "same.png"]
    for seed, name in enumerate(names):
        noise(folders / "novel" / name, seed=seed)
    noise(folders / "known" / "日本\nclass" / "a.png", seed=50)
    not_unicode = os.fsdecode(b"\xff\xfe.png")
    with suppress(OSError):  # some file systems have only unicode names
        shutil.copy(folders / "novel" / "with space.png", folders / "novel" / not_unicode)
        names.append(not_unicode)
    assert medi_(*discover(folders, "--classes", "2", "--export", "--only-novel", "--json")).code == 0
    rows = rows_of(folders / "out" / "clusters.csv")
    assert set(names) <= {row["path"] for row in rows}
    for row in rows:
        assert (folders / "out" / "groups" / row["cluster"] / row["path"]).is_file()


def test_the_same_photo_in_both_folders_is_called_known_and_warned_of(folders, medi_):
    shutil.copy(folders / "known" / "reds" / "0.png", folders / "novel" / "copy.png")
    shutil.copy(folders / "known" / "reds" / "1.png", folders / "known" / "greens" / "other.png")
    result = medi_(*discover(folders, "--classes", "2"))
    assert result.code == 0
    facts = facts_of(folders)
    assert {row["path"]: row["known"] for row in rows_of(folders / "out" / "clusters.csv")}["copy.png"] == "reds"
    assert facts["known_photos_found"]["reds"] >= 1
    warnings = facts["warnings"]
    assert any("known and in novel: copy.png (reds)" in warning for warning in warnings)
    assert any("two known classes" in warning for warning in warnings)
    assert "copy.png" in result.err


def test_classes_with_few_photos_or_none_are_named_and_used_as_far_as_they_go(folders, medi_):
    known = folders / "known"
    shutil.rmtree(known / "greens")
    for name in ("blank", "notes", "nested/deeper", ".hidden", "broken"):
        (known / name).mkdir(parents=True)
    (known / "notes" / "readme.txt").write_text("nothing yet")
    (known / "broken" / "a.jpg").write_text("text")
    (known / "again").symlink_to(known / "reds")  # listed as skipped, with the reason
    assert medi_(*discover(folders, "--classes", "2")).code == 0
    facts = facts_of(folders)
    empty, broken = facts["warnings"]
    assert "blank, nested, notes" in empty
    assert "broken" in broken
    assert facts["known_classes"] == 1
    tinted(known / "lonely" / "a.png", (10, 200, 200), 77)
    assert medi_(*discover(folders, "--classes", "2", "--force")).code == 0
    assert "lonely" in facts_of(folders)["warnings"][-1]
    assert facts_of(folders)["known_classes"] == 2


@pytest.mark.parametrize("classes", ["auto", "2"])
def test_novel_photos_that_are_all_the_same_are_no_accident(folders, medi_, classes):
    shutil.rmtree(folders / "novel")
    photo = tinted(folders / "novel" / "a.png", (40, 40, 200), 1)
    for name in "bcdef":
        shutil.copy(photo, photo.with_name(f"{name}.png"))
    assert medi_(*discover(folders, "--classes", classes)).code == 0
    facts = facts_of(folders)
    assert facts["n_classes"] == 1, "copies of a photo get the same answer"
    assert any("copies of others" in warning for warning in facts["warnings"])


def test_one_novel_photo_is_alone_or_one_group_where_all_are_new(folders, medi_):
    shutil.rmtree(folders / "novel")
    tinted(folders / "novel" / "a.png", (40, 40, 200), 1)
    result = medi_(*discover(folders))
    assert result.code == 0, result.err
    assert (facts_of(folders)["n_classes"], facts_of(folders)["kinds"]["alone"]) == (0, 1)
    assert "<html" in (folders / "out" / "report.html").read_text()
    words = ("assign", "--model", folders / "out", "--images", folders / "novel", "--out", folders / "new.csv")
    assert medi_(*words).code == 0
    assert medi_(*discover(folders, "--only-novel", out="second")).code == 0
    assert facts_of(folders, "second")["n_classes"] == 1


def test_more_groups_than_photos_are_refused_with_both_numbers(folders, medi_):
    refused(medi_(*discover(folders, "--classes", "9")), "--classes 9", "8 photos")
    assert not (folders / "out").exists()
    for bad in ("0", "-1", "two", "1.5", "²", "9" * 30):
        refused(medi_(*discover(folders, f"--classes={bad}")), "--classes")
    (folders / "novel" / "greys 0.png").write_text("broken meanwhile")
    refused(medi_(*discover(folders, "--classes", "8")), "--classes 8", "7 photos")


def test_empty_folders_and_absent_ones_are_named(folders, medi_):
    empty = folders / "empty"
    empty.mkdir()
    for known, novel, *parts in (
        (empty, folders / "novel", "--known", empty, "<class name>"),
        (folders / "known", empty, "--novel", empty),
        (folders / "nowhere", folders / "novel", "--known", "nowhere"),
        (folders / "known", folders / "nowhere", "--novel", "nowhere"),
        (folders / "novel", folders / "known", "none in a folder"),
        (folders / "known", folders / "known", "both"),
        (folders / "known", folders / "known" / "reds", "lies inside"),
        (folders, folders / "novel", "lies inside"),
    ):
        refused(medi_("discover", "--known", known, "--novel", novel, "--out", folders / "out"), *parts)
    assert not (folders / "out").exists()


def test_names_that_do_not_exist_are_refused_before_anything_is_read(folders, medi_):
    for option, value, part in (
        ("--method", "pm", "unknown method 'pm'"),
        ("--encoder", "resnet19", "unknown encoder 'resnet19'"),
        ("--device", "gpu", "gpu"),
        ("--encoder", folders / "known", "no model"),
        ("--seed", "-1", "--seed"),
    ):
        refused(medi_(*discover(folders, option, value)), part)
    assert not (folders / "out").exists()


def test_a_finished_folder_is_kept_unless_it_is_forced(folders, medi_):
    assert medi_(*discover(folders, "--classes", "2", "--export")).code == 0
    before = (folders / "out" / "clusters.csv").read_bytes()
    refused(medi_(*discover(folders, "--classes", "3")), folders / "out", "--force")
    assert (folders / "out" / "clusters.csv").read_bytes() == before
    mine = folders / "out" / "groups" / "my animals"
    (folders / "out" / "groups" / "1").rename(mine)
    (folders / "out" / "groups" / "0" / "notes.txt").write_text("mine")
    (folders / "out" / "other.txt").write_text("mine as well")
    kept = len(list(mine.iterdir()))
    assert medi_(*discover(folders, "--classes", "3", "--force")).code == 0
    assert facts_of(folders)["n_classes"] == 3
    # The program's own copies are gone; what a person renamed, sorted or added is not.
    assert len(list(mine.iterdir())) == kept
    assert [path.name for path in (folders / "out" / "groups" / "0").iterdir()] == ["notes.txt"]
    assert (folders / "out" / "other.txt").read_text() == "mine as well"


def test_a_folder_with_other_things_in_it_is_refused(folders, medi_):
    (folders / "out").mkdir()
    (folders / "out" / "thesis.tex").write_text("mine")
    refused(medi_(*discover(folders)), folders / "out", "other files")
    refused(medi_(*discover(folders, out="novel/inside")), "lies inside")
    (folders / "file").write_text("in the way")
    refused(medi_(*discover(folders, out="file")), "file", "in the way")
    refused(medi_(*discover(folders, out="file/out")), "file", "in the way")


@pytest.mark.skipif(not Path("/proc/1").exists(), reason="needs a folder that nobody may write to")
def test_a_folder_that_cannot_be_written_to_is_named(folders, medi_):
    words = ("discover", "--known", folders / "known", "--novel", folders / "novel", "--out", "/proc/1/medi-out")
    refused(medi_(*words), "/proc/1/medi-out")


@pytest.fixture
def tiny_disk(tmp_path):
    with disk_of("64k", tmp_path / "disk") as disk:
        yield disk


def test_a_full_disk_is_named_and_what_was_done_is_not_lost(folders, tiny_disk, medi_):
    result = medi_(*discover(folders, "--classes", "2", out="disk/out"))
    assert result.code == 2
    assert "no space left on device; free some space" in result.err.splitlines()[-1]
    assert "Traceback" not in result.err
    assert not list(tiny_disk.rglob(".*.tmp"))
    assert not (tiny_disk / "out" / "discovery.json").exists()


def test_a_full_disk_for_features_costs_only_time(folders, tiny_disk, medi_, monkeypatch):
    monkeypatch.setenv("MEDI_CACHE", str(tiny_disk))
    (tiny_disk / "filler").write_bytes(bytes(50_000))
    result = medi_(*discover(folders, "--classes", "2"))
    assert result.code == 0, result.err
    assert result.err.count("not kept for next time") == 1


STAGES = {
    "model": (run, "save_model"),
    "clusters": (output, "write_clusters"),
    "groups": (output, "export"),
    "report": (page, "render"),
    "discovery": (output, "finish"),
}


def stop(*_, **__):
    raise KeyboardInterrupt


def says_how_to_go_on(stderr):
    """Whether the last line does, and nothing is printed that only programmers read."""
    last = stderr.splitlines()[-1]
    return last.startswith("medi: stopped; ") and "repeat the command to go on" in last and "Traceback" not in stderr


@pytest.mark.parametrize("stage", STAGES)
def test_ctrl_c_at_any_stage_is_continued_by_the_same_command(folders, medi_, monkeypatch, stage):
    with monkeypatch.context() as patch:
        patch.setattr(*STAGES[stage], stop)
        result = medi_(*discover(folders, "--classes", "2", "--export"))
    assert result.code == 130
    assert says_how_to_go_on(result.err)
    assert [path.name for path in (folders / "out").iterdir()] == ["unfinished"]
    assert medi_(*discover(folders, "--classes", "2", "--export")).code == 0
    assert medi_(*discover(folders, "--classes", "2", "--export", out="fresh")).code == 0
    for name in ("clusters.csv", "model/recogniser.safetensors"):
        assert (folders / "out" / name).read_bytes() == (folders / "fresh" / name).read_bytes()
    assert not (folders / "out" / "unfinished").exists()


@pytest.mark.parametrize("earlier", [False, True])
def test_a_stopped_run_or_replacement_goes_on_with_other_arguments_only_where_forced(
    folders, medi_, monkeypatch, earlier
):
    if earlier:
        assert medi_(*discover(folders, "--classes", "2")).code == 0
    force = ["--force"] * earlier
    with monkeypatch.context() as patch:
        patch.setattr(page, "render", stop)
        assert medi_(*discover(folders, "--classes", "4" if earlier else "2", *force)).code == 130
    words = ("finished discovery",) if earlier else ("unfinished", "other arguments")
    refused(medi_(*discover(folders, "--classes", "3")), *words, "--force")
    assert not earlier or facts_of(folders)["n_classes"] == 2
    assert medi_(*discover(folders, "--classes", "3", "--force")).code == 0
    assert facts_of(folders)["n_classes"] == 3
    assert not (folders / "out" / "unfinished").exists()


def test_a_mistake_seen_early_does_not_block_the_folder(folders, medi_):
    for photo in (folders / "novel").iterdir():
        photo.rename(photo.with_suffix(".bak"))
        photo.write_text("not a photo")
    refused(medi_(*discover(folders)), "none of the 8", "not an image")
    for photo in (folders / "novel").glob("*.bak"):
        photo.rename(photo.with_suffix(".png"))
    assert medi_(*discover(folders, "--classes", "2")).code == 0


def test_a_file_that_a_person_put_in_the_place_of_a_copy_stays(folders, medi_):
    assert medi_(*discover(folders, "--classes", "2")).code == 0
    row = rows_of(folders / "out" / "clusters.csv")[0]
    mine = folders / "out" / "groups" / row["cluster"] / row["path"]
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    for more in ("--export", "--export", "--json"):
        assert medi_(*discover(folders, "--classes", "2", "--force", more)).code == 0
        assert mine.read_text() == "mine"
        assert len(facts_of(folders).get("exported", range(7))) == 7
    assert list((folders / "out" / "groups").rglob("*.png")) == [mine], "the program's own copies are gone"


@pytest.mark.parametrize("encoder", ["efficientnet-lite0", "conv4"])
def test_every_photo_is_decoded_once_for_its_features_and_the_report(folders, medi_, monkeypatch, encoder):
    monkeypatch.setenv("MEDI_CACHE", str(folders / "cache"))
    decoded, real = [], encode_folder.read_photo

    def noting(file, *more, **options):
        decoded.append(Path(file.name).relative_to(folders).as_posix())
        return real(file, *more, **options)

    monkeypatch.setattr(encode_folder, "read_photo", noting)
    photos = sorted(path.relative_to(folders).as_posix() for path in folders.rglob("*.png"))
    words = ("--encoder", encoder, "--method", "kmeans")
    assert medi_(*discover(folders, "--classes", "2", *words)).code == 0
    assert sorted(decoded) == photos
    assert (folders / "out" / "report.html").read_text().count("data:image/jpeg") >= 8
    assert medi_(*discover(folders, "--classes", "3", "--force", *words)).code == 0
    assert len(decoded) == len(photos), "and not again by the next run"


@pytest.mark.parametrize("method", ["medi", "mp"])
def test_a_network_learns_from_three_photos_a_class_and_recognises_new_ones(folders, medi_, monkeypatch, method):
    """MP's own settings for a CPU ask for five queries of a class."""
    real = teacher._adjusted
    monkeypatch.setattr(teacher, "_adjusted", lambda settings, network, _: real(settings, network, 3))
    monkeypatch.setattr(ViewsConfig, "presets", {"default": {}, "cpu": {"schedule": {"steps": 2}}})
    result = medi_(*discover(folders, "--classes", "2", "--encoder", "conv4", "--method", method))
    assert result.code == 0, result.err
    assert facts_of(folders)["representation"]["used"] == f"conv4 trained by {method}"
    words = ("assign", "--model", folders / "out", "--images", folders / "novel", "--out", folders / "new.csv")
    assert medi_(*words).code == 0
    found = {row["path"]: row["cluster"] for row in rows_of(folders / "out" / "clusters.csv")}
    again = {row["path"]: row for row in rows_of(folders / "new.csv")}
    assert found.keys() == again.keys()
    assert all(row["label"] == found[path] for path, row in again.items() if row["kind"] == "novel")


def contents(out):
    """The files of finished results, and what is in them."""
    found = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    return {name: content for name, content in found.items() if not name.startswith(("unfinished/", ".lock"))}


@pytest.mark.parametrize("number", [signal.SIGINT, SIGKILL])
@pytest.mark.parametrize("busy", ["choose_encoder", "encode_together", "discover_groups", "save_model", "render"])
def test_a_replacement_stopped_by_a_signal_leaves_the_earlier_results(folders, medi_, monkeypatch, number, busy):
    assert medi_(*discover(folders, "--classes", "2", "--export")).code == 0
    before = contents(folders / "out")

    def wait(*_, **__):
        (folders / "waiting").touch()
        time.sleep(60)

    with monkeypatch.context() as patch:
        patch.setattr(page if busy == "render" else run, busy, wait)
        process = start(program, discover(folders, "--classes", "3", "--export", "--force"), folders)
        while not (folders / "waiting").exists():
            assert process.is_alive()
            time.sleep(0.01)
        os.kill(process.pid, number)
        assert end(process) == (130 if number == signal.SIGINT else -number)
    if number == signal.SIGINT:
        assert says_how_to_go_on((folders / "stderr").read_text())
    assert contents(folders / "out") == before
    assert medi_(*discover(folders, "--classes", "3", "--export", "--force")).code == 0
    assert facts_of(folders)["n_classes"] == 3
    assert not (folders / "out" / "unfinished").exists()


def test_what_a_killed_process_left_half_written_is_never_read(folders, medi_):
    assert medi_(*discover(folders, "--classes", "2")).code == 0
    unfinished = folders / "out" / "unfinished"
    (unfinished / "results").mkdir(parents=True)
    (unfinished / "arguments.json").write_text("{half")
    (unfinished / "results" / ".discovery.json.123.tmp").write_text("{half")
    before = contents(folders / "out")
    refused(medi_(*discover(folders, "--classes", "3")), "finished discovery")
    (folders / "out" / "discovery.json").unlink()
    refused(medi_(*discover(folders, "--classes", "2")), "unfinished discovery")
    assert contents(folders / "out").items() < before.items()
    assert medi_(*discover(folders, "--classes", "3", "--force")).code == 0
    assert facts_of(folders)["n_classes"] == 3
    assert not unfinished.exists()
