"""A training belongs to the code that made it: a method changed in a file of the user's own never finds another's."""

from pathlib import Path
from types import ModuleType

import pytest
import torch
from small_sets import KNOWN
from torch import Tensor

from medi.methods import Method, Plan, method_of, mp, rs, similarity
from medi.methods.pretraining import Pretraining
from medi.methods.similarity import Similarity
from medi.nets import build
from medi.runtime.context import Context
from medi.train.schedule import Schedule

TINY = {"network": "mlp", "queries": 3, "images": 30, "schedule": Schedule(steps=3)}


def weights(method: type[Method], plan: Plan) -> Tensor:
    network = method(**TINY).fit(KNOWN, plan).embedding.network
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])


def trainings(folder: Path) -> int:
    return len(list(folder.glob("*.safetensors")))


def idle_copy(module: ModuleType, name: str, call: str, folder: Path) -> type[Method]:
    """A method's own file, but a loss is multiplied by zero: name, title and settings are the same."""
    source = Path(module.__file__).read_text()
    assert source.count(call) == 1
    folder.mkdir()
    copy = folder / "copy.py"
    copy.write_text(source.replace(call, call.replace("loss,", "lambda generator: 0 * loss(generator),")))
    return method_of(f"{copy}:{name}")


def test_a_changed_copy_of_a_method_does_not_find_the_trainings_of_the_original(tmp_path):
    plan = Plan(3, 2, context=Context(folder=tmp_path / "trainings"))
    untrained = torch.cat([parameter.flatten() for parameter in build("mlp", (8,), seed=0).parameters()]).detach()
    learnt = weights(mp.MP, plan)
    assert not torch.equal(learnt, untrained)

    idle = idle_copy(mp, "MP", "train(network, loss,", tmp_path / "one")
    assert (idle.name, idle(**TINY).schedule) == (mp.MP.name, mp.MP(**TINY).schedule)
    assert torch.equal(weights(idle, plan), untrained), "a loss of zero leaves the weights as they were"
    assert trainings(tmp_path / "trainings") == 2

    assert torch.equal(weights(mp.MP, plan), learnt)
    assert torch.equal(weights(idle_copy(mp, "MP", "train(network, loss,", tmp_path / "other"), plan), untrained)
    assert trainings(tmp_path / "trainings") == 2, "either is found again, the copy from wherever it lies"


SHORT = Schedule(steps=2, rate=0.1)


@pytest.mark.parametrize(
    ("module", "name", "settings"),
    [
        (rs, "RS", {"pretraining": Pretraining("classes", "mlp", schedule=SHORT), "supervised": SHORT}),
        (similarity, "PairMethod", {"similarity": Similarity("mlp", classes=4, schedule=SHORT)}),
    ],
)
def test_stages_that_come_before_the_observations_know_their_code_too(module, name, settings, tmp_path):
    plan = Plan(3, 2, context=Context(folder=tmp_path / "trainings"))
    changed = idle_copy(module, name, " train(model, loss,", tmp_path / "copy")
    own, idle = (
        torch.cat([p.detach().flatten() for p in method(**settings).learn(KNOWN, plan).parameters()])
        for method in (getattr(module, name), changed)
    )
    assert not torch.equal(own, idle)
