"""Costs are those that a count by hand gives, and their page shows what was measured."""

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from studies import benchmark
from torch import nn

from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods.inner_steps import Clusterer, InnerSteps
from medi.methods.mm import MetaLoss, MMConfig
from medi.methods.recipe import Recipe, Tasks
from medi.nets import build
from medi.nets.per_task_conv import batch_over_tasks

ROOT = Path(__file__).resolve().parent.parent
costs, methods, page, complexity = map(benchmark, ("costs", "complexity_methods", "complexity_page", "complexity"))
CPU = torch.device("cpu")


def conv4(side: int) -> tuple[int, int]:
    """FLOPs of Conv-4's forward pass of one image by M N K² H W a layer, and those of its first layer."""
    layers = [2 * 9 * m * 64 * (side // 2**i) ** 2 for i, m in enumerate((3, 64, 64, 64))]
    return sum(layers), layers[0]


def meta_step(tasks: int, steps: int, *, ours: bool = True, side: int = 0, order: bool = True):
    body = build("conv4", (3, 16, 16), norm="batch")
    model = Clusterer(body, body.width, 2)
    batch_over_tasks(model, side, on=ours)
    loss = MetaLoss(model, MMConfig(inner=InnerSteps(steps=steps, first_order=not order)))
    images, labels = torch.randn(tasks, 10, 3, 16, 16), torch.arange(2).repeat(2)
    return lambda: loss(images, labels.repeat(tasks, 1), torch.arange(2).repeat(tasks, 3)).backward()


@pytest.mark.parametrize("side", [16, 32])
def test_conv4s_forward_pass_costs_what_the_papers_formula_says(side):
    network, images = build("conv4", (3, side, side)).eval(), torch.randn(3, 3, side, side)
    with torch.inference_mode():
        assert costs.count(lambda: network(images)) == 3 * conv4(side)[0]


def test_a_training_step_costs_three_forward_passes_but_for_the_gradient_of_the_images():
    network, images = build("conv4", (3, 16, 16)), torch.randn(3, 3, 16, 16)
    whole, first = conv4(16)
    assert costs.count(lambda: network(images).sum().backward()) == 3 * (3 * whole - first)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d])
def test_convolutions_in_groups_cost_what_each_group_costs_alone(groups, kind):
    def cost(channels: int, groups: int) -> int:
        layer = kind(channels, 2 * channels, 3, stride=2, groups=groups)
        images = torch.randn(2, channels, 9, 9, requires_grad=True)
        return costs.count(lambda: layer(images).sum().backward())

    assert cost(4 * groups, groups) == groups * cost(4, 1)


def test_a_second_order_step_grows_linearly_with_inner_steps_and_with_tasks():
    one, two, four = (costs.count(meta_step(1, steps)) for steps in (1, 2, 4))
    assert four - two == 2 * (two - one) > 0
    assert costs.count(meta_step(3, 2)) == 3 * two


def test_a_second_order_step_costs_what_a_count_by_hand_gives():
    (whole, first), shown, asked, tasks, steps = conv4(16), 4, 6, 2, 2
    # A forward pass, its gradients (not of the images), and of each of these products both gradients that are wanted.
    inner = (3 * whole - first) + (2 * whole - first) + 2 * (whole - first) + (2 * whole - first)
    convolutions = tasks * (steps * shown * inner + (shown + asked) * (3 * whole - first))
    assert costs.count(meta_step(tasks, steps)) == pytest.approx(convolutions, rel=1e-3)  # and a head and pairs
    first_order = tasks * (steps * shown + shown + asked) * (3 * whole - first)
    assert costs.count(meta_step(tasks, steps, order=False)) == pytest.approx(first_order, rel=1e-3)


def test_every_way_to_convolve_is_counted_alike():
    ours = costs.count(meta_step(2, 2))
    assert costs.count(meta_step(2, 2, side=8)) == ours
    # Torch's own also takes a gradient with respect to the images at each of the inner steps, and drops it.
    assert costs.count(meta_step(2, 2, ours=False)) == ours + 2 * 2 * 4 * conv4(16)[1]


@given(p=st.floats(-3, 3), c=st.floats(1e-3, 1e3))
def test_the_exponent_of_a_power_is_found(p, c):
    assert costs.exponent((1, 2, 4), [c * n**p for n in (1, 2, 4)]) == pytest.approx(p, abs=1e-9)


