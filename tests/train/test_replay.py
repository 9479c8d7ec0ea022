import torch
from torch import nn

from medi.train import replay
from medi.train.replay import replayed


class Squares(nn.Module):
    """A loss with parameters and running averages."""

    def __init__(self):
        super().__init__()
        self.norm, self.layer = nn.BatchNorm1d(3), nn.Linear(3, 1)

    def forward(self, items, targets):
        return (self.layer(self.norm(items)) - targets).square().mean()


def batch(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(8, 3, generator=generator), torch.randn(8, 1, generator=generator)


def test_on_a_cpu_it_is_the_loss_itself():
    torch.manual_seed(0)
    loss = Squares()
    expected = loss(*batch(0))
    expected_gradient = torch.autograd.grad(expected, loss.layer.weight)[0]
    with replayed(loss) as call:
        result = call(*batch(0))
        assert torch.equal(result, expected)
        assert torch.equal(torch.autograd.grad(result, loss.layer.weight)[0], expected_gradient)


def recording(monkeypatch, recorded):
    """Stand in for torch: warm up by three calls, then put another function in the place of the module's own."""

    def record(module, example):
        for _ in range(3):
            module(*example)
        plain = module.forward

        def forward(*arguments):
            recorded.append(arguments)
            return plain(*arguments)

        module.forward = forward

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", record)


def test_recording_leaves_no_trace_in_running_averages_and_is_gone_afterwards(monkeypatch):
    recorded: list = []
    recording(monkeypatch, recorded)
    loss = Squares()
    before = {name: value.clone() for name, value in loss.state_dict().items()}
    monkeypatch.setattr(replay, "_on_gpu", lambda tensor: True)
    with replayed(loss) as call:
        replay._record(loss, batch(0))
        assert all(torch.equal(value, before[name]) for name, value in loss.state_dict().items())
        del loss.forward
        call(*batch(0))
        call(*batch(1))
        assert len(recorded) == 2
        assert int(loss.norm.num_batches_tracked) == 2
    assert "forward" not in vars(loss)
    loss(*batch(0))
    assert len(recorded) == 2


def test_a_loss_that_is_not_to_be_recorded_is_not(monkeypatch):
    recorded: list = []
    recording(monkeypatch, recorded)
    monkeypatch.setattr(replay, "_on_gpu", lambda tensor: True)
    with replayed(Squares(), record=False) as call:
        call(*batch(0))
    assert not recorded
