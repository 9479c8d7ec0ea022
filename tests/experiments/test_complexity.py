"""Costs of a method's steps and discoveries are those that a count by hand gives; what was measured is kept."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace

import complexity
import complexity_methods as methods
import costs
import pytest
import torch
from complexity_page import section
from flops import conv4
from script import Parser, read_json

from medi.data.imageset import ImageSet
from medi.errors import InputError

CPU = torch.device("cpu")
TINY = methods.Shape(tasks=2, way=2, observations=1, queries=2, inner=1, small=True)


def tiny(name: str, classes: int = 4, each: int = 8, **changes: int) -> tuple:
    labels = torch.arange(classes).repeat_interleave(each)
    known = ImageSet(complexity.random_images(classes * each, CPU), labels, tuple(map(str, range(classes))))
    return methods.METHODS[name], known, replace(TINY, **changes)


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("name", methods.METHODS)
def test_every_method_has_the_same_network(name, small):
    found = set(networks(asdict(methods.METHODS[name].method(methods.SHAPES[small]))))
    assert found == (set() if name == "K-means on pixels" else {"conv4"})


def networks(settings: object) -> Iterator[object]:
    """What is called a network anywhere inside some settings."""
    if isinstance(settings, dict):
        yield from (value for name, value in settings.items() if name == "network")
        settings = tuple(settings.values())
    if isinstance(settings, tuple):
        for part in settings:
            yield from networks(part)


def test_a_step_of_mp_costs_three_passes_of_its_images():
    entry, known, shape = tiny("MP")
    (stage,), learner = complexity.measure_training(entry, known, shape, repeats=2)
    whole, first = conv4(32)
    assert stage["stage"] == "mp"
    assert stage["images"] == 12
    assert stage["flops"] == pytest.approx(12 * (3 * whole - first), rel=1e-3)
    assert stage["fastest"] <= stage["seconds"] <= stage["slowest"]
    discovery = complexity.measure_discovery(entry, learner, shape, CPU, 1, whole=True)
    assert discovery["flops"] == pytest.approx(6 * whole, rel=1e-2)
    assert discovery["steps"] == 0


def test_medi_pays_for_every_image_of_its_two_stages_and_for_five_views_of_each_observation():
    entry, known, shape = tiny("medi", classes=20, each=10)
    stages, learner = complexity.measure_training(entry, known, shape, repeats=1)
    assert [(stage["stage"], stage["images"]) for stage in stages] == [("classes", 128), ("prototypes", 200)]
    whole, first = conv4(32)
    for stage in stages:
        assert stage["flops"] == pytest.approx(stage["images"] * (3 * whole - first), rel=3e-3)  # and a classifier
    discovery = complexity.measure_discovery(entry, learner, shape, CPU, 1, whole=True)
    assert discovery["flops"] == pytest.approx(6 * 5 * whole, rel=1e-2)


@pytest.mark.parametrize("name", ["DTC", "MCL"])
def test_flops_of_a_whole_discovery_are_those_of_all_its_steps(name, monkeypatch):
    monkeypatch.setattr(complexity, "CYCLE", 5)
    entry, known, shape = tiny(name)
    method = entry.method(shape)
    method = replace(method, stage=replace(method.stage, epochs=1, least_steps=15))
    with costs.in_place_of_loops(lambda run: None):
        learner = method.fit(known, shape.plan(CPU))
    images, places = complexity.random_images(6, CPU), torch.arange(6)[None]

    def discover() -> None:
        found = learner.discover(images, places[:, :2], 2, torch.Generator().manual_seed(0))
        found.assign(images, places[:, 2:])

    measured = complexity.measure_discovery(entry, learner, shape, CPU, 1, whole=True)
    assert measured["steps"] == 15
    assert measured["flops"] == costs.count(discover)


def test_a_discovery_by_a_network_trained_on_the_bag_grows_with_its_steps():
    def flops(steps: int) -> int:
        entry, known, shape = tiny("DTC", inner=steps)
        return complexity.discovery_at(entry, known, shape, 1)["flops"]

    one, two, four = map(flops, (1, 2, 4))
    whole, first = conv4(32)
    # Two augmentations of two observations; k-means in between adds a few operations.
    assert two - one == pytest.approx(4 * (3 * whole - first), rel=1e-2)
    assert four - two == pytest.approx(2 * (two - one), rel=1e-2)


def measured() -> dict:
    figures = {"flops": 3e9, "peak bytes": 2**21, "seconds": 0.5, "fastest": 0.25, "slowest": 1.0, "repeats": 3}
    growth = {"tasks": {"training": {cost: {"exponent": 1.0} for cost in complexity.COSTS}}}
    training = [{"stage": "mp", "steps": 2000, "images": 100} | figures]
    mp = {"method": "MP", "training": training, "discovery": {"steps": 0} | figures, "growth": growth}
    cata = {"method": "CATA", "training": [], "discovery": None, "growth": {}}
    facts = complexity.about(CPU, small=True) | {"torch": "2.13"}
    return facts | {"methods": [row | {"load": 0.5, "took": 50.0} for row in (mp, cata)]}


def test_tables_say_what_was_measured():
    training, discovery, growth = (part.splitlines()[2] for part in section(measured()).split("\n\n")[-3:])
    assert training == "| MP: mp | 100 | 3 | 500 (250 to 1,000; 3) | 2 | 30 | 2,000 | 6 |"
    assert discovery == "| MP | 0 | 3 | 500 (250 to 1,000; 3) | 2 |"
    assert growth == "| MP | tasks | 1 | 1.00 | 1.00 | 1.00 |  |  |  |"


@pytest.mark.parametrize("facts", [{}, [], {"methods": []}, {"methods": [{"method": "MP"}]}])
def test_figures_of_something_else_are_refused(facts):
    with pytest.raises(InputError, match=r"no figures of complexity\.py"):
        section(facts)


def run(monkeypatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", ["complexity.py", *map(str, words)])
    complexity.main(Parser())


def test_an_interrupted_measurement_leaves_what_it_had_and_others_can_be_added(tmp_path, monkeypatch, capsys):
    for shapes in (complexity.SHAPES, complexity.GROWTH):
        monkeypatch.setitem(shapes, True, TINY)
    out = tmp_path / "new" / "cpu.json"
    words = ["--device", "cpu", "--small", "--repeats", "1", "--out", out, "--methods"]

    def interrupted(*_) -> None:
        raise KeyboardInterrupt

    def product_of_sizes(entry, known, shape, repeats) -> dict[str, int]:
        return dict.fromkeys(complexity.COSTS, shape.tasks * shape.way * shape.images**2)

    monkeypatch.setattr(complexity, "discovery_at", interrupted)  # of growth, which comes after the tables
    with pytest.raises(KeyboardInterrupt):
        run(monkeypatch, *words, "K-means on pixels")
    (row,) = read_json(out)["methods"]
    assert row["discovery"]
    assert not row["growth"]
    for name in ("step_at", "discovery_at"):
        monkeypatch.setattr(complexity, name, product_of_sizes)
    monkeypatch.setattr(complexity, "CLASSES", 4)
    monkeypatch.setattr(complexity, "EACH", 8)
    run(monkeypatch, *words, "MP")
    mp, kmeans = read_json(out)["methods"]
    assert kmeans == row
    assert mp["training"][0]["images"] == 12
    exponents = {axis: found["training"]["flops"]["exponent"] for axis, found in mp["growth"].items()}
    assert exponents == {"tasks": pytest.approx(1), "way": pytest.approx(1), "images": pytest.approx(2)}
    assert section(read_json(out)) in capsys.readouterr().out


def test_rows_measured_otherwise_are_not_mixed(tmp_path):
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps(measured()))
    assert list(complexity.kept(path, {"torch": "2.13"}, ["MM"])) == ["MP", "CATA"]
    assert complexity.kept(path, {"torch": "2.11"}, ["MP", "CATA"]) == {}
    with pytest.raises(InputError, match="has MP, CATA measured with another torch"):
        complexity.kept(path, {"torch": "2.11"}, ["MM"])
