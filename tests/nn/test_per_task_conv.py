import pytest
import torch
from torch import nn
from torch.func import functional_call, vmap

from medi.nn import build
from medi.nn.per_task_conv import Conv2d, batch_over_tasks


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("side", [(1, 1), (2, 3), (5, 4)])
@pytest.mark.parametrize("stride", [1, 2])
def test_both_products_convolve_as_torch_does_to_the_second_order(kernel, side, stride):
    torch.manual_seed(0)
    layer = Conv2d(3, 4, kernel, stride, padding=kernel // 2, bias=False).double()
    weights = torch.randn(2, *layer.weight.shape, dtype=torch.float64, requires_grad=True)
    x = torch.randn(2, 5, 3, *side, dtype=torch.float64, requires_grad=True)
    found = []
    for on, largest in ((False, 0), (True, 0), (True, 5)):
        batch_over_tasks(layer, largest, on=on)
        y = vmap(lambda w, x: functional_call(layer, {"weight": w}, (x,)))(weights, x)
        first = torch.autograd.grad(y.sin().sum(), (x, weights), create_graph=True)
        second = torch.autograd.grad(sum(g.cos().sum() for g in first), (x, weights))
        found.append([y, *first, *second])
    for expected, *others in zip(*found, strict=True):
        assert all(torch.allclose(other, expected, rtol=1e-9, atol=1e-10) for other in others)


@pytest.mark.parametrize("largest", [0, 4])
def test_gradients_of_both_orders_equal_finite_differences(largest):
    torch.manual_seed(0)
    layer = Conv2d(2, 2, 3, padding=1, bias=False).double()
    batch_over_tasks(layer, largest)
    x = torch.randn(2, 2, 3, 3, dtype=torch.float64, requires_grad=True)
    w = torch.randn(2, 2, 3, 3, dtype=torch.float64, requires_grad=True)

    def convolve(x, w):
        return functional_call(layer, {"weight": w}, (x,))

    assert torch.autograd.gradcheck(convolve, (x, w))
    assert torch.autograd.gradgradcheck(convolve, (x, w))


@pytest.mark.parametrize("largest", [0, 4])
def test_weights_shared_by_all_tasks_are_fine_too(largest):
    layer = Conv2d(3, 4, 3, padding=1, bias=False)
    x = torch.randn(2, 5, 3, 4, 4)
    expected = torch.stack([nn.functional.conv2d(images, layer.weight, padding=1) for images in x])
    batch_over_tasks(layer, largest)
    assert torch.allclose(vmap(layer)(x), expected, atol=1e-5)
    assert torch.allclose(layer(x[0]), expected[0], atol=1e-5)


@pytest.mark.parametrize("name", ["conv4", "vgg16", "resnet18"])
def test_every_network_gives_the_same_embedding_either_way(name):
    network = build(name, (3, 32, 32), norm="batch")
    x = torch.randn(4, 3, 32, 32)
    expected = network(x)
    batch_over_tasks(network, 8)
    assert torch.allclose(network(x), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("largest", [0, 4])
def test_autocast_reaches_both_products(largest):
    layer = Conv2d(3, 4, 3, padding=1, bias=False)
    batch_over_tasks(layer, largest)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(torch.randn(2, 3, 4, 4)).dtype == torch.bfloat16