def test_memory_is_the_peak_of_tensors_that_live_together():
    before = torch.zeros(1000)

    def work():
        first, second = torch.zeros(2**18), torch.zeros(2**18)
        del first
        third = torch.zeros(2**17)
        return second, third, before

    assert costs.peak(work, CPU) == 2 * 4 * 2**18
    kept: list[torch.Tensor] = []
    assert costs.peak(lambda: kept.append(torch.zeros(2**20)), CPU) == 4 * 2**20
    kept.clear()
    assert costs.peak(work, CPU) == 2 * 4 * 2**18  # whatever was left by those before
    assert costs.peak(lambda: None, CPU) == 0


def test_a_clock_stops_after_its_repeats_or_its_seconds():
    assert len(costs.clock(lambda: None, CPU, 4)) == 4
    assert len(costs.clock(lambda: sum(range(100_000)), CPU, 1000, seconds=1e-9)) == 1


def test_training_loops_come_back_after_a_failure():
    real = costs._Run.fit_loop
    with pytest.raises(RuntimeError), costs.in_place_of_loops(lambda run: None):
        raise RuntimeError
    assert costs._Run.fit_loop is real


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("name", methods.METHODS)
def test_every_method_has_the_same_network(name, small):
    found = set(networks(asdict(methods.METHODS[name].preset(methods.SHAPES[small]))))
    assert found == ({None} if name == "K-means on pixels" else {"conv4"})


def networks(config: object) -> Iterator[object]:
    """What is called a network anywhere inside a config."""
    if isinstance(config, dict):
        yield from (value for name, value in config.items() if name == "network")
        config = tuple(config.values())
    if isinstance(config, tuple):
        for part in config:
            yield from networks(part)


def tiny(name: str, classes: int = 4, each: int = 8, **changes) -> tuple:
    labels = torch.arange(classes).repeat_interleave(each)
    known = ImageSet(complexity.random_images(classes * each, CPU), labels, tuple(map(str, range(classes))))
    return methods.METHODS[name], known, replace(TINY, **changes)


TINY = methods.Shape(tasks=2, way=2, observations=1, queries=2, inner=1, small=True)


def test_a_step_of_mp_costs_three_passes_of_its_images():
    stages, learner = complexity.measure_training(*tiny("MP"), repeats=2)
    assert [stage["stage"] for stage in stages] == ["mp"]
    whole, first = conv4(32)
    assert stages[0]["images"] == 12
    assert stages[0]["flops"] == pytest.approx(12 * (3 * whole - first), rel=1e-3)
    assert stages[0]["steps"] == methods.MP.presets["cpu"].schedule.steps
    assert stages[0]["fastest"] <= stages[0]["seconds"] <= stages[0]["slowest"]
    entry, _, shape = tiny("MP")
    discovery = complexity.measure_discovery(entry, learner, shape, CPU, 1, whole=True)
    assert discovery["flops"] == pytest.approx(6 * whole, rel=1e-2)
    assert discovery["steps"] == 0


def test_medi_pays_for_every_image_of_its_two_stages_and_for_five_views_of_each_it_reads():
    entry, known, shape = tiny("medi", classes=20, each=10)
    stages, learner = complexity.measure_training(entry, known, shape, repeats=1)
    recipe = entry.preset(shape).members[0]
    assert [(stage["stage"], stage["images"]) for stage in stages] == [("medi-supervised", 128), ("medi-tasks", 200)]
    assert [stage["steps"] for stage in stages] == [recipe.supervised.schedule.steps, recipe.tasks.schedule.steps]
    whole, first = conv4(32)
    for stage in stages:
        assert stage["flops"] == pytest.approx(stage["images"] * (3 * whole - first), rel=3e-3)  # and a classifier
    discovery = complexity.measure_discovery(entry, learner, shape, CPU, 1, whole=True)
    assert discovery["flops"] == pytest.approx(6 * 5 * whole, rel=1e-2)
    assert discovery["steps"] == 0


def test_medis_recipe_is_the_default_one_and_grows_with_its_images():
    small, large = (methods.taught(methods.Shape(images=images)).members[0] for images in (1, 4))
    assert replace(small, network="resnet18", tasks=None) == Recipe()
    assert small.tasks == Tasks()
    assert large.supervised.batch == 4 * small.supervised.batch
    for size in ("observations", "queries", "images"):
        assert getattr(large.tasks, size) == 4 * getattr(small.tasks, size)
    assert large.tasks.way == small.tasks.way
    assert large.tasks.observations + large.tasks.queries <= methods.EACH


