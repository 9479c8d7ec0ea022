import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from medi.core.errors import InputError
from medi.core.files import read_journal
from medi.core.tensors import load_arrays, save_arrays
from medi.nn.checkpoint import pack_optimiser, unpack_optimiser
from medi.nn.context import Context
from medi.nn.devices import choose_device
from medi.nn.loop import WatchedLoss, train
from medi.nn.schedule import Schedule

IDENTITY = {"task": "toy"}


def network() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))


def loss_of(model: nn.Module, stop_at: int | None = None, poison_at: int | None = None):
    calls = 0

    def loss(generator: torch.Generator) -> Tensor:
        nonlocal calls
        calls += 1
        if calls == stop_at:
            raise KeyboardInterrupt
        x = torch.randn(16, 4, generator=generator)
        error = nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long())
        return error * (math.nan if calls == poison_at else 1.0)

    return loss


def run(folder: Path | None, schedule: Schedule, checkpoint_seconds: float = 0, **kwargs) -> dict[str, Tensor]:
    model = network()
    context = Context(seed=1, folder=folder, checkpoint_seconds=checkpoint_seconds)
    train(model, loss_of(model, **kwargs), schedule, context, title="toy", identity=IDENTITY)
    return model.state_dict()


def test_a_training_of_no_steps_is_refused_by_its_name(tmp_path):
    with pytest.raises(InputError, match="toy: steps=0"):
        run(tmp_path, Schedule(steps=0))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("optimiser", ["adam", "sgd", "plain-sgd"])
@pytest.mark.parametrize("stop_at", [30, 99])
def test_an_interrupted_training_continues_bit_for_bit(tmp_path, optimiser, stop_at):
    schedule = Schedule(steps=100, optimiser=optimiser, rate=0.01, decay=0.01, clip=1.0)
    whole = run(None, schedule)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, schedule, stop_at=stop_at)
    continued = run(tmp_path, schedule)
    assert whole.keys() == continued.keys()
    for name in whole:
        assert torch.equal(whole[name], continued[name]), name


@pytest.mark.parametrize("checkpoint_seconds", [0, 20], ids=["with a checkpoint", "without one yet"])
def test_the_log_of_an_interrupted_training_has_every_step_once(tmp_path, checkpoint_seconds):
    schedule = Schedule(steps=100)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, schedule, checkpoint_seconds, stop_at=60)
    run(tmp_path, schedule)
    (log,) = tmp_path.glob("toy-*.jsonl")
    assert [row["step"] for row in read_journal(log)] == [25, 50, 75, 100]


def test_a_finished_training_is_taken_from_the_folder(tmp_path):
    schedule = Schedule(steps=50)
    first = run(tmp_path, schedule)
    again = run(tmp_path, schedule, stop_at=1)  # a single further step would raise
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_other_identities_seeds_or_schedules_are_other_trainings(tmp_path):
    model = network()
    for identity, seed, steps in [({"a": 1}, 0, 5), ({"a": 2}, 0, 5), ({"a": 1}, 1, 5), ({"a": 1}, 0, 6)]:
        train(model, loss_of(model), Schedule(steps), Context(seed=seed, folder=tmp_path), title="t", identity=identity)
    assert len(list(tmp_path.glob("t-*.safetensors"))) == 4


def test_a_checkpoint_of_another_identity_is_refused_by_name(tmp_path):
    schedule = Schedule(steps=5)
    run(tmp_path, schedule)
    (path,) = tmp_path.glob("*.safetensors")
    arrays, facts = load_arrays(path)
    save_arrays(path, arrays, {**facts, "identity": {**facts["identity"], "task": "another"}})
    with pytest.raises(InputError, match=rf"{path.name} was trained with other settings"):
        run(tmp_path, schedule)


def test_what_trainings_took_is_added_up_whether_done_or_found(tmp_path):
    model, context = network(), Context(seed=1, folder=tmp_path)
    for times in (1, 2):
        seconds = train(model, loss_of(model), Schedule(5), context, title="toy", identity=IDENTITY)
        assert context.stopwatch.seconds == pytest.approx(times * seconds)
    assert seconds > 0


def test_training_leaves_torchs_own_generator_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    run(None, Schedule(steps=3))
    assert torch.equal(before, torch.get_rng_state())


def test_a_loss_that_is_no_number_stops_with_the_step_and_the_rate(tmp_path):
    with pytest.raises(InputError, match=r"diverged before step 75 at learning rate 0.25"):
        run(tmp_path, Schedule(steps=100, rate=0.25), poison_at=60)
    _, facts = load_arrays(next(tmp_path.glob("*.safetensors")))
    assert facts["step"] == 50


def test_rates_follow_their_formula():
    halve = Schedule(steps=100, rate=1.0, shape="halve", halve_every=20)
    assert [halve.rate_at(s) for s in (0, 19, 20, 59, 60)] == [1, 1, 0.5, 0.25, 0.125]
    cosine = Schedule(steps=100, rate=2.0, shape="cosine")
    assert cosine.rate_at(0) == 2
    assert cosine.rate_at(50) == pytest.approx(1)
    assert cosine.rate_at(99) == pytest.approx(2 * 0.5 * (1 + math.cos(math.pi * 0.99)))
    cycle = Schedule(steps=100, rate=1.0, shape="onecycle")
    assert max(cycle.rate_at(s) for s in range(100)) == cycle.rate_at(10) == pytest.approx(1)
    assert cycle.rate_at(0) == pytest.approx(0.05)
    assert Schedule(steps=10, rate=0.3, shape="constant").rate_at(9) == 0.3


