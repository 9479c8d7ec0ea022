"""Settings as JSON: what fits a dataclass is taken, anything else refused by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pytest

from medi.core.errors import InputError
from medi.core.settings import apply_changes, merge


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


@dataclass(frozen=True)
class Named:
    size: int = 1
    rate: float = 0.5

    presets: ClassVar = {"large": {}}


@dataclass(frozen=True)
class Holder:
    part: Named = field(default_factory=lambda: Named(rate=0.1))


def test_nested_settings_start_from_a_preset_of_their_own_kind_where_they_say_so():
    asked = []

    def named(kind: type, name: str) -> Named:
        asked.append((kind, name))
        return Named(size=9)

    changes = {"part": {"from": "large", "rate": 0.2}}
    assert apply_changes(Holder(), changes, named) == Holder(Named(9, 0.2))
    assert apply_changes(Holder(), {"part": {"size": 2}}, named) == Holder(Named(2, 0.1))
    assert asked == [(Named, "large")]


@pytest.mark.parametrize("changes", [{"plan": {"from": "large"}}, {"start": {"from": "large"}}])
def test_what_has_no_presets_cannot_start_from_one(changes):
    with pytest.raises(InputError, match=r"unknown setting '(plan|start).from'"):
        apply_changes(Config(), changes, lambda kind, name: kind())


def test_what_is_set_comes_after_what_a_candidate_changes():
    assert merge({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 4}, "d": {}}) == {"a": {"b": 1, "c": 4}, "d": {}}