@pytest.mark.parametrize("name", ["DTC", "MCL"])
def test_flops_of_a_whole_discovery_are_those_of_all_its_steps(name):
    entry, known, shape = tiny(name)
    config = entry.preset(shape)
    config = replace(config, stage=replace(config.stage, epochs=1, least=3 * complexity.CYCLE))
    with costs.in_place_of_loops(lambda run: None):
        learner = entry.make(config).fit(known, shape.plan(CPU))
    images, places = complexity.random_images(6, CPU), torch.arange(6)[None]

    def discover() -> None:
        found = learner.discover(images, places[:, :2], 2, torch.Generator().manual_seed(0))
        found.assign(images, places[:, 2:])

    measured = complexity.measure_discovery(entry, learner, shape, CPU, 1, whole=True)
    assert measured["steps"] == 3 * complexity.CYCLE
    assert measured["flops"] == costs.count(discover)


def test_a_discovery_by_a_network_trained_on_the_bag_grows_with_its_steps():
    def flops(steps: int) -> int:
        entry, known, shape = tiny("DTC", inner=steps)
        return complexity.discovery_at(entry, known, shape, 1)["flops"]

    one, two, four = map(flops, (1, 2, 4))
    whole, first = conv4(32)
    # Two augmentations of two observations; k-means in between moves the rest by a few operations.
    assert two - one == pytest.approx(4 * (3 * whole - first), rel=1e-2)
    assert four - two == pytest.approx(2 * (two - one), rel=1e-2)


def measured() -> dict:
    costs = {"flops": 3e9, "peak bytes": 2**21, "seconds": 0.5, "fastest": 0.25, "slowest": 1.0, "repeats": 3}
    growth = {"tasks": {"training": {cost: {"exponent": 1.0} for cost in ("flops", "seconds", "peak bytes")}}}
    training = [{"stage": "mp", "steps": 2000, "images": 100} | costs]
    cata = {"method": "CATA", "training": [], "discovery": None, "growth": {}}
    row = {"method": "MP", "training": training, "discovery": {"steps": 0} | costs, "growth": growth}
    about = {"device": "cpu (x86_64, 1 threads)", "processor": "Abacus 9", "cores": 2, "torch": "2.13.0"}
    about |= {"python": "3.11.7", "network": "conv4 on 3 x 32 x 32"}
    shapes = {"shape": asdict(TINY), "growth starts at": asdict(replace(TINY, tasks=1))}
    return about | shapes | {"methods": [row | {"load": 0.5, "took": 50.0}, cata | {"load": 1.5, "took": 75.0}]}


def test_tables_say_what_was_measured():
    training, discovery, growth = (part.splitlines()[2] for part in page.section(measured()).split("\n\n")[-3:])
    assert training == "| MP: mp | 100 | 3 | 500 (250 to 1,000; 3) | 2 | 30 | 2,000 | 6 |"
    assert discovery == "| MP | 0 | 3 | 500 (250 to 1,000; 3) | 2 |"
    assert growth == "| MP | tasks | 1 | 1.00 | 1.00 | 1.00 |  |  |  |"


def test_a_section_says_where_and_how_large_it_was_measured():
    text = " ".join(page.section(measured()).split())
    assert "## One CPU core Conv4 on 3 x 32 x 32, configs for a CPU." in text
    assert (
        "Tables at 2 tasks, 2-way, 1 observations and 2 queries of a class, 1 inner steps; growth from 1 task" in text
    )
    assert "cpu (x86_64, 1 threads), Abacus 9 with 2 cores, a load of 0.5 to 1.5, torch 2.13.0, Python 3.11.7;" in text
    assert "2 min 5 s in all." in text
    assert "in all ([cpu.json](../results/complexity/cpu.json))." in page.section(measured(), "cpu")
    on_gpu = page.section(measured() | {"device": "NVIDIA H200", "shape": asdict(replace(TINY, small=False))})
    assert "\n## One NVIDIA H200\n\nConv4 on 3 x 32 x 32, configs for a GPU." in on_gpu
    assert "NVIDIA H200, Abacus 9 with 2 cores, torch" in on_gpu


@pytest.mark.parametrize(
    "facts",
    [{}, [], measured() | {"methods": [{"method": "MP"}]}, measured() | {"methods": 3}, measured() | {"methods": []}],
)
def test_figures_of_something_else_are_refused(facts):
    with pytest.raises(InputError, match=r"no figures of complexity\.py"):
        page.section(facts)


