"""Names, links and rejections survive a new discovery of the same pool."""

import csv
import json

from reviews import HEADER, act, made_up_review, toy_pool

from medi.review.carry_over import carry_over
from medi.review.discovery_folder import read_folder
from medi.review.session import Review


def discover_again(review: Review, labels: dict[str, int | None]) -> Review:
    """Another clusters.csv for the same pool, and the review that goes on with it."""
    new = review.folder.path / "new.csv"
    with new.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for path, label in labels.items():
            writer.writerow(
                [path, "alone" if label is None else "novel", "" if label is None else label, "", "0.9", ""]
            )
    journal = carry_over(review.folder.path, new)
    new.replace(review.folder.path / "clusters.csv")
    review.folder.journal.unlink(missing_ok=True)
    if journal is not None:
        review.folder.journal.write_bytes(journal)
    return Review(read_folder(review.folder.path), None)


def where(review: Review, path: str) -> dict | None:
    state = review.state()
    item = next(item["id"] for item in state["items"] if item["path"] == path)
    return next((group for group in state["groups"] if item in group["items"]), None)


def test_nothing_said_nothing_kept(tmp_path):
    review = made_up_review(tmp_path, learning=False)
    again = discover_again(review, dict.fromkeys(review.folder.start.paths, 0))
    assert again.history.seq == 0


def test_what_was_said_holds_among_other_numbers(tmp_path):
    review = made_up_review(tmp_path, toy_pool(), learning=False)
    act(review, "name", group=0, name="aster")
    act(review, "move", items=[6, 7], group=0)
    act(review, "reject", items=[1])
    act(review, "answer", a=11, b=12, same=False)
    act(review, "move", items=[13], group=None)
    act(review, "known", items=[14], name="tulip")
    labels = {path: (2 if item < 6 else 1 if item < 11 else 0) for item, path in enumerate(review.folder.start.paths)}
    del labels["002.jpg"]  # a photo that is gone
    labels = dict(reversed(labels.items()))
    labels["new.jpg"] = 2
    again = discover_again(review, labels)
    aster = where(again, "000.jpg")
    assert aster["name"] == "aster"
    for path in ("006.jpg", "007.jpg"):
        assert where(again, path) == aster
    assert where(again, "001.jpg") != aster
    assert where(again, "011.jpg") != where(again, "012.jpg")
    assert where(again, "013.jpg") is None
    state = {item["path"]: item for item in again.state()["items"]}
    assert state["013.jpg"]["aside"]
    assert state["014.jpg"]["known"] == "tulip"
    assert again.history.done[0]["action"] == "carry"
    act(again, "undo")
    assert where(again, "000.jpg")["name"] is None


def test_photos_that_were_called_the_same_are_in_one_group_again(tmp_path):
    review = made_up_review(tmp_path, toy_pool(), learning=False)
    act(review, "answer", a=0, b=6, same=True)  # of two groups
    act(review, "answer", a=17, b=18, same=True)  # both on their own
    labels = {
        path: (0 if item < 6 else 1 if item < 15 else None) for item, path in enumerate(review.folder.start.paths)
    }
    again = discover_again(review, labels)
    assert where(again, "000.jpg") == where(again, "006.jpg") is not None
    assert where(again, "017.jpg") == where(again, "018.jpg") is not None
    assert where(again, "001.jpg") is not None


def test_named_groups_that_fell_together_are_kept_apart(tmp_path):
    review = made_up_review(tmp_path, toy_pool(), learning=False)
    for group, name in ((0, "aster"), (1, "borage"), (2, "celosia")):
        act(review, "check", group=group, yes=review.state()["groups"][group]["items"], no=[])
        act(review, "name", group=group, name=name)
    again = discover_again(review, dict.fromkeys(review.folder.start.paths, 0))
    names = [where(again, path)["name"] for path in ("000.jpg", "006.jpg", "011.jpg")]
    assert names == ["aster", "borage", "celosia"]
    assert json.loads(again.folder.journal.read_text())["seq"] == 1
