"""The commands as a person runs them: one line for each fault, Ctrl-C, and nothing lost when the process is killed."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from people import refused
from reviews import toy_pool, write_discovery
from systems import posix

from medi.core.files import only_process

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}


@contextmanager
def reviewing(out: Path, *more: str):
    """A running review and a client with its cookie."""
    command = [sys.executable, "-m", "medi", "review", str(out), "--no-browser", *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}", address), address + process.stderr.read()
        with httpx.Client(base_url=address.partition("/?")[0], timeout=20) as client:
            assert client.get("/" + address.rpartition("/")[2]).status_code == 200
            yield process, client
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(20)
        process.stdout.close()
        process.stderr.close()


def act(client: httpx.Client, action: str, **arguments) -> httpx.Response:
    seq = client.get("/api/state").json()["seq"]
    return client.post("/api/actions", json={"seq": seq, "action": action, **arguments})


@pytest.fixture
def out(tmp_path) -> Path:
    return write_discovery(tmp_path, toy_pool())


@posix
def test_a_killed_review_loses_nothing_that_was_answered_and_ctrl_c_ends_with_130(out):
    with reviewing(out) as (process, client):
        for number in range(12):
            assert act(client, "name", group=number % 3, name=f"name {number}").status_code == 200
        assert act(client, "merge", groups=[0, 1]).status_code == 200
        assert act(client, "undo").status_code == 200
        last = client.get("/api/state").json()
        process.kill()
    lines = [json.loads(line) for line in (out / "review.jsonl").open()]
    assert [line["seq"] for line in lines] == list(range(1, 15))
    with reviewing(out) as (process, client):
        assert client.get("/api/state").json() == last
        assert client.get("/photo/0").headers["content-type"] == "image/jpeg"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read().strip().count("\n") == 0


@posix
def test_an_earlier_round_is_shown_and_never_changed(out, medi_):
    with reviewing(out) as (_, client):
        assert act(client, "name", group=0, name="holly").status_code == 200
    kept = out / "rounds" / "1"
    kept.mkdir(parents=True)
    for name in ("clusters.csv", "discovery.json", "review.jsonl"):
        (kept / name).write_bytes((out / name).read_bytes())
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with reviewing(kept) as (process, client):
        assert client.get("/api/state").json()["groups"][0]["name"] == "holly"
        assert client.get("/photo/0").status_code == 200
        for action in ("undo", "accept", "regroup"):
            answer = act(client, action)
            assert answer.status_code == 400
            assert str(out) in answer.json()["error"]
        process.send_signal(signal.SIGINT)
        process.wait(20)
        assert process.stdout.read() == ""
        assert str(kept) in process.stderr.read()
    refused(medi_("accept", kept, "--into", out / "known", "0=holly"), str(out))
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    with reviewing(out) as (_, client):
        assert act(client, "undo").status_code == 200


def test_a_port_in_use_is_named(out, medi_):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        refused(medi_("review", out, "--no-browser", "--port", port), f"port {port} is in use", "--port")


@pytest.mark.parametrize(
    "command", ["review {} --no-browser", "accept {} --into x 0=a", "export {} --format csv --out x.csv"]
)
def test_a_folder_without_a_discovery_or_with_an_empty_one_is_named(out, tmp_path, command, medi_):
    refused(medi_(*command.format(tmp_path / "nothing").split()), "nothing is no folder", "medi discover")
    clusters = out / "clusters.csv"
    clusters.write_text(clusters.read_text().splitlines()[0] + "\n")
    refused(medi_(*command.format(out).split()), str(out), "--novel")


@posix
def test_a_pool_that_is_gone_and_a_photo_that_was_moved_are_named(out, tmp_path, medi_):
    (tmp_path / "novel" / "003.jpg").unlink()
    with reviewing(out) as (process, client):
        assert client.get("/photo/3").status_code == 404
        process.send_signal(signal.SIGINT)
        process.wait(20)
        assert "1 of 19 photos are not where they were (first: 003.jpg)" in process.stderr.read()
    (tmp_path / "novel").rename(tmp_path / "elsewhere")
    refused(medi_("review", out, "--no-browser"), "is gone", "put it back")


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_named(out, medi_):
    out.chmod(0o555)
    try:
        refused(medi_("review", out, "--no-browser"), "no permission")
    finally:
        out.chmod(0o755)


def test_two_reviews_of_one_folder_do_not_get_in_each_others_way(out, medi_):
    with only_process(out):
        refused(medi_("review", out, "--no-browser"), "in use by another medi process")


def test_accept_and_export_say_what_they_did(out, tmp_path, medi_):
    done = medi_("accept", out, "--into", tmp_path / "known", "0=sea holly", "1+2=celosia", "--move", "--doubtful")
    assert done.code == 0, done.err
    assert len(done.out.splitlines()) == 2
    written = medi_("export", out, "--format", "csv", "--out", tmp_path / "table.csv")
    assert written.code == 0, written.err
    assert "19 photos" in written.out
    refused(medi_("export", out, "--format", "xml", "--out", tmp_path / "x"), "unknown format 'xml'", "csv")


@posix
def test_accept_goes_through_a_page_that_is_open(out, tmp_path, medi_):
    known, key = tmp_path / "known", out / ".review.json"
    with reviewing(out) as (process, client):
        assert key.stat().st_mode & 0o777 == 0o600
        result = medi_("accept", out, "--into", known, "0=sea holly", "--doubtful")
        assert result.code == 0, result.err
        assert len(list((known / "sea holly").iterdir())) == 6
        state = client.get("/api/state").json()
        assert state["groups"][0]["name"] == "sea holly"
        assert [item["accepted"] for item in state["items"][:6]] == ["sea holly"] * 6
        refused(medi_("accept", out, "--into", known, "99=a"), "no group 99")
        for body in ({}, {"groups": [[0]], "into": "x"}, {"groups": [[["0"], "a"]], "into": "x"}):
            assert client.post("/api/accept", json=body).status_code == 400
        assert act(client, "undo").status_code == 200
        assert not (known / "sea holly").exists()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    assert not key.exists()


@posix
def test_without_its_key_a_review_that_is_open_keeps_accept_out(out, tmp_path, medi_):
    with reviewing(out):
        (out / ".review.json").unlink()
        refused(medi_("accept", out, "--into", tmp_path / "known", "0=a"), "medi review")


@posix
def test_a_review_whose_journal_was_deleted_ends_with_2_and_a_line(out):
    with reviewing(out) as (process, client):
        assert act(client, "name", group=0, name="holly").status_code == 200
        (out / "review.jsonl").unlink()
        answer = client.get("/api/state")
        assert answer.status_code == 409
        assert process.wait(20) == 2
        assert process.stderr.read().strip() == f"medi: {answer.json()['error']}"
    assert len((out / "review-kept.jsonl").read_text().splitlines()) == 1
