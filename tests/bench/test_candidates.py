"""Settings from a file and from `--set`: what fits a method's dataclass is taken, anything else refused by name."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

import pytest

from medi.bench.candidates import NamedSettings, apply_changes, merge, parse_assignments, read_candidates
from medi.bench.commands import choose_command
from medi.bench.grid import config_of, runs_asked_for
from medi.errors import InputError
from medi.methods import METHODS


@dataclass(frozen=True)
class Plan:
    steps: int
    rate: float = 0.1

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError("steps must be positive")


@dataclass(frozen=True)
class Start:
    batch: int = 8
    plan: Plan = field(default_factory=lambda: Plan(5, rate=0.5))


@dataclass(frozen=True)
class Config:
    network: str = "conv4"
    kind: Literal["a", "b", 3] = "a"
    fast: bool = False
    size: int | None = None
    start: Start | None = None
    plan: Plan = field(default_factory=lambda: Plan(10))
    members: tuple[Start, ...] = (Start(1),)
    pair: tuple[int, str] = (1, "x")
    factors: Mapping[str, float] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Config()),
        ({"from": "paper", "network": "mlp", "fast": True}, Config(network="mlp", fast=True)),
        ({"kind": 3, "size": 4}, Config(kind=3, size=4)),
        ({"plan": {"rate": 1}}, Config(plan=Plan(10, rate=1.0))),
        ({"start": {}}, Config(start=Start())),
        ({"start": {"plan": {"steps": 7}}}, Config(start=Start(plan=Plan(7, rate=0.5)))),
        ({"members": [{"plan": {"rate": 0}}, {"batch": 2}]}, Config(members=(Start(1, Plan(5, 0.0)), Start(2)))),
        ({"members": [], "pair": [2, "y"]}, Config(members=(), pair=(2, "y"))),
        ({"factors": {"head": 10}}, Config(factors={"head": 10.0})),
    ],
)
def test_changes_replace_fields_and_reach_into_nested_ones(changes, expected):
    assert apply_changes(Config(), changes) == expected


def test_a_nested_setting_keeps_its_other_fields_and_can_be_taken_away():
    config = Config(size=3, start=Start(), plan=Plan(10, rate=0.5))
    assert apply_changes(config, {"plan": {"steps": 3}, "start": None, "size": None}) == Config(plan=Plan(3, rate=0.5))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"netwrok": "mlp"}, "unknown setting 'netwrok'.*did you mean 'network'"),
        ({"plan": {"stepps": 3}}, r"unknown setting 'plan.stepps'.*did you mean 'plan.steps'"),
        ({"plan": 3}, "plan is 3; give an object"),
        ({"plan": None}, "plan is null"),
        ({"plan": {"steps": 0}}, "plan: steps must be positive"),
        ({"plan": {"steps": 1.5}}, r"plan.steps is 1.5; give a whole number"),
        ({"plan": {"steps": True}}, r"plan.steps is true"),
        ({"plan": {"rate": "fast"}}, 'plan.rate is "fast"; give a number'),
        ({"plan": {"rate": float("nan")}}, "plan.rate is NaN"),
        ({"plan": {"rate": 10**400}}, "plan.rate is 1000"),
        ({"kind": "c"}, 'kind is "c"; give "a" or "b" or 3'),
        ({"kind": 3.0}, "kind is 3.0"),
        ({"fast": 1}, "fast is 1; give true or false"),
        ({"size": "big"}, 'size is "big"; give a whole number or null'),
        ({"network": None}, "network is null; give text"),
        ({"members": {}}, "members is {}; give a list"),
        ({"members": [{"batch": 1}, {"bach": 2}]}, r"unknown setting 'members.1.bach'"),
        ({"pair": [1]}, "pair has 1 values; give 2"),
        ({"factors": {"head": "x"}}, r"factors.head is \"x\""),
    ],
)
def test_what_does_not_fit_is_refused_by_its_field(changes, message):
    with pytest.raises(InputError, match=message):
        apply_changes(Config(), changes)


@pytest.mark.parametrize("name", METHODS)
def test_every_preset_can_be_written_as_changes_of_itself(name):
    for preset in METHODS[name].presets.values():
        assert apply_changes(preset, json.loads(json.dumps(asdict(preset)))) == preset


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


def test_what_is_set_comes_after_what_a_candidate_changes():
    assert merge({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 4}, "d": {}}) == {"a": {"b": 1, "c": 4}, "d": {}}


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


def runs(settings: NamedSettings, **changes):
    options = {"dataset": "glyphs", "method": "mp", "sampler": "uniform", "way": None, "observations": "5"}
    options |= {"regime": "honest", "score": "episode", "seeds": [0]}
    return runs_asked_for(settings=settings, **(options | changes))


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


def test_a_setting_that_one_of_the_methods_lacks_is_refused():
    with pytest.raises(InputError, match="--set: unknown setting 'images'"):
        runs(NamedSettings("default", {}).changed(["images=9"]), method="mp,kmeans")


def test_the_example_of_the_help_can_be_used(tmp_path):
    (example,) = re.findall(r"`(\{.*\})`", choose_command.__doc__)
    for settings in read_candidates(write(tmp_path / "c.json", example)):
        assert runs(settings)
