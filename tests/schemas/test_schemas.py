"""The schemas themselves, and everything but discoveries held against them (those: `tests/discovery/test_json.py`)."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
import typer
from contracts import check, check_lines, check_printed, parsed, validator
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from odd import odd_values, places_in
from official import CIFAR10, write_tiny
from reviews import act, made_up_review, toy_pool, write_discovery
from typer.testing import CliRunner

from medi.bench.grid import REGIMES, SCORES, Run
from medi.bench.rows import NEEDED
from medi.bench.run import origin_of
from medi.cli.main import app
from medi.data.check import State
from medi.discover.accepted import ACCEPTED
from medi.discover.result import GroupVerdict, Kind, Verdict
from medi.review.actions import ACTIONS
from medi.review.carry_over import CARRY, carry_over
from medi.review.history import REDO, UNDO
from medi.review.session import ACCEPT, REGROUP
from medi.schemas import LARGEST, fault, names, schema, text
from medi.theory import tasks_needed

ROOT = Path(__file__).resolve().parents[2]
PRINTED = {"discover": "discovery"}
"""The schema of what a command prints with --json, where it is not named like the command."""


def medi(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.stdout


def objects_in(part: Any) -> Iterator[dict[str, Any]]:
    """Every object of a schema."""
    if isinstance(part, dict):
        yield part
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from objects_in(inner)


def json_commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Names of all commands that take --json."""
    if any("--json" in getattr(parameter, "opts", ()) for parameter in command.params):
        yield "-".join(path)
    for name, inner in getattr(command, "commands", {}).items():
        yield from json_commands(inner, (*path, name))


@pytest.mark.parametrize("name", names())
def test_every_schema_is_one_has_a_name_without_a_host_and_refuses_unknown_keys(name):
    found = schema(name)
    Draft202012Validator.check_schema(found)
    assert found["$id"] == f"urn:medi:schema:{name}:1"
    assert found["title"]
    for part in objects_in(found):
        if part.get("type") == "object" and "properties" in part:
            closed = "additionalProperties" if "oneOf" not in part else "unevaluatedProperties"
            assert part[closed] is False, part


def test_every_command_that_prints_json_has_a_schema():
    commands = set(json_commands(typer.main.get_command(app)))
    assert {"discover", "assign", "data-list", "data-check", "theory-bound", "theory-overlap"} <= commands
    assert {PRINTED.get(command, command) for command in commands} | {"accepted", "row", "review", "state"} == set(
        names()
    )


def test_the_program_lists_the_schemas_and_prints_each():
    listed = medi("schema").splitlines()
    assert [line.split()[0] for line in listed] == names()
    for name in names():
        assert medi("schema", name) == text(name)


def test_words_in_schemas_are_those_of_the_program():
    discovery, row, review, state, files = (
        schema(name)["properties"] for name in ("discovery", "row", "review", "state", "data-check")
    )
    assert tuple(discovery["diagnostics"]["properties"]["verdict"]["enum"]) == get_args(Verdict)
    assert tuple(discovery["groups"]["items"]["properties"]["verdict"]["enum"]) == get_args(GroupVerdict)
    assert tuple(state["items"]["items"]["properties"]["kind"]["enum"]) == get_args(Kind)
    assert set(row["regime"]["enum"]) == set(REGIMES)
    assert set(row["score"]["enum"]) == set(SCORES)
    of_file = files["benchmarks"]["items"]["properties"]["files"]["items"]["properties"]
    assert of_file["state"]["enum"] == list(State)
    forms = {form["properties"]["action"]["const"]: form for form in schema("review")["oneOf"]}
    assert set(forms) == {*ACTIONS, ACCEPT, REGROUP, UNDO, REDO, CARRY, "aside"}, "the last one in earlier journals"
    assert "action" in review


def test_what_a_table_needs_every_row_has():
    assert set(NEEDED) <= set(schema("row")["required"])