def test_a_file_that_is_no_checkpoint_is_refused_by_name(tmp_path):
    run(tmp_path, Schedule(steps=2))
    (path,) = tmp_path.glob("*.safetensors")
    path.write_bytes(b"garbage" * 100)
    with pytest.raises(InputError, match=rf"{path.name} is not a checkpoint"):
        run(tmp_path, Schedule(steps=2))


def test_a_device_that_is_not_there_or_not_known_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto").type == "cpu"
    with pytest.raises(InputError, match="use --device cpu"):
        choose_device("cuda")
    with pytest.raises(InputError, match="unknown device 'cdua'"):
        choose_device("cdua")


def test_the_best_weights_on_the_way_are_kept_and_an_interruption_does_not_change_which(tmp_path):
    # The score of a look depends on the weights alone; it is made to peak in the middle.
    scores = [0.2, 0.9, 0.5, 0.4]

    def fit(folder: Path | None, stop_at: int | None = None) -> dict[str, Tensor]:
        model = network()
        looks = iter(scores if not (folder and list(folder.glob("toy-*.safetensors"))) else scores[2:])
        watched = WatchedLoss(loss_of(model, stop_at), 25, lambda: next(looks))
        context = Context(seed=1, folder=folder, checkpoint_seconds=0)
        train(model, watched, Schedule(100), context, title="toy", identity=IDENTITY)
        return model.state_dict()

    best = fit(None)
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path, stop_at=60)
    continued = fit(tmp_path)
    assert all(torch.equal(best[name], continued[name]) for name in best)
    last = run(None, Schedule(100))
    assert not all(torch.equal(best[name], last[name]) for name in best)


def test_a_look_that_may_not_choose_is_logged_and_leaves_the_last_weights(tmp_path):
    model = network()
    looks = iter([0.9, 0.1])
    watched = WatchedLoss(loss_of(model), 50, lambda: next(looks), keep_best=False, name="acc")
    context = Context(seed=1, folder=tmp_path)
    train(model, watched, Schedule(100), context, title="toy", identity=IDENTITY)
    last = run(None, Schedule(100))
    assert all(torch.equal(last[name], tensor) for name, tensor in model.state_dict().items())
    rows = read_journal(next(tmp_path.glob("*.jsonl")))
    assert [(row["step"], row["acc"]) for row in rows if "acc" in row] == [(50, 0.9), (100, 0.1)]


def test_weights_that_are_no_numbers_are_never_saved(tmp_path):
    model = network()

    def loss(generator: torch.Generator) -> Tensor:
        # The square root has an infinite slope at 0: a finite loss, and a gradient that is none.
        return sum(((p - p.detach()).square().sum().sqrt() for p in model.parameters()), torch.zeros(()))

    with pytest.raises(InputError, match="diverged before step 5"):
        train(model, loss, Schedule(5), Context(folder=tmp_path), title="toy", identity=IDENTITY)
    assert not list(tmp_path.glob("*.safetensors"))


def test_parameters_named_in_factors_learn_at_their_own_rate():
    model = nn.ModuleDict({"body": nn.Linear(4, 4), "head": nn.Linear(4, 2)})
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    def loss(generator: torch.Generator) -> Tensor:
        return model["head"](model["body"](torch.randn(8, 4, generator=generator))).square().mean()

    schedule = Schedule(steps=1, rate=0.1, shape="constant", factors={"head": 0.01})
    train(model, loss, schedule, Context(), title="toy", identity={})
    moved = {name: float((tensor - start[name]).abs().max()) for name, tensor in model.state_dict().items()}
    assert moved["body.weight"] == pytest.approx(0.1, rel=1e-3)  # Adam's first step is the rate itself
    assert moved["head.weight"] == pytest.approx(0.001, rel=1e-3)


def _as_files_store(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_a_fused_optimiser_goes_on_with_restored_state_in_its_parameters_layout(kind):
    def convolution() -> nn.Module:
        return nn.Conv2d(4, 4, 3).to(memory_format=torch.channels_last)

    def optimiser_of(model: nn.Module) -> torch.optim.Optimizer:
        options = {"momentum": 0.9} if kind is torch.optim.SGD else {}
        return kind(model.parameters(), lr=0.1, fused=True, **options)

    def step(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        model(torch.ones(2, 4, 5, 5)).square().sum().backward()
        optimiser.step()

    model = convolution()
    optimiser = optimiser_of(model)
    step(model, optimiser)
    slots, facts = pack_optimiser(optimiser)
    restored = convolution()
    restored.load_state_dict(model.state_dict())
    again = optimiser_of(restored)
    unpack_optimiser(again, _as_files_store(slots), facts)
    model.zero_grad()
    step(model, optimiser)
    step(restored, again)
    assert torch.equal(restored.weight, model.weight)
    for state in again.state.values():
        for value in state.values():
            if value.ndim == 4:
                assert value.stride() == model.weight.stride()


def test_a_rate_drops_at_its_shares_of_the_length():
    schedule = Schedule(steps=50, rate=0.2, shape="drops", drop_at=(0.6, 0.8), drop=0.1)
    for step in range(50):
        assert schedule.rate_at(step) == pytest.approx(0.2 * 0.1 ** ((step >= 30) + (step >= 40)))


@pytest.mark.parametrize("wrong", [{"steps": -1}, {"steps": 3, "rate": -1.0}, {"steps": 3, "decay": -0.1}])
def test_lengths_and_rates_that_mean_nothing_are_refused(wrong):
    with pytest.raises(InputError, match=r"step|negative"):
        Schedule(**wrong)
