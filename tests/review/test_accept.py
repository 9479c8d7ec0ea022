"""Named groups become known classes: nothing is overwritten, nothing gets out of the folder, all can be undone."""

import json
from pathlib import Path

import pytest
from reviews import act, made_up_review, toy_pool, write_discovery
from systems import posix

from medi.cli.accept import run_accept
from medi.core.errors import InputError
from medi.discover.accepted import read_accepted
from medi.discover.result import is_doubtful
from medi.review.accept import folder_name, refuse_mixed_spellings
from medi.review.acceptance import accept
from medi.review.actions import RefusedError
from medi.review.discovery_folder import read_folder
from medi.review.labelled import labelled


@pytest.fixture
def out(tmp_path) -> Path:
    return write_discovery(tmp_path, toy_pool())


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_groups_are_named_merged_and_copied_from_the_command_line(out, tmp_path):
    into = tmp_path / "known"
    accepted = run_accept(out, into, ["0=sea holly", "1+2=celosia"], doubtful=True)
    assert accepted == ({"sea holly": 6, "celosia": 9}, 0, 0, [])
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
    accept(review, None, tmp_path / "known")
    assert names_in(tmp_path / "known" / "aster") == ["011.jpg", "012.jpg", "013.jpg", "014.jpg"]
    assert names_in(tmp_path / "known" / "tulip") == ["017.jpg"]
    with pytest.raises(RefusedError, match="nothing new"):
        accept(review, None, tmp_path / "known")


def test_moved_photos_leave_the_pool_and_come_back_with_undo(tmp_path):
    review = made_up_review(tmp_path, learning=False)
    act(review, "name", group=2, name="aster")
    before = {path.name: path.read_bytes() for path in (tmp_path / "novel").iterdir()}
    accept(review, [2], tmp_path / "known", move=True)
    assert len(names_in(tmp_path / "novel")) == 15
    act(review, "undo")
    assert {path.name: path.read_bytes() for path in (tmp_path / "novel").iterdir()} == before
    assert not (tmp_path / "known" / "aster").exists()
    assert read_accepted(review.folder.path / "accepted.json")["accepted"] == []
    act(review, "redo")
    assert len(names_in(tmp_path / "novel")) == 15
    assert len(read_accepted(review.folder.path / "accepted.json")["accepted"]) == 4


def test_undo_leaves_alone_what_was_there_before_or_changed_since(tmp_path):
    review = made_up_review(tmp_path, learning=False)
    act(review, "name", group=2, name="aster")
    aster = tmp_path / "known" / "aster"
    aster.mkdir()
    (aster / "011.jpg").write_bytes((tmp_path / "novel" / "011.jpg").read_bytes())
    accept(review, [2], tmp_path / "known")
    (aster / "012.jpg").write_bytes(b"edited")
    act(review, "undo")
    assert names_in(aster) == ["011.jpg", "012.jpg"]


def test_nothing_is_overwritten(out, tmp_path):
    holly = tmp_path / "known" / "holly"
    holly.mkdir()
    (holly / "000.jpg").write_bytes(b"another photo")
    run_accept(out, tmp_path / "known", ["0=holly"], doubtful=True)
    assert (holly / "000.jpg").read_bytes() == b"another photo"
    assert (holly / "000-2.jpg").read_bytes() == (tmp_path / "novel" / "000.jpg").read_bytes()
    assert len(names_in(holly)) == 7


def test_photos_of_one_name_in_different_subfolders_all_arrive(tmp_path):
    pool = toy_pool()
    paths = [f"{number}/photo.jpg" for number in range(len(pool))]
    out = write_discovery(tmp_path, pool, paths=paths)
    run_accept(out, tmp_path / "known", ["0=holly"], doubtful=True)
    assert len(names_in(tmp_path / "known" / "holly")) == 6


@posix
def test_what_cannot_be_a_folder_is_refused_and_odd_names_are_taken():
    for name in ("", " ", "..", ".hidden", "../out", "a/b", "a\\b", "\x00", "x" * 256, "ü" * 150, " x", "a\nb", "."):
        with pytest.raises(InputError):
            folder_name(name)
    for name in ("sea holly", "<script>", "שלום", "花", "x" * 255, "a..b"):
        assert folder_name(name) == name


def test_a_bad_name_from_the_page_is_refused_when_it_is_accepted(tmp_path):
    review = made_up_review(tmp_path, learning=False)
    act(review, "name", group=0, name="../../escape")
    with pytest.raises(InputError, match="slash"):
        act(review, "accept")
    assert names_in(tmp_path / "known") == ["rose", "tulip"]
    assert review.history.seq == 1


@pytest.mark.parametrize(
    "groups", [[], ["0"], ["x=a"], ["0+=a"], ["0=../a"], ["0="], ["99=a"], ["0=a", "0+1=b"], ["0=" + "x" * 300]]
)
def test_faults_are_named_before_anything_happens(out, tmp_path, groups):
    with pytest.raises(InputError):
        run_accept(out, tmp_path / "known", groups, doubtful=True)
    assert names_in(tmp_path / "known") == ["rose", "tulip"]
    assert not (out / "review.jsonl").exists()


def test_a_missing_photo_stops_it_before_the_first_copy(out, tmp_path):
    (tmp_path / "novel" / "004.jpg").unlink()
    with pytest.raises(InputError, match=r"004\.jpg is gone"):
        run_accept(out, tmp_path / "known", ["0=holly"], move=True, doubtful=True)
    assert not (tmp_path / "known" / "holly").exists()
    assert len(names_in(tmp_path / "novel")) == 18


