import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from processes import end, kill, start_ranks
from safetensors.torch import load_file, save_file
from small_sets import patterns
from torch import Tensor, nn

from medi.core.errors import InputError, LostError
from medi.core.files import read_journal
from medi.core.tensors import load_arrays
from medi.data.facts import Augmentation
from medi.jobs import ranks
from medi.methods import Method, Plan
from medi.methods.cata_views import ViewsConfig
from medi.methods.inner_steps import InnerSteps
from medi.methods.mm import MM
from medi.methods.mp import MP
from medi.methods.pretraining import Pretraining
from medi.nn import across_ranks
from medi.nn.context import Context
from medi.nn.loop import train
from medi.nn.norm import forward_together, normalisation
from medi.nn.schedule import Schedule

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
CHANGES = Augmentation(crop=2, flip=True, colour=0.2)


def on_ranks(count: int, function, *arguments) -> None:
    def one() -> None:
        with ranks.joined("cpu"):
            function(*arguments)

    assert [end(process) for process in start_ranks(count, one)] == [0] * count


def fit(method: Method, sampler: str, out: Path) -> None:
    """Train; the first rank keeps a checkpoint of each stage, every rank keeps what it has learnt."""
    views = ViewsConfig(network="conv4", batch=33, hidden=8, looks=2, schedule=replace(SGD, steps=4))
    context = Context(seed=3, folder=out)
    plan = Plan(way=3, observations=2, queries=2, augmentation=CHANGES, sampler=sampler, views=views, context=context)
    known = patterns(6, each=12, channels=1)
    learner = method.fit(known, plan)
    learnt = learner.model.state_dict() if isinstance(method, MM) else {"features": learner.encode(known.images)}
    save_file({name: value.contiguous() for name, value in learnt.items()}, out / f"rank{ranks.rank()}")


SGD = Schedule(steps=4, rate=0.01, optimiser="sgd", shape="constant", precision="float32")
BEFORE = Pretraining(network="conv4", batch=31, schedule=replace(SGD, steps=3))
CASES = {
    "mp": (MP(images=37, schedule=SGD), "uniform"),  # 3 tasks of 12 images for 2 ranks
    "mp-one-task": (MP(images=1, schedule=replace(SGD, clip=0.5)), "uniform"),
    "mp-pretrained-cata": (MP(images=37, pretraining=BEFORE, schedule=SGD), "cata"),
    "mm": (MM(tasks=3, inner=InnerSteps(steps=2, top=3), schedule=SGD), "uniform"),
}


def stages(folder: Path) -> dict[str, dict[str, Tensor]]:
    """The trained tensors, running statistics included, of each stage."""
    return {path.name: load_file(path) for path in folder.glob("*.safetensors")}


def distance(ones: dict[str, Tensor], others: dict[str, Tensor]) -> float:
    return float(torch.cat([(value - others[name]).double().flatten() for name, value in ones.items()]).norm())


@pytest.fixture
def double():
    """Numbers of 64 bits: in 32 a rounding that flips one ReLU would look like a mistake of ours."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("case", CASES)
def test_two_processes_end_with_the_parameters_of_one(tmp_path, case, monkeypatch):
    """Batches do not divide by two, and one task alone is shared as well."""
    method, sampler = CASES[case]
    start, one, two = tmp_path / "start", tmp_path / "one", tmp_path / "two"
    for folder in (start, one, two):
        folder.mkdir()
    fit(method, sampler, one)
    on_ranks(2, fit, method, sampler, two)
    monkeypatch.setattr(Schedule, "rate_at", lambda self, step: 0.0)
    fit(method, sampler, start)
    begun, alone, together = stages(start), stages(one), stages(two)
    assert begun.keys() == alone.keys() == together.keys()
    for stage, trained in alone.items():
        moved = distance(trained, begun[stage])
        assert moved > 0.01
        assert distance(trained, together[stage]) < 1e-9 * moved, stage
    first, second = load_file(two / "rank0"), load_file(two / "rank1")
    assert all(torch.equal(first[name], second[name]) for name in first), "ranks drift apart"
    for log in one.glob("*.jsonl"):
        ours, theirs = read_journal(two / log.name), read_journal(log)
        assert [row["step"] for row in ours] == [row["step"] for row in theirs], "one rank alone writes the log"


def normalise(norm: nn.Module, x: Tensor, target: Tensor, out: Path | None = None) -> dict[str, Tensor]:
    """A training step's output, gradients and statistics of a norm layer between two sums."""
    mine = x[ranks.part(len(x))].clone().requires_grad_()
    output = forward_together(norm, mine, len(x))
    (output * target).square().sum().backward()
    across_ranks.average_gradients(norm)
    gradient = across_ranks.gather(mine.grad, len(x)) / ranks.count()
    found = {"output": output.detach(), "gradient": gradient, "weight": norm.weight.grad, "bias": norm.bias.grad}
    found |= {name: value for name, value in norm.state_dict().items() if name != "num_batches_tracked"}
    if out and ranks.is_first():
        save_file(found, out)
    return found


