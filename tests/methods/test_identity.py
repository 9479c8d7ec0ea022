"""A training belongs to the code that made it: a method changed in a file of the user's own never finds another's."""

from pathlib import Path
from types import ModuleType

import pytest
import torch
from small_sets import KNOWN

from medi.methods import Method, Plan, method_of, rs, similarity
from medi.methods.pretraining import Pretraining
from medi.methods.similarity import Similarity
from medi.nn.context import Context
from medi.nn.schedule import Schedule


def idle_copy(module: ModuleType, name: str, call: str, folder: Path) -> type[Method]:
    """A method's own file, but a loss is multiplied by zero: name, title and settings are the same."""
    source = Path(module.__file__).read_text()
    assert source.count(call) == 1
    folder.mkdir()
    copy = folder / "copy.py"
    copy.write_text(source.replace(call, call.replace("loss,", "lambda generator: 0 * loss(generator),")))
    return method_of(f"{copy}:{name}")


SHORT = Schedule(steps=2, rate=0.1)


@pytest.mark.parametrize(
    ("module", "name", "settings"),
    [
        (rs, "RS", {"pretraining": Pretraining("classes", "mlp", schedule=SHORT), "supervised": SHORT}),
        (similarity, "PairMethod", {"similarity": Similarity("mlp", classes=4, schedule=SHORT)}),
    ],
)
def test_stages_that_come_before_the_observations_know_their_code(module, name, settings, tmp_path):
    plan = Plan(3, 2, context=Context(folder=tmp_path / "kept"))
    changed = idle_copy(module, name, " train(model, loss,", tmp_path / "copy")
    own, idle = (
        torch.cat([p.detach().flatten() for p in method(**settings).learn(KNOWN, plan).parameters()])
        for method in (getattr(module, name), changed)
    )
    assert not torch.equal(own, idle)
