"""Named groups become known classes: nothing is overwritten, nothing gets out of the folder, all can be undone."""

import json
from pathlib import Path

import pytest
from reviews import act, made_up_review, toy_pool, write_discovery
from systems import posix

from medi.errors import InputError
from medi.review.accept import folder_name, read_list, refuse_mixed_spellings
from medi.review.accept_command import run_accept
from medi.review.requests import RefusedError


@pytest.fixture
def out(tmp_path) -> Path:
    return write_discovery(tmp_path, toy_pool())


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_groups_are_named_merged_and_copied_from_the_command_line(out, tmp_path):
    into = tmp_path / "known"
    lines = run_accept(out, into, ["0=sea holly", "1+2=celosia"], move=False)
    assert [line.split(" to ")[0] for line in lines] == ["9 photos copied", "6 photos copied"]
    assert names_in(into / "sea holly") == [f"{n:03}.jpg" for n in range(6)]
    assert names_in(into / "celosia") == [f"{n:03}.jpg" for n in range(6, 15)]
    assert len(names_in(tmp_path / "novel")) == 19
    facts = json.loads((out / "accepted.json").read_text())
    assert facts["groups"] == {"0": "sea holly", "1": "celosia"}
    assert {entry["path"]: entry["name"] for entry in facts["accepted"]}["007.jpg"] == "celosia"
    for entry in facts["accepted"]:
        assert len(entry["sha256"]) == 64
        assert Path(entry["file"]).read_bytes() == (tmp_path / "novel" / entry["path"]).read_bytes()
    actions = [json.loads(line)["action"] for line in (out / "review.jsonl").open()]
    assert actions == ["name", "merge", "name", "accept"]


def test_without_groups_all_named_ones_and_marked_photos_are_accepted(tmp_path):
    review = made_up_review(tmp_path, learning=False)
    act(review, "name", group=2, name="aster")
    act(review, "known", items=[17], name="tulip")
    review.accept(None, tmp_path / "known", move=False)
    assert names_in(tmp_path / "known" / "aster") == ["011.jpg", "012.jpg", "013.jpg", "014.jpg"]
    assert names_in(tmp_path / "known" / "tulip") == ["017.jpg"]
    with pytest.raises(RefusedError, match="nothing new"):
        review.accept(None, tmp_path / "known", move=False)


def test_moved_photos_leave_the_pool_and_come_back_with_undo(tmp_path):
    review = made_up_review(tmp_path, learning=False)
    act(review, "name", group=2, name="aster")
    before = {path.name: path.read_bytes() for path in (tmp_path / "novel").iterdir()}
    review.accept([2], tmp_path / "known", move=True)
    assert len(names_in(tmp_path / "novel")) == 15
    act(review, "undo")
    assert {path.name: path.read_bytes() for path in (tmp_path / "novel").iterdir()} == before
    assert not (tmp_path / "known" / "aster").exists()
    assert read_list(review.folder.path / "accepted.json")["accepted"] == []
    act(review, "redo")
    assert len(names_in(tmp_path / "novel")) == 15
    assert len(read_list(review.folder.path / "accepted.json")["accepted"]) == 4


def test_undo_leaves_alone_what_was_there_before_or_changed_since(tmp_path):
    review = made_up_review(tmp_path, learning=False)
    act(review, "name", group=2, name="aster")
    aster = tmp_path / "known" / "aster"
    aster.mkdir()
    (aster / "011.jpg").write_bytes((tmp_path / "novel" / "011.jpg").read_bytes())
    review.accept([2], tmp_path / "known", move=False)
    (aster / "012.jpg").write_bytes(b"edited")
    act(review, "undo")
    assert names_in(aster) == ["011.jpg", "012.jpg"]


def test_nothing_is_overwritten(out, tmp_path):
    holly = tmp_path / "known" / "holly"
    holly.mkdir()
    (holly / "000.jpg").write_bytes(b"another photo")
    run_accept(out, tmp_path / "known", ["0=holly"], move=False)
    assert (holly / "000.jpg").read_bytes() == b"another photo"
    assert (holly / "000-2.jpg").read_bytes() == (tmp_path / "novel" / "000.jpg").read_bytes()
    assert len(names_in(holly)) == 7


def test_photos_of_one_name_in_different_subfolders_all_arrive(tmp_path):
    pool = toy_pool()
    paths = [f"{number}/photo.jpg" for number in range(len(pool))]
    out = write_discovery(tmp_path, pool, paths=paths)
    run_accept(out, tmp_path / "known", ["0=holly"], move=False)
    assert len(names_in(tmp_path / "known" / "holly")) == 6


