import pytest
import torch
from torch import nn

from medi.nn import cuda_graph
from medi.nn.cuda_graph import replayed


class Squares(nn.Module):
    """A loss with parameters and running averages, which notes whether it computes in mixed precision."""

    def __init__(self):
        super().__init__()
        self.norm, self.layer = nn.BatchNorm1d(3), nn.Linear(3, 1)
        self.mixed = []

    def forward(self, items, targets):
        self.mixed.append(torch.is_autocast_enabled("cpu"))
        return (self.layer(self.norm(items)) - targets).square().mean()


def batch(seed, items=8):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(items, 3, generator=generator), torch.randn(items, 1, generator=generator)


class Recorder:
    """Stands in for torch's: warms up by three calls on the tensors it is given, then replaces the module's forward."""

    def __init__(self, monkeypatch):
        self.replays, self.example, self.mixed, self.broken = 0, None, None, False
        monkeypatch.setattr(torch.cuda, "make_graphed_callables", self.record)
        monkeypatch.setattr(cuda_graph, "_on_gpu", lambda tensor: True)

    def record(self, module, example):
        self.example, self.mixed = example, torch.is_autocast_enabled("cpu")
        for _ in range(3):
            module(*example)
        if self.broken:
            raise RuntimeError("out of memory")
        plain = module.forward

        def forward(*arguments):
            self.replays += 1
            return plain(*arguments)

        module.forward = forward


def test_on_a_cpu_it_is_the_loss_itself():
    torch.manual_seed(0)
    loss = Squares()
    expected = loss(*batch(0))
    expected_gradient = torch.autograd.grad(expected, loss.layer.weight)[0]
    with replayed(loss) as call:
        result = call(*batch(0))
        assert torch.equal(result, expected)
        assert torch.equal(torch.autograd.grad(result, loss.layer.weight)[0], expected_gradient)


def test_every_call_is_replayed_and_the_recording_leaves_no_trace(monkeypatch):
    recorder, loss, other = Recorder(monkeypatch), Squares(), Squares()
    other.load_state_dict(loss.state_dict())
    with replayed(loss) as call:
        for seed in range(2):
            assert torch.allclose(call(*batch(seed)), other(*batch(seed)))
        assert recorder.replays == 2
        for name, value in loss.state_dict().items():
            assert torch.allclose(value, other.state_dict()[name])
        call(*batch(0)).backward()
    assert "forward" not in vars(loss)
    assert all(parameter.grad is None for parameter in loss.parameters())
    loss(*batch(0))
    assert recorder.replays == 3


def test_mixed_precision_is_for_the_way_forward_alone_and_a_recording_has_tensors_of_its_own(monkeypatch):
    recorder, loss, given = Recorder(monkeypatch), Squares(), batch(0)
    with torch.autocast("cpu", torch.bfloat16), replayed(loss) as call:
        call(*given)
    assert loss.mixed == [True] * 4
    assert recorder.mixed is False
    assert not {tensor.data_ptr() for tensor in given} & {tensor.data_ptr() for tensor in recorder.example}


def test_other_shapes_than_those_recorded_are_refused():
    with replayed(Squares()) as call:
        call(*batch(0))
        with pytest.raises(ValueError, match="like those of its first call"):
            call(*batch(0, items=1))


def test_a_recording_that_fails_leaves_the_loss_as_it_was(monkeypatch):
    recorder, loss = Recorder(monkeypatch), Squares()
    recorder.broken = True
    before = {name: value.clone() for name, value in loss.state_dict().items()}
    with pytest.raises(RuntimeError, match="out of memory"), replayed(loss) as call:
        call(*batch(0))
    assert "forward" not in vars(loss)
    assert all(torch.equal(value, before[name]) for name, value in loss.state_dict().items())


def test_a_loss_that_is_not_to_be_recorded_is_not(monkeypatch):
    recorder = Recorder(monkeypatch)
    with replayed(Squares(), record=False) as call:
        call(*batch(0))
    assert recorder.example is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="recording needs a GPU")
@pytest.mark.parametrize("mixed", [False, True])
def test_a_gpu_replays_the_gradients_of_launched_steps(mixed):
    torch.manual_seed(0)
    launched, recorded = Squares().cuda(), Squares().cuda()
    recorded.load_state_dict(launched.state_dict())
    with replayed(recorded) as call:
        for seed in range(3):
            items = tuple(tensor.cuda() for tensor in batch(seed))
            with torch.autocast("cuda", torch.bfloat16, mixed):
                losses = launched(*items), call(*items)
            for model, loss in zip((launched, recorded), losses, strict=True):
                model.zero_grad()
                loss.backward()
            for one, other in zip(launched.parameters(), recorded.parameters(), strict=True):
                assert torch.allclose(one.grad, other.grad, atol=1e-5)