@pytest.mark.parametrize("shape", [(7, 3), (7, 3, 4, 2)])
def test_a_norm_over_three_processes_is_torchs_norm_of_the_whole_batch(tmp_path, shape):
    generator = torch.Generator().manual_seed(0)
    x, target = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))
    x = 5 * x + 100  # far from zero: squares minus the square of the mean would be rounded away
    ours = normalisation("running", 3).double()
    theirs = (nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d)(3).double()
    expected = normalise(theirs, x, target)
    on_ranks(3, normalise, ours, x, target, tmp_path / "found")
    found = load_file(tmp_path / "found")
    assert found.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-9, atol=1e-9)


def test_a_strange_norm_and_more_processes_than_items_of_a_batch_are_refused():
    def refused() -> None:
        with pytest.raises(InputError, match="BatchNorm1d cannot normalise over processes"):
            forward_together(nn.BatchNorm1d(3), torch.randn(2, 3), 4)
        with pytest.raises(InputError, match="start at most 1"):
            ranks.part(1)

    on_ranks(2, refused)


def test_parts_cover_a_batch_and_bytes_of_the_first_rank_reach_all(tmp_path):
    def one() -> None:
        part = ranks.part(8)
        (tmp_path / f"{ranks.rank()}").write_text(f"{part.start}-{part.stop}")
        assert across_ranks.from_first(lambda: b"" if ranks.is_first() else b"other") == b""
        assert across_ranks.from_first(lambda: b"first" if ranks.is_first() else b"other") == b"first"

    on_ranks(3, one)
    assert [(tmp_path / f"{rank}").read_text() for rank in range(3)] == ["0-2", "2-5", "5-8"]


def toy_training(folder: Path | None, wait_at: int | None = None) -> dict[str, Tensor]:
    """A training of 100 steps; from step `wait_at` on it takes its time."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = nn.Sequential(nn.Linear(4, 8), normalisation("running", 8), nn.ReLU(), nn.Linear(8, 2))
    steps = 0

    def loss(generator: torch.Generator) -> Tensor:
        nonlocal steps
        steps += 1
        if wait_at and steps >= wait_at:
            time.sleep(0.05)
        x = torch.randn(16, 4, generator=generator)
        answers = forward_together(model, x[ranks.part(16)], 16)
        return nn.functional.cross_entropy(answers, (x.sum(1) > 0).long())

    context = Context(seed=1, folder=folder, checkpoint_seconds=0)
    train(model, loss, Schedule(steps=100, optimiser="sgd", rate=0.05), context, title="toy", identity={})
    return model.state_dict()


@pytest.mark.parametrize("dead", [0, 1])
def test_a_dead_rank_ends_the_others_with_a_message_and_any_number_of_ranks_continues(tmp_path, dead):
    whole = toy_training(None)

    def one() -> None:
        with ranks.joined("cpu"):
            try:
                toy_training(tmp_path, wait_at=60)
            except LostError as error:
                (tmp_path / "message").write_text(str(error))
                os._exit(1)

    processes = start_ranks(2, one)
    while not list(tmp_path.glob("toy-*.safetensors")) or step(tmp_path) < 50:
        assert all(process.is_alive() for process in processes)
        time.sleep(0.05)
    kill(processes[dead])
    assert end(processes[1 - dead]) == 1
    assert "another process of the job is gone" in (tmp_path / "message").read_text()
    assert "--resume" in (tmp_path / "message").read_text()
    assert ".cc:" not in (tmp_path / "message").read_text(), "where in gloo's source is of no use"
    assert 50 <= step(tmp_path) < 100
    continued = toy_training(tmp_path) if dead else None
    if not dead:
        on_ranks(3, toy_training, tmp_path)
        tensors = load_file(next(tmp_path.glob("*.safetensors")))
        continued = {name.removeprefix("model/"): value for name, value in tensors.items()}
    assert step(tmp_path) == 100
    for name, value in whole.items():
        torch.testing.assert_close(continued[name], value, rtol=1e-4, atol=1e-5)


def step(folder: Path) -> int:
    return load_arrays(next(folder.glob("*.safetensors")))[1]["step"]