def readable(value: Any) -> bool:
    """Whether any program can read it."""
    if isinstance(value, dict):
        return all(map(readable, [*value, *value.values()]))
    if isinstance(value, list):
        return all(map(readable, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return abs(value) <= LARGEST if isinstance(value, int) else value is None or "\ud800" not in value


DOCUMENTS = {
    "row": json.loads(min(ROOT.glob("results/*/results.jsonl")).read_text().splitlines()[0]),
    "review": {
        "seq": 1,
        "at": "2026-01-01T00:00:00.000Z",
        "action": "move",
        "discovery": "0" * 16,
        "items": [1, 2],
        "group": None,
        "effect": {
            "places": [[1, -1, ""], [2, 3, "rose"]],
            "confidence": [[1, 0.5]],
            "names": {"3": "rose"},
            "words": [0, [[1, 1, 2, "move"]]],
            "questions": [[1, 2, 0.5], [1, 2, 0.5, "which", 1.5, [2], [[1, "rose"]]]],
            "offers": [[3, [1], -1, "rose"]],
            "note": {"text": "Moved.", "moved": [2]},
        },
    },
}


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(sorted(DOCUMENTS)), place=st.integers(0), value=odd_values(), key=st.text(max_size=3))
def test_what_is_read_is_refused_just_where_jsonschema_refuses_it(name, place, value, key):
    assume(not re.search(r"\d\.0\b", json.dumps(value)))  # jsonschema takes 1.0 for a whole number
    document = json.loads(json.dumps(DOCUMENTS[name]))
    assert fault(schema(name), document) is None
    places = list(places_in(document))
    inside, at = places[place % len(places)]
    if isinstance(inside, dict) and key:
        inside[key] = inside.pop(at)
    elif key:
        del inside[at]
    else:
        inside[at] = value
    allowed = readable(document) and validator(name).is_valid(document)
    assert (fault(schema(name), document) is None) == allowed, fault(schema(name), document)


def test_a_fault_is_named_by_its_place():
    document = json.loads(json.dumps(DOCUMENTS["review"]))
    document["effect"]["places"][1][0] = "2"
    assert fault(schema("review"), document) == "effect.places.1.0"


@pytest.mark.parametrize("path", sorted(ROOT.glob("results/**/results.jsonl")), ids=lambda path: path.parent.name)
def test_committed_results_are_rows(path):
    rows = check_lines("row", path)
    assert rows
    assert not any("split" in row for row in rows)


@pytest.mark.parametrize("path", sorted(ROOT.glob("results/**/choices.jsonl")), ids=lambda path: path.parent.name)
def test_committed_choices_are_rows_of_splits(path):
    assert all("split" in row for row in check_lines("row", path))


def test_a_benchmark_and_a_choice_write_such_rows(tmp_path):
    task = ("--dataset", "glyphs", "--method", "kmeans", "--way", "3", "--episodes", "2")
    run = ("--seeds", "1", "--regime", "honest,grouped", "--set", "grouping.neighbours=3")
    medi("bench", "run", *task, *run, "--out", str(tmp_path / "run"))
    row, oracle = check_lines("row", tmp_path / "run" / "results.jsonl")
    assert oracle["acc_observed"] is None
    medi("bench", "choose", *task, "--config", "default", "--splits", "1", "--out", str(tmp_path / "choose"))
    (trial,) = check_lines("row", tmp_path / "choose" / "choices.jsonl")
    for missing in ("split", "held_out", "asked_way", "acc", "settings"):
        assert not validator("row").is_valid({key: value for key, value in trial.items() if key != missing})
    assert not validator("row").is_valid({key: value for key, value in row.items() if key != "seconds"})
    cata = replace(Run.of_row(row), method="mp", sampler="cata")
    check("row", row | {"sampler": "cata"} | origin_of(cata, torch.device("cpu"), None))
    check("row", row | {"sizes": "unequal", "ece": 0.1, "confidence": 0.5})
    for wrong in ({"sizes": "odd"}, {"ece": "0.1"}, {"regime": "honset"}, {"acc": 1.5}, {"more": 1}):
        assert not validator("row").is_valid(row | wrong)


def test_every_action_writes_a_line_and_makes_a_state_as_the_schemas_say(tmp_path):
    review = made_up_review(tmp_path)
    state = check("state", review.state())
    assert state["questions"]
    asked = state["question"]
    done = [
        act(review, "answer", a=asked["a"], b=asked["b"], same=True),
        act(review, "answer", a=asked["a"], b=asked["b"], same=False, override=True),
        act(review, "name", group=0, name="Zoë"),
        act(review, "split", group=0, parts=2),
        act(review, "move", items=[7], group=0),
        act(review, "move", items=[7], group=None),
        act(review, "reject", items=[8]),
        act(review, "known", items=[9], name="rose"),
        act(review, "group", items=[12, 13], name="new"),
        act(review, "group", items=[14]),
        act(review, "move", items=[14], group=None),
        act(review, "confirm", items=[9, 12]),
        act(review, "regroup"),
    ]
    number = done[-1]["groups"][0]["id"]
    done += [act(review, "check", group=number, yes=done[-1]["groups"][0]["items"][:1], no=[])]
    done += [act(review, "merge", groups=[group["id"] for group in done[-1]["groups"]][:2])]
    done += [act(review, action) for action in ("undo", "redo", "accept")]
    for one in done:
        check("state", parsed(json.dumps(one)))
    check("accepted", parsed((review.folder.path / ACCEPTED).read_text()))
    lines = check_lines("review", review.folder.journal)
    assert len(lines) == len(done)
    (tmp_path / "again").mkdir()
    clusters = write_discovery(tmp_path / "again", toy_pool(seed=3)) / "clusters.csv"
    lines += [check("review", parsed(carry_over(review.folder.path, clusters)))]
    assert {line["action"] for line in lines} == {*ACTIONS, ACCEPT, REGROUP, UNDO, REDO, CARRY}
    for line in lines:
        assert not validator("review").is_valid(line | {"more": 1}), line["action"]
        assert not validator("review").is_valid(line | {"action": "dance"})
        for key in line.keys() - {"override", "name", "made", "gave_up"}:  # in some lines only
            assert not validator("review").is_valid({k: v for k, v in line.items() if k != key}), (line["action"], key)
    assert not validator("state").is_valid(done[0] | {"more": 1})


def test_the_benchmarks_are_listed_and_checked_for_programs(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDI_DATA", str(tmp_path))
    write_tiny(tmp_path, CIFAR10)
    listed = check_printed("data-list", medi("data", "list", "--json"))
    assert listed["folder"] == str(tmp_path)
    at_hand = {one["name"]: one["at_hand"] for one in listed["benchmarks"]}
    assert (at_hand["cifar10"], at_hand["svhn"], at_hand["glyphs"]) == ("yes", "no", "generated")
    cut = tmp_path / CIFAR10.folder / "test_batch.bin"
    cut.write_bytes(cut.read_bytes() + b"x")
    damaged = CliRunner().invoke(app, ["data", "check", "--json"])
    assert damaged.exit_code != 0, "what is printed does not change that a damaged file is an error"
    found = check_printed("data-check", damaged.stdout)
    states = {one["name"]: one["state"] for one in found["benchmarks"]}
    assert (states["cifar10"], states["svhn"], states["rules"]) == ("damaged", "absent", "generated")
    (why,) = [file["why"] for one in found["benchmarks"] for file in one["files"] if file["why"]]
    assert why == "1 byte after the last whole record"
    (whole,) = check_printed("data-check", medi("data", "check", "svhn", "--json"))["benchmarks"]
    assert {file["state"] for file in whole["files"]} == {"absent"}


@pytest.mark.parametrize(("beta", "vacuous"), [("1e-5", False), ("1e308", True)])
def test_the_bound_is_printed_for_programs_and_too_large_a_number_is_null(beta, vacuous):
    words = ("theory", "bound", "--tasks", "100", "--max-loss", "1", "--json")
    found = check_printed("theory-bound", medi(*words, "--beta", beta))
    assert (found["vacuous"], found["epsilon"] is None, found["tasks_needed"]) == (vacuous, vacuous, None)
    found = check_printed("theory-bound", medi(*words, "--beta", "0.01", "--epsilon", "0.5"))
    assert found["tasks_needed"] == tasks_needed(0.5, 1.0, 1.0, 0.05)


def test_the_overlap_is_printed_for_programs(tmp_path):
    y = np.arange(60) % 2
    np.savez(tmp_path / "features.npz", z=np.random.default_rng(0).random((60, 1)) + 0.5 * y[:, None], y=y)
    words = ("theory", "overlap", "--features", str(tmp_path / "features.npz"), "--json")
    assert check_printed("theory-overlap", medi(*words))["pair"] == [0, 1]


def test_of_each_printed_object_no_key_may_be_missing_and_none_added():
    for name in ("assign", "data-list", "data-check", "theory-bound", "theory-overlap"):
        assert schema(name)["required"] == list(schema(name)["properties"])
        assert not validator(name).is_valid({})