def test_names_that_differ_only_in_case_or_accents_are_refused_before_anything_happens(out, tmp_path):
    into = tmp_path / "into"
    with pytest.raises(InputError, match="one folder"):
        run_accept(out, into, ["0=Iris", "1=iris"], doubtful=True)
    assert not into.exists()
    (into / "Iris").mkdir(parents=True)
    with pytest.raises(InputError, match="one folder"):
        run_accept(out, into, ["0=iris"], doubtful=True)
    assert not names_in(into / "Iris")
    run_accept(out, into, ["0=Iris"], doubtful=True)
    assert len(names_in(into / "Iris")) == 6
    with pytest.raises(InputError, match="one folder"):
        refuse_mixed_spellings(["ros\u00e9"], there=["rose\u0301"])


def test_a_class_that_has_both_spellings_already_can_be_added_to(out, tmp_path):
    into = tmp_path / "into"
    (into / "Iris").mkdir(parents=True)
    (into / "iris").mkdir(exist_ok=True)
    if len(names_in(into)) == 1:
        pytest.skip("this file system takes both for one")
    run_accept(out, into, ["0=iris"], doubtful=True)
    assert len(names_in(into / "iris")) == 6


@posix
def test_a_name_that_windows_cannot_have_is_refused_there(monkeypatch):
    assert folder_name("CON") == "CON"
    monkeypatch.setattr("sys.platform", "win32")
    with pytest.raises(InputError, match=r"“CON” cannot .* Windows has a device of that name"):
        folder_name("CON")


def test_known_classes_cannot_lie_in_the_pool(out, tmp_path):
    with pytest.raises(InputError, match="inside the pool"):
        run_accept(out, tmp_path / "novel" / "known", ["0=holly"], doubtful=True)


def test_earlier_rounds_stay_on_the_list(out, tmp_path):
    earlier = {"path": "x.jpg", "sha256": "0" * 64, "name": "old", "group": 3, "file": "y", "discovery": "before"}
    (out / "accepted.json").write_text(
        json.dumps({"accepted": [earlier], "groups": {"3": "old"}, "discovery": "before"})
    )
    run_accept(out, tmp_path / "known", ["0=holly"], doubtful=True)
    facts = read_accepted(out / "accepted.json")
    assert earlier in facts["accepted"]
    assert len(facts["accepted"]) == 7
    assert facts["groups"] == {"0": "holly"}


@pytest.mark.parametrize("groups", [["0=holly"], ["0+1=holly"], ["0=holly", "1+2=celosia"]])
def test_doubtful_photos_stay_out_however_often_it_is_repeated_until_they_are_asked_for(tmp_path, groups):
    out = write_discovery(tmp_path, toy_pool((8, 7, 6)))
    start, into = read_folder(out).start, tmp_path / "known"
    named = {int(number) for text in groups for number in text.partition("=")[0].split("+")}
    items = [item for item, group in enumerate(start.groups) if group in named]
    doubtful = {start.paths[item] for item in items if is_doubtful(start.confidence[item])}
    assert 0 < len(doubtful) < len(items)

    def there() -> set[str]:
        return {path.name for name in ("holly", "celosia") for path in (into / name).glob("*")}

    for round in range(3):
        accepted = run_accept(out, into, groups)
        assert accepted.doubtful == len(doubtful)
        assert sum(accepted.now.values()) == (0 if round else len(items) - len(doubtful))
        assert there() == {start.paths[item] for item in items} - doubtful
    reviewed = {photo.path for photo in labelled(out) if photo.reviewed}
    assert reviewed == there(), "what nobody looked at is not confirmed by a name"
    assert sum(run_accept(out, into, groups, doubtful=True).now.values()) == len(doubtful)
    assert there() == {start.paths[item] for item in items}


def test_what_a_person_confirmed_on_the_page_is_no_longer_doubtful(tmp_path):
    review = made_up_review(tmp_path, learning=False)
    state = review.history.state
    low = [item for item in state.members[0] if is_doubtful(state.confidence[item])]
    act(review, "name", group=0, name="holly", items=[item for item in state.members[0] if item not in low])
    assert accept(review, [0], tmp_path / "known").doubtful == len(low) > 0
    with pytest.raises(RefusedError, match="doubtful"):
        accept(review, [0], tmp_path / "known")
    act(review, "confirm", items=low)
    assert accept(review, [0], tmp_path / "known") == ({"holly": len(low)}, 6 - len(low), 0, [])


def test_a_photo_that_another_known_class_has_is_not_put_there_twice(out, tmp_path):
    into, novel = tmp_path / "known", tmp_path / "novel"
    (into / "rose" / "mine.jpg").write_bytes((novel / "002.jpg").read_bytes())
    (novel / "007.jpg").write_bytes((novel / "001.jpg").read_bytes())  # of another group
    accepted = run_accept(out, into, ["0=holly", "1=aster"], doubtful=True)
    assert accepted.now == {"holly": 5, "aster": 4}
    rose, holly = str(into / "rose" / "mine.jpg"), str(into / "holly" / "001.jpg")
    assert accepted.elsewhere == [("002.jpg", rose), ("007.jpg", holly)]
    contents = [path.read_bytes() for path in into.rglob("*.jpg")]
    assert len(contents) == len(set(contents)) == 10
    with pytest.raises(InputError, match="mine"):
        run_accept(out, into, ["0=holly"], doubtful=True)
    Path(rose).unlink()
    assert run_accept(out, into, ["0=holly"], doubtful=True).now == {"holly": 1}
