"""Candidates from a file and what `--set` says."""

import json
import re
from dataclasses import replace

import pytest

from medi.bench.candidates import NamedSettings, parse_assignments, read_candidates
from medi.bench.grid import config_of
from medi.bench.grid_options import runs_asked
from medi.cli.bench import choose_command
from medi.core.errors import InputError
from medi.methods import METHODS


def test_assignments_are_json_or_plain_text_and_reach_into_nested_settings():
    assert parse_assignments(["a.b.c=1e-3", "a.b.d = [1, 2]", "x=resnet18", "y=null", 'z="3"', "w="]) == {
        "a": {"b": {"c": 0.001, "d": [1, 2]}},
        "x": "resnet18",
        "y": None,
        "z": "3",
        "w": "",
    }


@pytest.mark.parametrize(
    "assignments", [["steps"], ["=3"], ["a..b=3"], ["from=paper"], ["a=1", "a=2"], ["a=1", "a.b=2"]]
)
def test_assignments_that_mean_nothing_are_refused(assignments):
    with pytest.raises(InputError, match=re.escape(f"--set {assignments[-1]}: ")):
        parse_assignments(assignments)


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_candidates_of_a_file_start_from_the_default_where_they_name_no_preset(tmp_path):
    path = write(tmp_path / "c.json", {"wide": {"images": 3}, "plain": {"from": "paper"}})
    assert [(one.name, one.changes) for one in read_candidates(path)] == [
        ("wide", {"from": "default", "images": 3}),
        ("plain", {"from": "paper"}),
    ]


def test_a_candidate_starts_from_one_above_it_and_changes_what_that_has(tmp_path):
    whole = {"from": "cpu", "plan": {"steps": 3}, "start": {"batch": 2}}
    part = {"from": "whole", "plan": {"rate": 1.0}, "start": None}
    path = write(tmp_path / "c.json", {"whole": whole, "part": part, "less": {"from": "part", "network": "mlp"}})
    changed = {"from": "cpu", "plan": {"steps": 3, "rate": 1.0}, "start": None}
    assert [one.changes for one in read_candidates(path)] == [whole, changed, changed | {"network": "mlp"}]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", "[" * 10_000, '{"a": 3}', '{"a": {"from": 3}}', '{"a": {}, "a": {}}', '{" ": {}}'],
)
def test_a_file_without_candidates_is_refused_by_its_name(tmp_path, content):
    with pytest.raises(InputError, match=r"c\.json"):
        read_candidates(write(tmp_path / "c.json", content))
    with pytest.raises(InputError, match=r"none\.json"):
        read_candidates(tmp_path / "none.json")


def runs(settings: NamedSettings, *, seeds=(0,), **changes):
    return runs_asked(settings, seeds, **({"dataset": "glyphs", "method": "mp"} | changes))


def test_a_sampler_that_nothing_is_drawn_by_is_refused_before_any_work(tmp_path):
    still = {"still": {"pretraining": {"network": "conv4"}, "schedule": {"steps": 0}}}
    (candidate,) = read_candidates(write(tmp_path / "c.json", still))
    with pytest.raises(InputError, match="candidate 'still': without steps no task is drawn, by cata"):
        runs(candidate, sampler="cata")
    assert len(runs(candidate)) == 1


def test_a_candidate_is_a_run_with_its_name_and_its_settings(tmp_path):
    (candidate,) = read_candidates(write(tmp_path / "c.json", {"wide": {"schedule": {"steps": 77}}}))
    (run,) = runs(candidate.changed(["images=9"]))
    preset = METHODS["mp"].preset("default", "glyphs")
    assert run.config == "wide"
    assert config_of(run) == replace(preset, images=9, schedule=replace(preset.schedule, steps=77))


@pytest.mark.parametrize(
    ("candidate", "parts"),
    [
        ({"new": {"imagse": 3}}, ["candidate 'new'", "imagse", "'images'"]),
        ({"new": {"images": "3"}}, ["candidate 'new'", 'images is "3"']),
        ({"new": {"from": "papper"}}, ["candidate 'new'", "papper"]),
        ({"default": {"images": 3}}, ["candidate 'default'", "preset of that name"]),
    ],
)
def test_a_candidate_that_no_method_can_have_is_refused_by_file_candidate_and_field(tmp_path, candidate, parts):
    (settings,) = read_candidates(write(tmp_path / "c.json", candidate))
    with pytest.raises(InputError) as error:
        runs(settings)
    assert all(part in str(error.value) for part in ["c.json", *parts])


def test_the_example_of_the_help_can_be_used(tmp_path):
    (example,) = re.findall(r"`(\{.*\})`", choose_command.__doc__)
    for settings in read_candidates(write(tmp_path / "c.json", example)):
        assert runs(settings)
