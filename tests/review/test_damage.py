"""Journals that were damaged, or made by somebody: refused by line, or read, and then everything can be done."""

import json
import random
import shutil
from pathlib import Path

import pytest
from odd import ODD, places_in
from reviews import act, made_up_review, toy_pool, write_discovery
from starlette.testclient import TestClient

from medi.core.errors import InputError
from medi.review.discovery_folder import read_folder
from medi.review.page import application
from medi.review.session import Review


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """A discovery with a journal that holds every action."""
    review = made_up_review(tmp_path_factory.mktemp("written"))
    asked = review.state()["question"]
    act(review, "answer", a=asked["a"], b=asked["b"], same=True)
    act(review, "name", group=0, name="Zoë")
    act(review, "split", group=0, parts=2)
    act(review, "move", items=[7], group=0)
    act(review, "reject", items=[8])
    act(review, "known", items=[9], name="rose")
    act(review, "group", items=[12, 13], name="new")
    act(review, "move", items=[14], group=None)
    act(review, "regroup")
    act(review, "merge", groups=[group["id"] for group in review.state()["groups"]][:2])
    act(review, "undo")
    act(review, "name", group=1, name="aster")
    act(review, "undo")
    return review.folder.path


def everything(out: Path, draw: random.Random) -> str:
    """Read a review as damaged, and ask for everything; what was said: why it was refused, or nothing."""
    folder = read_folder(out)
    try:
        review = Review(folder, toy_pool())
    except InputError as error:
        return str(error)
    client = TestClient(application(review, lambda _: None))
    state = client.get("/api/state").json()
    groups = [group["id"] for group in state["groups"]]
    asked = [f"/api/split?group={group}&parts=2" for group in groups] + [f"/api/candidates?group={g}" for g in groups]
    for address in ("/api/pool", *asked):
        assert client.get(address).status_code in (200, 400), address
    actions = ["undo", "redo", "regroup", "undo", "redo", "redo"]
    requests = [{"action": action} for action in actions]
    requests += [{"action": "name", "group": group, "name": "a"} for group in groups[:1]]
    requests += [{"action": "merge", "groups": groups[:2]}, {"action": "reject", "items": [draw.randrange(19)]}]
    requests += [{"action": "move", "items": [draw.randrange(19)], "group": groups[-1] if groups else None}]
    for request in requests:
        answer = client.post("/api/actions", json={"seq": review.history.seq, **request})
        assert answer.status_code in (200, 400), (request, answer.text)
    return ""


def check_damage(written: Path, folder: Path, changes: list[tuple[int, int | None]], seed: int) -> None:
    content = (written / "review.jsonl").read_bytes()
    refused = 0
    for place, byte in changes:
        out = folder / "out"
        shutil.copytree(written, out)
        changed = content[:place] + (b"" if byte is None else bytes([byte])) + content[place + 1 :]
        (out / "review.jsonl").write_bytes(changed)
        try:
            why = everything(out, random.Random(seed))
        except Exception as error:
            error.add_note(f"byte {place}: {content[place - 40 : place + 20]!r} to {byte}")
            raise
        assert len(why.splitlines()) <= 1
        refused += bool(why)
        shutil.rmtree(out)
    assert refused > len(changes) / 3


def changes(written: Path, count: int, seed: int) -> list[tuple[int, int | None]]:
    """Places in a journal, and the byte that comes there; None for none."""
    draw, size = random.Random(seed), (written / "review.jsonl").stat().st_size
    likely = [None, *b'0123456789"[]{},-e\x00\xff']
    return [(draw.randrange(size), draw.choice([draw.choice(likely), draw.randrange(256)])) for _ in range(count)]


def test_a_journal_with_a_byte_changed_is_read_or_refused_by_line(written, tmp_path):
    check_damage(written, tmp_path, changes(written, 40, seed=0), seed=0)


@pytest.mark.slow
def test_a_journal_with_any_byte_changed_is_read_or_refused_by_line(written, tmp_path):
    check_damage(written, tmp_path, changes(written, 500, seed=random.randrange(10**6)), seed=1)


@pytest.mark.parametrize("action", ["answer", "name", "split", "move", "known", "regroup", "undo"])
def test_an_effect_with_anything_else_in_it_is_read_or_refused_by_line(written, tmp_path, action):
    lines = (written / "review.jsonl").read_text().splitlines()
    number = next(i for i, line in enumerate(lines) if json.loads(line)["action"] == action)
    draw = random.Random(number)
    for place in draw.sample(range(sum(1 for _ in places_in(json.loads(lines[number])))), 4):
        line = json.loads(lines[number])
        document, key = list(places_in(line))[place]
        for value in draw.sample(ODD, 3):
            document[key] = value
            out = tmp_path / "out"
            shutil.copytree(written, out)
            (out / "review.jsonl").write_text(
                "\n".join([*lines[:number], json.dumps(line), *lines[number + 1 :]]) + "\n"
            )
            everything(out, draw)
            shutil.rmtree(out)


@pytest.mark.parametrize("value", [None, 5, True, [], {}, "", "\0", 1e400], ids=repr)
@pytest.mark.parametrize("key", ["known", "novel", "arguments"])
def test_a_discovery_json_with_anything_else_in_it_is_refused(tmp_path, key, value):
    out = write_discovery(tmp_path, toy_pool())
    facts = json.loads((out / "discovery.json").read_text())
    (facts if key == "arguments" else facts["arguments"])[key] = value
    (out / "discovery.json").write_text(json.dumps(facts))
    with pytest.raises(InputError, match=r"discovery\.json is damaged"):
        read_folder(out)
