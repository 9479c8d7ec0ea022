"""A training belongs to the code that made it: a method changed in a file of the user's own never finds another's."""

from pathlib import Path

import torch
from small_sets import KNOWN
from torch import Tensor

from medi.methods import Method, Plan, method_of, mp
from medi.nets import build
from medi.runtime.context import Context
from medi.train.schedule import Schedule

TINY = {"network": "mlp", "queries": 3, "images": 30, "schedule": Schedule(steps=3)}


def weights(method: type[Method], plan: Plan) -> Tensor:
    network = method(**TINY).fit(KNOWN, plan).embedding.network
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])


def trainings(folder: Path) -> int:
    return len(list(folder.glob("*.safetensors")))


def idle_copy(folder: Path) -> type[Method]:
    """MP's own file, but its loss is multiplied by zero: name, title and settings are the same."""
    source = Path(mp.__file__).read_text()
    call = "train(network, loss,"
    assert source.count(call) == 1
    folder.mkdir()
    copy = folder / "copy.py"
    copy.write_text(source.replace(call, "train(network, lambda generator: 0 * loss(generator),"))
    return method_of(f"{copy}:MP")


def test_a_changed_copy_of_a_method_does_not_find_the_trainings_of_the_original(tmp_path):
    plan = Plan(3, 2, context=Context(folder=tmp_path / "trainings"))
    untrained = torch.cat([parameter.flatten() for parameter in build("mlp", (8,), seed=0).parameters()]).detach()
    learnt = weights(mp.MP, plan)
    assert not torch.equal(learnt, untrained)

    idle = idle_copy(tmp_path / "one")
    assert (idle.name, idle(**TINY).schedule) == (mp.MP.name, mp.MP(**TINY).schedule)
    assert torch.equal(weights(idle, plan), untrained), "a loss of zero leaves the weights as they were"
    assert trainings(tmp_path / "trainings") == 2

    assert torch.equal(weights(mp.MP, plan), learnt)
    assert torch.equal(weights(idle_copy(tmp_path / "other"), plan), untrained)
    assert trainings(tmp_path / "trainings") == 2, "either is found again, the copy from wherever it lies"
