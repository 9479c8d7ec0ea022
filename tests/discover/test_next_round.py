"""The whole loop: discover, say something, accept, discover again."""

import csv
import json

from people import rows_of

from medi.core.files import only_process
from medi.review.session import opened


def test_what_was_accepted_is_known_and_what_was_said_is_kept(folders, medi_):
    known, novel, out, table = (folders / name for name in ("known", "novel", "out", "new.csv"))
    words = ("discover", "--known", known, "--novel", novel, "--out", out, "--classes", 2, "--only-novel")
    assert medi_(*words).code == 0
    group_of = {row["path"]: row["cluster"] for row in rows_of(out / "clusters.csv")}
    blues = {path for path, group in group_of.items() if group == group_of["blues 0.png"]}
    accepted, other = group_of["blues 0.png"], group_of["greys 0.png"]
    with opened(out, "a test", learning=False) as review:
        review.act({"seq": review.history.seq, "action": "name", "group": int(other), "name": "not blue"})

    said = medi_("accept", out, "--into", known, "--doubtful", f"{accepted}=blues")
    assert said.code == 0
    assert f"{len(blues)} photos copied" in said.out
    assert {path.name for path in (known / "blues").iterdir()} == blues

    assert medi_("assign", "--model", out / "model", "--images", novel, "--out", table).code == 0
    named = [row for row in rows_of(table) if row["label"] == "blues"]
    assert {row["path"] for row in named} >= blues
    assert {row["kind"] for row in named} == {"known"}

    again = medi_(*words[:-3], "--force", "--classes", 1)
    assert again.code == 0, again.err
    assert {row["path"] for row in rows_of(out / "clusters.csv")} == group_of.keys() - blues
    facts = json.loads((out / "discovery.json").read_text())
    assert facts["already_known"] == dict.fromkeys(sorted(blues), "blues")
    assert facts["known_classes"] == 3
    assert facts["diagnostics"]["known_share"] == facts["kinds"]["known"] / facts["novel_photos"]
    with opened(out, "a test", learning=False) as review:
        assert list(review.history.state.names.values()) == ["not blue"]
    assert medi_("assign", "--model", out / "model", "--images", novel, "--out", table, "--force").code == 0


def test_a_pool_of_which_everything_was_accepted_is_refused_in_one_line(folders, medi_):
    words = ("--known", folders / "known", "--novel", folders / "novel", "--out", folders / "out")
    assert medi_("discover", *words, "--classes", 2, "--only-novel").code == 0
    assert medi_("accept", folders / "out", "--into", folders / "known", "0+1=everything", "--doubtful").code == 0
    said = medi_("discover", *words, "--force")
    assert said.code == 2
    assert "was accepted as a known one" in said.err.strip().splitlines()[-1]


def test_what_was_set_aside_stays_so_and_every_photo_of_every_round_is_exported(folders, medi_):
    known, novel, out = (folders / name for name in ("known", "novel", "out"))
    words = ("discover", "--known", known, "--novel", novel, "--out", out, "--classes")
    assert medi_(*words, 2, "--only-novel").code == 0
    everything = {row["path"]: row["cluster"] for row in rows_of(out / "clusters.csv")}
    blues = {path for path, group in everything.items() if group == everything["blues 0.png"]}
    aside, *_ = sorted(set(everything) - blues)
    with opened(out, "a test", learning=False) as review:
        items = [review.setting.paths.index(aside)]
        review.act({"seq": review.history.seq, "action": "move", "items": items, "group": None})
    assert medi_("accept", out, "--into", known, "--move", "--doubtful", f"{everything['blues 0.png']}=blues").code == 0
    journal = (out / "review.jsonl").read_bytes()
    assert medi_(*words, 1, "--only-novel", "--force").code == 0
    lines = {row["path"]: row for row in rows_of(out / "clusters.csv")}
    assert lines.keys() == everything.keys() - blues
    assert lines[aside]["kind"] == "alone"
    assert all(row["kind"] == "novel" for path, row in lines.items() if path != aside)
    assert (out / "rounds" / "1" / "review.jsonl").read_bytes() == journal

    assert medi_("export", out, "--format", "csv", "--out", folders / "all.csv").code == 0
    with (folders / "all.csv").open(encoding="utf-8-sig", newline="") as file:
        exported = {row["path"]: row for row in csv.DictReader(file)}
    assert exported.keys() == everything.keys()
    assert {path for path, row in exported.items() if row["label"] == "blues"} == blues
    assert {exported[path]["by"] for path in blues} == {"person"}
    assert (exported[aside]["kind"], exported[aside]["label"], exported[aside]["by"]) == ("alone", "", "person")
    assert {row["round"] for path, row in exported.items()} == {"1", "2"}
    assert medi_("export", out, "--format", "folders", "--out", folders / "sorted").code == 0
    assert {path.name for path in (folders / "sorted").rglob("*.png")} == everything.keys()
    listed = (out / "accepted.json").read_bytes()
    (out / "accepted.json").unlink()
    with opened(out, "a test", learning=False):
        assert json.loads((out / "accepted.json").read_bytes())["accepted"] == json.loads(listed)["accepted"]


def test_a_folder_in_use_is_refused_in_one_line_and_left_as_it_is(folders, medi_):
    out = folders / "out"
    words = ("discover", "--known", folders / "known", "--novel", folders / "novel", "--out", out, "--classes")
    assert medi_(*words, 2, "--only-novel").code == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name != ".lock"}
    for holder in ("medi review", "medi discover"):
        with only_process(out, holder):
            for said in (
                medi_(*words, 3, "--only-novel", "--force"),
                medi_("accept", out, "--into", folders / "known", "0=x"),
                medi_("export", out, "--format", "csv", "--out", out / "table.csv"),
            ):
                assert said.code == 2
                assert holder in said.err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name != ".lock"} == before
