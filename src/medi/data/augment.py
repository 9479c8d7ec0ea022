"""Random changes that leave an image's class alone: per sample, whole batches at once, on the tensors' device.

`augment` draws parameters for every image; the pure functions `crop`, `affine` and `recolour` apply them. There is
no loop over samples, and what is switched off costs nothing.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import grid_sample
from torch.nn.functional import pad as reflect_pad

from medi.core.errors import InputError
from medi.data.facts import Augmentation

NO_CHANGE = Augmentation()

_ORDERS = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
"""Every order of three channels."""


def to_float(images: Tensor) -> Tensor:
    """Scale uint8 images of any shape to floats around 0: (x / 255 - 0.5) / 0.25, from -2 to 2.

    Floats come back unchanged: they are vectors, or images scaled already.
    """
    if images.is_floating_point():
        return images
    if images.dtype != torch.uint8:
        raise InputError(f"images have to be uint8 (0 to 255), not {images.dtype}: convert with .to(torch.uint8).")
    return _standardise(images / 255)


def augment(images: Tensor, changes: Augmentation, generator: torch.Generator, part: slice = slice(None)) -> Tensor:
    """Change every image at random, each in its own way, and scale it as `to_float` does.

    An image takes the same draws whatever is switched on, so switching on one change leaves the others as they were.

    Args:
        images: (..., c, h, w), uint8. Float vectors (n, d) come back unchanged.
        changes: Which changes, and how strong.
        generator: One on the CPU draws the same for every device; one on the images' device is a little quicker.
        part: The images (along the first dimension) that are wanted; they look as they would among all.
    """
    if changes == NO_CHANGE or (images.is_floating_point() and images.ndim < 3):
        return to_float(images[part])
    if images.dtype != torch.uint8 or images.ndim < 3:
        raise InputError(
            f"only uint8 images (..., c, h, w) can be augmented, not {images.dtype} of shape {tuple(images.shape)}: "
            "leave images as they were read, and give vectors Augmentation()."
        )
    *lead, c, h, w = images.shape
    if changes.crop >= min(h, w):
        raise InputError(f"crop={changes.crop} asks for more padding than images of {h} x {w} can reflect: lower it.")
    draws = torch.rand(13, math.prod(lead), generator=generator, device=generator.device)
    if part != slice(None):
        images, draws = images[part], draws.view(13, *lead)[:, part].flatten(1)
    unit = images.reshape(-1, c, h, w) / 255

    def here(values: Tensor) -> Tensor:
        return values.to(images.device, non_blocking=True)  # blocking would wait for all work queued on the GPU

    if changes.crop:
        corners = (draws[:2] * (2 * changes.crop + 1)).long()
        unit = crop(unit, changes.crop, *here(corners.clamp_(max=2 * changes.crop)))  # a draw may round up to 1
    if changes.flip:
        unit = torch.where(_each(here(draws[2] < 0.5)), unit.flip(-1), unit)
    if changes.rotate or changes.scale or changes.shear or changes.shift:
        unit = affine(unit, here(_matrices(draws[3:8], changes, aspect=h / w)))
    if changes.colour or changes.grey:
        unit = recolour(unit, *here(_colour_factors(draws[8:12], changes)))
    if changes.invert:
        unit = torch.where(_each(here(draws[12] < changes.invert)), 1 - unit, unit)
    if changes.shuffle or changes.cutout:  # draws of their own: those of the others stay as they are
        more = torch.rand(4, math.prod(lead), generator=generator, device=generator.device)
        more = here(more.view(4, *lead)[:, part].flatten(1) if part != slice(None) else more)
        if changes.shuffle and c == len(_ORDERS[0]):
            order = torch.where(more[0] < changes.shuffle, (more[1] * len(_ORDERS)).long(), 0)
            unit = shuffle_channels(unit, order.clamp_(max=len(_ORDERS) - 1))
        if changes.cutout:
            unit = cut_out(unit, changes.cutout, (more[2] * h).long(), (more[3] * w).long())
    return _standardise(unit).view(images.shape)


def crop(images: Tensor, pad: int, top: Tensor, left: Tensor) -> Tensor:
    """Pad images (n, c, h, w) by reflection and cut out windows of the old size.

    `top` and `left`, (n,) int64 from 0 to 2 * pad, are their first rows and columns in the padded images.
    """
    h, w = images.shape[-2:]
    windows = reflect_pad(images, (pad, pad, pad, pad), mode="reflect").unfold(2, h, 1).unfold(3, w, 1)  # no copies
    return windows[torch.arange(len(images), device=images.device), :, top, left]


def affine(images: Tensor, matrices: Tensor) -> Tensor:
    """Resample images (n, c, h, w) bilinearly; what comes from outside repeats the border.

    Each of the matrices (n, 2, 3) maps a place (x, y, 1) in the new image to a place (x, y) in the old one: x runs from
    -1 to 1 over the width and y, downwards, over the height.
    """
    h, w = images.shape[-2:]
    x = torch.linspace(1 / w - 1, 1 - 1 / w, w, device=images.device)
    y = torch.linspace(1 / h - 1, 1 - 1 / h, h, device=images.device)
    # What affine_grid does, but as one sum over the grid: its batched product is slow on a CPU, and TF32 blurs it.
    along, across, shift = matrices[..., None, None].unbind(2)
    grid = along * x + (across * y[:, None] + shift)
    return grid_sample(images, grid.permute(0, 2, 3, 1), padding_mode="border", align_corners=False)


def recolour(images: Tensor, brightness: Tensor, contrast: Tensor, saturation: Tensor) -> Tensor:
    """Change saturation, contrast and brightness, in this order, of images (n, c, h, w) from 0 to 1 by factors (n,).

    They are of the distance from the pixel's grey (the mean of its channels), the image's mean grey, and black.
    """
    grey = images.mean(1, keepdim=True)
    if images.shape[1] > 1:
        images = torch.lerp(grey, images, _each(saturation))
    images = torch.lerp(grey.mean((2, 3), keepdim=True), images, _each(contrast))
    return images.mul_(_each(brightness)).clamp_(0, 1)


def shuffle_channels(images: Tensor, order: Tensor) -> Tensor:
    """Put the channels of each image (n, 3, h, w) into one of six orders, (n,) int64; order 0 changes nothing."""
    orders = torch.tensor(_ORDERS, device=images.device)[order]
    return images.gather(1, orders[:, :, None, None].expand_as(images))


def cut_out(images: Tensor, side: int, row: Tensor, column: Tensor) -> Tensor:
    """Paint a square of images (n, c, h, w) mid-grey around a pixel each, (n,) rows and columns int64."""
    h, w = images.shape[-2:]
    down = torch.arange(h, device=images.device) - row[:, None] + side // 2
    across = torch.arange(w, device=images.device) - column[:, None] + side // 2
    inside = ((down >= 0) & (down < side))[:, :, None] & ((across >= 0) & (across < side))[:, None, :]
    return images.masked_fill(inside[:, None], 0.5)


def paste(images: Tensor, others: Tensor, share: Tensor, row: Tensor, column: Tensor) -> tuple[Tensor, Tensor]:
    """CutMix: put a box of another image into each of images (n, c, h, w); also returns the share (n,) still its own.

    A box has a share (n,) of the area, less what lies outside; row and column (n,) of its middle are shares, too.
    """
    h, w = images.shape[-2:]
    half = share.clamp(0, 1).sqrt() / 2
    down = (torch.arange(h, device=images.device) + 0.5) / h - row[:, None]
    across = (torch.arange(w, device=images.device) + 0.5) / w - column[:, None]
    inside = (down.abs() < half[:, None])[:, :, None] & (across.abs() < half[:, None])[:, None, :]
    return torch.where(inside[:, None], others, images), 1 - inside.float().mean((1, 2))


def _matrices(draws: Tensor, changes: Augmentation, aspect: float) -> Tensor:
    """Matrices (n, 2, 3) for `affine` from draws (5, n) in [0, 1): shear, then rotation, scale and shift."""
    angle, scale, shear, right, down = 2 * draws - 1
    angle = angle * math.radians(changes.rotate)
    zoom = 1 / (1 + scale * changes.scale)
    shear = shear * changes.shear
    cos, sin = zoom * angle.cos(), zoom * angle.sin()
    # A side is 2 long in the coordinates of `affine`, whatever its pixels: hence the 2 and the aspect, h / w.
    rows = (
        *(cos, (shear * cos - sin) * aspect, right * (2 * changes.shift)),
        *(sin / aspect, shear * sin + cos, down * (2 * changes.shift)),
    )
    return torch.stack(rows, 1).view(-1, 2, 3)


def _colour_factors(draws: Tensor, changes: Augmentation) -> Tensor:
    """Brightness, contrast and saturation (3, n) for `recolour` from draws (4, n) in [0, 1)."""
    factors = 1 + changes.colour * (2 * draws[:3] - 1)
    factors[2] *= draws[3] >= changes.grey
    return factors


def _standardise(unit: Tensor) -> Tensor:
    """From 0 to 1, to -2 to 2."""
    return (unit - 0.5).div_(0.25)


def _each(values: Tensor) -> Tensor:
    """(n,) as (n, 1, 1, 1), to be broadcast over images."""
    return values.view(-1, 1, 1, 1)