def test_a_section_goes_between_its_marks_and_nowhere_else():
    text = "a\n<!-- cpu -->\nold\n<!-- end of cpu -->\nb\n"
    assert page.insert(text, "cpu", "new\n") == "a\n<!-- cpu -->\nnew\n<!-- end of cpu -->\nb\n"
    with pytest.raises(InputError, match="0 places marked '<!-- h200 -->'"):
        page.insert(text, "h200", "new\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--methods", "MMM"], "unknown method 'MMM'"),
        (["--table", "nothing.json"], "cannot read nothing.json"),
        (["--table", "broken.json"], "broken.json is not JSON"),
        (["--table", "good.json", "--into", "nothing.md"], "cannot read nothing.md"),
        (["--repeats", "0"], "--repeats 0"),
        (["--device", "abacus"], "unknown device 'abacus'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words, reason, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("broken.json").write_text("{")
    Path("good.json").write_text(json.dumps(measured()))
    monkeypatch.setattr(sys, "argv", ["complexity.py", *words])
    with pytest.raises(SystemExit) as stopped:
        complexity.main()
    said = capsys.readouterr()
    assert stopped.value.code == 2
    assert reason in said.err
    assert said.err.count("\n") == 1
    assert not said.out


def test_a_measurement_is_written_and_becomes_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for shapes in (complexity.SHAPES, complexity.GROWTH):
        monkeypatch.setitem(shapes, True, TINY)
    out = tmp_path / "new" / "cpu.json"
    words = ["--device", "cpu", "--small", "--repeats", "1", "--methods", "K-means on pixels", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["complexity.py", *words])
    complexity.main()
    facts = complexity.read(out)
    said = capsys.readouterr()
    assert page.section(facts) in said.out
    assert "K-means on pixels, growth of discovery with images\n" in said.err
    growth = facts["methods"][0]["growth"]["images"]["discovery"]["flops"]
    assert all(map(math.isfinite, growth["values"]))
    Path("page.md").write_text("<!-- cpu -->\n<!-- end of cpu -->\n")
    monkeypatch.setattr(sys, "argv", ["complexity.py", "--table", str(out), "--into", "page.md"])
    complexity.main()
    assert page.section(facts, "cpu") in Path("page.md").read_text()


def test_a_measurement_that_is_cut_off_leaves_what_it_had(tmp_path, monkeypatch):
    for shapes in (complexity.SHAPES, complexity.GROWTH):
        monkeypatch.setitem(shapes, True, TINY)
    out, left = tmp_path / "cpu.json", 3
    real = complexity.measure_discovery

    def cut_off(*arguments, **options):
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(complexity, "measure_discovery", cut_off)
    words = [
        "--device",
        "cpu",
        "--small",
        "--repeats",
        "1",
        "--methods",
        "K-means on pixels,MP,CATA",
        "--out",
        str(out),
    ]
    monkeypatch.setattr(sys, "argv", ["complexity.py", *words])
    with pytest.raises(KeyboardInterrupt):
        complexity.main()
    rows = {row["method"]: row for row in complexity.read(out)["methods"]}
    # Tables come first: the third discovery is the first of K-means's growth.
    assert list(rows) == ["CATA", "MP", "K-means on pixels"]
    assert all(row["discovery"] for name, row in rows.items() if name != "CATA")
    assert not any(row["growth"] for row in rows.values())
    assert "| MP: mp | 12 |" in page.section(complexity.read(out))


def test_rows_of_other_methods_stay_where_they_were_measured_alike(tmp_path):
    path, facts = tmp_path / "cpu.json", {"torch": "2.13"}
    assert complexity.kept(path, facts, ["MM"]) == {}
    path.write_text(json.dumps(measured() | facts))
    assert list(complexity.kept(path, facts, ["MM"])) == ["MP", "CATA"]
    every = ["MP", "CATA"]
    assert complexity.kept(path, facts, every) == complexity.kept(path, {"torch": "2.11"}, every) == {}
    with pytest.raises(InputError, match="has MP, CATA measured with another torch"):
        complexity.kept(path, {"torch": "2.11"}, ["MM"])


@pytest.mark.parametrize("path", sorted((ROOT / "results" / "complexity").glob("*.json")), ids=lambda path: path.stem)
def test_the_page_shows_what_was_measured(path):
    text = (ROOT / "docs" / "complexity.md").read_text()
    assert page.insert(text, path.stem, page.section(complexity.read(path), path.stem)) == text


@pytest.mark.parametrize("name", ["cpu", "h200"])
def test_the_page_has_a_place_for_every_command_it_names(name):
    text = (ROOT / "docs" / "complexity.md").read_text()
    assert f"--out results/complexity/{name}.json" in text
    assert "new" in page.insert(text, name, "new\n")


def test_the_pages_multiples_of_a_forward_pass_are_those_counted_by_hand():
    text = (ROOT / "docs" / "complexity.md").read_text()
    whole, first = conv4(32)
    step, second_order = 3 * whole - first, 9 * whole - 5 * first
    for words in (
        f"{whole / 1e6:.1f} million",
        f"first layer is f₁, {first / 1e6:.2f} million",
        f"| 3 f - f₁ | {step / 1e6:.1f} M |",
        f"| 9 f - 5 f₁ | {second_order / 1e6:.0f} M |",
        f"{second_order / step:.1f} times as costly",
        f"{(10 * 25 * second_order + 100 * step) / (100 * step):.1f} times an MP step",
    ):
        assert words in " ".join(text.split())


def page_and_figures(machine: str) -> tuple[str, dict[str, dict], list[float]]:
    """The page on one line, the rows of a machine by method, and what a step of MM costs beside one of MP."""
    text = " ".join((ROOT / "docs" / "complexity.md").read_text().split())
    facts = complexity.read(ROOT / "results" / "complexity" / f"{machine}.json")
    rows = {row["method"]: row for row in facts["methods"]}
    mm, mp = (rows[name]["training"][0] for name in ("MM", "MP"))
    return text, rows, [mm[cost] / mp[cost] for cost in complexity.COSTS]


def test_the_pages_ratios_are_those_of_the_committed_figures():
    text, rows, (flops, seconds, memory) = page_and_figures("cpu")
    assert f"{flops:.1f} times the FLOPs, {memory:.1f} times the memory and {seconds:.0f} times the seconds" in text
    trained = [name for name in ("DTC", "KCL", "MCL", "RS") if name in rows]
    ratios = [f"{rows[name]['discovery']['flops'] / rows['MP']['discovery']['flops']:.0f}" for name in trained]
    names, times = (", ".join(words[:-1]) + " and " + words[-1] for words in (trained, ratios))
    assert f"those of {names} {times} times" in text
    assert f"MM's costs {rows['MM']['discovery']['flops'] / rows['MP']['discovery']['flops']:.1f} times" in text
    of_an_image = [f"{stage['flops'] / stage['images'] / 1e6:.1f}" for stage in rows["medi"]["training"]]
    assert f"in either of its stages ({' and '.join(of_an_image)} MFLOPs)" in text
    medi = rows["medi"]["discovery"]
    flops, seconds = (medi[cost] / rows["MP"]["discovery"][cost] for cost in ("flops", "seconds"))
    assert f"medi's costs {flops:.1f} times MP's FLOPs and {seconds:.1f} times its seconds" in text
    linear = [
        row["growth"][axis]["training"]["flops"]["exponent"]
        for row in rows.values()
        for axis in ("tasks", "way", "images")
        if "training" in row["growth"].get(axis, {})
    ]
    assert f"({min(linear):.2f} to {max(linear):.2f})" in text


def test_the_pages_ratios_on_the_gpu_are_those_of_the_committed_figures():
    text, rows, (flops, seconds, memory) = page_and_figures("h200")
    assert f"{flops:.1f} times the FLOPs, {memory:.1f} times the memory and {seconds:.1f} times the seconds" in text
    grown = [
        growth["training"]["seconds"]
        for name, row in rows.items()
        for axis, growth in row["growth"].items()
        if name != "MM" and "training" in growth and axis != "inner steps"
    ]
    times = [after / before for before, _, after in (cost["values"] for cost in grown)]
    assert f"take {min(times):.1f} to {max(times):.1f} times the seconds" in text
    exponents = [cost["exponent"] for cost in grown]
    assert f"(exponents {min(exponents):.2f} to {max(exponents):.2f})" in text
    of_mp = rows["MP"]["discovery"]["seconds"]
    assert f"{1000 * of_mp:.0f} ms by MP" in text
    assert f"(K-means in an embedding: {1000 * rows['K-means']['discovery']['seconds']:.1f} ms)" in text
    slower = {name: row["discovery"]["seconds"] / of_mp for name, row in rows.items() if row["discovery"]}
    assert (
        f"by medi {slower['medi']:.1f} times that, by MM {slower['MM']:.1f}, by DTC {slower['DTC']:.1f}, "
        f"by RS {slower['RS']:.0f}, by KCL and MCL {slower['KCL']:.0f} times"
    ) in text
