from dataclasses import replace

import pytest
import stability
import torch
from algorithms import ALGORITHMS, LOSSES, MPAlgorithm, Training, draw_order
from PIL import Image
from stability import DELTA, Setting, one_of, study_stability, try_algorithm

from medi.data.augment import to_float
from medi.data.benchmarks import Benchmark
from medi.data.facts import facts_of
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.metrics import acc
from medi.runtime.progress import Silent
from medi.tasks.episodes import UniformSampler
from medi.theory import generalisation_bound

QUICK = Training(hidden=(12,), steps=4, batch=2, inner_steps=2)
SIZE = Setting(way=3, observations=2, queries=2, left_out=2, fresh=6)


@pytest.fixture
def images() -> ImageSet:
    """Six classes of 12 small pictures that are easy to tell apart."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(6).repeat_interleave(12)
    looks = torch.randint(0, 200, (6, 1, 5, 5), generator=generator)
    noise = torch.randint(0, 56, (72, 1, 5, 5), generator=generator)
    return ImageSet((looks[labels] + noise).to(torch.uint8), labels, tuple("abcdef"))


def draw(images: ImageSet, n: int, seed: int = 0):
    return UniformSampler(images.labels, SIZE.way, SIZE.observations, SIZE.queries).sample(
        n, torch.Generator().manual_seed(seed)
    )


def same(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_an_order_shows_every_task_before_any_comes_again():
    order = draw_order(8, Training(steps=7, batch=4), torch.Generator().manual_seed(0))
    assert order.shape == (7, 4)
    for start in range(0, 24, 8):
        assert sorted(order.flatten()[start : start + 8].tolist()) == list(range(8))
    for n in (0, 6):
        with pytest.raises(InputError, match=f"{n} tasks"):
            draw_order(n, Training(batch=4), torch.Generator())


@pytest.mark.parametrize("method", ALGORITHMS)
def test_training_is_repeatable_and_leaving_out_a_task_that_never_came_changes_nothing(images, method):
    algorithm = ALGORITHMS[method](QUICK, (1, 5, 5), SIZE.way, seed=1)
    tasks, order = draw(images, 12), draw_order(12, QUICK, torch.Generator().manual_seed(0))  # 8 of the 12 come
    full = algorithm.fit(images, tasks, order)
    assert same(full, algorithm.fit(images, tasks, order))
    absent = next(i for i in range(12) if i not in order)
    assert same(full, algorithm.fit(images, tasks, order, absent))
    assert not same(full, algorithm.fit(images, tasks, order, int(order[0, 0])))


@pytest.mark.parametrize("method", ALGORITHMS)
def test_a_task_that_is_left_out_may_hold_anything(images, method):
    algorithm = ALGORITHMS[method](QUICK, (1, 5, 5), SIZE.way, seed=1)
    tasks, order = draw(images, 4), draw_order(4, QUICK, torch.Generator().manual_seed(0))
    others = replace(tasks, support=tasks.support.clone(), query=tasks.query.clone())
    strange = draw(images, 1, seed=5)
    others.support[2], others.query[2] = strange.support[0], strange.query[0]
    assert same(algorithm.fit(images, tasks, order, 2), algorithm.fit(images, others, order, 2))
    assert not same(algorithm.fit(images, tasks, order), algorithm.fit(images, others, order))


def test_risks_of_mp_are_those_of_going_through_the_queries_one_by_one(images):
    algorithm = MPAlgorithm(QUICK, (1, 5, 5), SIZE.way, seed=1)
    tasks = draw(images, 5)
    model = algorithm.fit(images, tasks, draw_order(4, QUICK, torch.Generator().manual_seed(0)))
    risks = algorithm.risks(model, images, tasks)
    model.requires_grad_(False)
    for number in range(5):
        task = one_of(tasks, number)
        means = [model.eval()(to_float(images.images[rows])).mean(0) for rows in task.support[0]]
        errors, losses = [], []
        for c, rows in enumerate(task.query[0]):
            for z in model(to_float(images.images[rows])):
                logits = torch.stack([-(z - mean).square().sum() for mean in means]) / MPAlgorithm.TEMPERATURE
                errors.append(float(logits.argmax() != c))
                losses.append(min(2.0, float(logits.logsumexp(0) - logits[c])))
        assert float(risks["zero-one"][number]) == pytest.approx(sum(errors) / 6)
        assert float(risks["clamped"][number]) == pytest.approx(sum(losses) / 6, rel=1e-4)


def test_risks_reach_their_bound_and_never_pass_it(images):
    tasks = draw(images, 8)
    wrong = replace(tasks, query=tasks.query.roll(1, dims=1))  # the queries of one class under the name of another
    for method, some in (("mp", wrong), ("mm", tasks)):
        algorithm = ALGORITHMS[method](QUICK, (1, 5, 5), SIZE.way, seed=1)
        model = algorithm.untrained().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(100)  # sure of whatever it says
        risks = algorithm.risks(model, images, some)
        for name, largest in LOSSES.items():
            assert risks[name].shape == (8,)
            assert 0 <= risks[name].min() <= risks[name].max() <= largest
        assert risks["clamped"].max() > 1
        if method == "mp":
            assert risks["zero-one"].tolist() == [1.0] * 8
            assert risks["clamped"].tolist() == [LOSSES["clamped"]] * 8


def test_the_pieces_of_theorem_3_fit_together(images):
    algorithm = MPAlgorithm(replace(QUICK, steps=30), (1, 5, 5), SIZE.way, seed=1)
    found = try_algorithm(algorithm, images, images, 4, SIZE, seed=0)
    for name, one in found.items():
        assert one["max_loss"] == LOSSES[name]
        assert one["mean_change"] <= one["beta"] <= one["max_loss"]
        assert one["epsilon"] == pytest.approx(generalisation_bound(4, one["beta"], one["max_loss"], DELTA))
        assert one["total"] == pytest.approx(one["train"] + one["epsilon"])
    assert found["zero-one"]["fresh"] < 0.2, "the classes are easy"
    assert found["clamped"]["beta"] > 0


def test_mm_counts_errors_under_the_best_map(images):
    algorithm = ALGORITHMS["mm"](QUICK, (1, 5, 5), SIZE.way, seed=1)
    tasks = draw(images, 4)
    model = algorithm.fit(images, tasks, draw_order(4, QUICK, torch.Generator().manual_seed(0)))
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.copy_(torch.tensor([0.0, 50.0, 0.0]))  # everything in one cluster, whatever the inner steps do
    risks = algorithm.risks(model, images, tasks)
    one_cluster = acc(torch.arange(3).repeat_interleave(2), torch.zeros(6))
    assert risks["zero-one"].tolist() == pytest.approx([1 - one_cluster] * 4)


def test_a_study_is_made_once_and_drawn(tmp_path, images, monkeypatch):
    monkeypatch.setattr(stability, "load", lambda name: Benchmark(facts_of(name), images, images))
    options = {"seeds": 1, "counts": {"mp": (2, 4), "mm": (4,)}, "reporter": Silent(), "training": QUICK}
    rows = study_stability(tmp_path, setting=replace(SIZE, fresh=4), **options)
    assert [(row["job"]["method"], row["job"]["n"]) for row in rows] == [("mp", 2), ("mp", 4), ("mm", 4)]
    assert Image.open(tmp_path / "stability.png").width > 600
    assert study_stability(tmp_path, setting=replace(SIZE, fresh=4), **options) == rows