@pytest.mark.parametrize(
    "name", ["", " ", "..", ".hidden", "../out", "a/b", "a\\b", "\x00", "x" * 256, "ü" * 150, " x", "a\nb", "."]
)
def test_what_cannot_be_a_folder_is_refused(name):
    with pytest.raises(InputError, match="cannot be the name of a folder"):
        folder_name(name)


@posix
@pytest.mark.parametrize("name", ["sea holly", "<script>", "שלום", "花", "x" * 255, "a..b"])
def test_ordinary_and_odd_names_are_folders(name):
    assert folder_name(name) == name


def test_a_bad_name_from_the_page_is_refused_when_it_is_accepted(tmp_path):
    review = made_up_review(tmp_path, learning=False)
    act(review, "name", group=0, name="../../escape")
    with pytest.raises(InputError, match="slash"):
        act(review, "accept")
    assert names_in(tmp_path / "known") == ["rose", "tulip"]
    assert review.history.seq == 1


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "no group of .* has a name"),
        (["0"], "names no group"),
        (["x=a"], "names no group"),
        (["0+=a"], "names no group"),
        (["0=../a"], "cannot be the name of a folder"),
        (["0="], "cannot be the name of a folder"),
        (["99=a"], "has no group 99: its groups are 0, 1, 2"),
        (["0=a", "0+1=b"], "group 0 is named twice"),
        (["0=" + "x" * 300], "at most 200 characters"),
    ],
)
def test_faults_are_named_before_anything_happens(out, tmp_path, groups, message):
    with pytest.raises(InputError, match=message):
        run_accept(out, tmp_path / "known", groups, move=False)
    assert names_in(tmp_path / "known") == ["rose", "tulip"]
    assert not (out / "review.jsonl").exists()


def test_a_missing_photo_stops_it_before_the_first_copy(out, tmp_path):
    (tmp_path / "novel" / "004.jpg").unlink()
    with pytest.raises(InputError, match=r"004\.jpg is gone"):
        run_accept(out, tmp_path / "known", ["0=holly"], move=True)
    assert not (tmp_path / "known" / "holly").exists()
    assert len(names_in(tmp_path / "novel")) == 18


def test_names_that_differ_only_in_case_or_accents_are_refused_before_anything_happens(out, tmp_path):
    into = tmp_path / "into"
    with pytest.raises(InputError, match="are one folder on macOS and Windows"):
        run_accept(out, into, ["0=Iris", "1=iris"], move=False)
    assert not into.exists()
    (into / "Iris").mkdir(parents=True)
    with pytest.raises(InputError, match="“iris” and “Iris” are one folder"):
        run_accept(out, into, ["0=iris"], move=False)
    assert not names_in(into / "Iris")
    run_accept(out, into, ["0=Iris"], move=False)
    assert len(names_in(into / "Iris")) == 6


def test_a_folder_named_with_composed_accents_is_the_same_as_one_without():
    with pytest.raises(InputError, match="are one folder"):
        refuse_mixed_spellings(["ros\u00e9"], there=["rose\u0301"])


def test_a_class_that_has_both_spellings_already_can_be_added_to(out, tmp_path):
    into = tmp_path / "into"
    (into / "Iris").mkdir(parents=True)
    (into / "iris").mkdir(exist_ok=True)
    if len(names_in(into)) == 1:
        pytest.skip("this file system takes both for one")
    run_accept(out, into, ["0=iris"], move=False)
    assert len(names_in(into / "iris")) == 6


@posix
def test_a_name_that_windows_cannot_have_is_refused_there(monkeypatch):
    assert folder_name("CON") == "CON"
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(InputError, match=r"“CON” cannot .* Windows has a device of that name"):
        folder_name("CON")


def test_known_classes_cannot_lie_in_the_pool(out, tmp_path):
    with pytest.raises(InputError, match="inside the pool"):
        run_accept(out, tmp_path / "novel" / "known", ["0=holly"], move=False)


def test_earlier_rounds_stay_on_the_list(out, tmp_path):
    earlier = {"path": "x.jpg", "sha256": "0" * 64, "name": "old", "group": 3, "file": "y", "discovery": "before"}
    (out / "accepted.json").write_text(json.dumps({"accepted": [earlier], "groups": {"3": "old"}}))
    run_accept(out, tmp_path / "known", ["0=holly"], move=False)
    facts = read_list(out / "accepted.json")
    assert earlier in facts["accepted"]
    assert len(facts["accepted"]) == 7
    assert facts["groups"] == {"0": "holly"}
