"""The whole loop: discover, say something, accept, discover again."""

import csv
import json

from medi.review.session import opened


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_what_was_accepted_is_known_and_what_was_said_is_kept(folders, medi_):
    known, novel, out, table = (folders / name for name in ("known", "novel", "out", "new.csv"))
    words = ("discover", "--known", known, "--novel", novel, "--out", out, "--classes", 2, "--only-novel")
    assert medi_(*words).code == 0
    group_of = {row["path"]: row["cluster"] for row in rows(out / "clusters.csv")}
    blues = {path for path, group in group_of.items() if group == group_of["blues 0.png"]}
    accepted, other = group_of["blues 0.png"], group_of["greys 0.png"]
    with opened(out, learning=False) as review:
        review.act({"seq": review.history.seq, "action": "name", "group": int(other), "name": "not blue"})

    said = medi_("accept", out, "--into", known, f"{accepted}=blues")
    assert said.code == 0
    assert f"{len(blues)} photos copied" in said.out
    assert {path.name for path in (known / "blues").iterdir()} == blues

    assert medi_("assign", "--model", out / "model", "--images", novel, "--out", table).code == 0
    named = [row for row in rows(table) if row["label"] == "blues"]
    assert {row["path"] for row in named} >= blues
    assert {row["kind"] for row in named} == {"known"}

    again = medi_(*words[:-3], "--force", "--classes", 1)
    assert again.code == 0, again.err
    assert {row["path"] for row in rows(out / "clusters.csv")} == group_of.keys() - blues
    facts = json.loads((out / "discovery.json").read_text())
    assert facts["already_known"] == dict.fromkeys(sorted(blues), "blues")
    assert facts["known_classes"] == 3
    with opened(out, learning=False) as review:
        assert list(review.history.state.names.values()) == ["not blue"]
    assert medi_("assign", "--model", out / "model", "--images", novel, "--out", table, "--force").code == 0


def test_a_pool_of_which_everything_was_accepted_is_refused_in_one_line(folders, medi_):
    words = ("--known", folders / "known", "--novel", folders / "novel", "--out", folders / "out")
    assert medi_("discover", *words, "--classes", 2, "--only-novel").code == 0
    assert medi_("accept", folders / "out", "--into", folders / "known", "0+1=everything").code == 0
    said = medi_("discover", *words, "--force")
    assert said.code == 2
    assert "was accepted as a known one" in said.err.strip().splitlines()[-1]
