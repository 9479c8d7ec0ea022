"""Raw files of cameras, through rawpy where it is installed.

Most hold the camera's own JPEG of the photo as well, which is what its owner saw and much the quicker to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from PIL import Image

from medi.core.extras import has

RAW_SUFFIXES = frozenset({".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2"})
CURE = "raw photos need rawpy: pip install 'medi[raw]'"

_TURNED = frozenset({4, 5, 6, 7})
"""LibRaw's numbers for photos whose sides are swapped when they are shown upright."""
_ALIKE = 0.05
"""By how much the shape of the camera's JPEG may differ: it lacks a few rows, but bars or a cut-out are more."""


@cache
def can_read_raw() -> bool:
    """Whether rawpy is installed; it is loaded only when a raw file turns up."""
    return has("rawpy")


def called_raw(file: BinaryIO) -> bool:
    """Whether the name says that this is a raw file. The content does not: many are TIFFs with a tiny picture."""
    return Path(str(getattr(file, "name", ""))).suffix.lower() in RAW_SUFFIXES


class RawFile:
    """An open raw file, of which only the header was read: size and pixels are those of the photo, upright."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        width, height = raw.sizes.width, raw.sizes.height
        self.size: tuple[int, int] = (height, width) if raw.sizes.flip in _TURNED else (width, height)
        # As many are decoded, those at the edges that are not shown among them.
        self.pixels: int = max(width * height, raw.sizes.raw_width * raw.sizes.raw_height)

    def camera_jpeg(self, least: tuple[int, int]) -> Image.Image | None:
        """The camera's own JPEG, not yet decoded; None where there is none of the whole photo of `least` this size."""
        import rawpy  # type: ignore[import-not-found, unused-ignore]

        try:
            found = self._raw.extract_thumb()
            if found.format != rawpy.ThumbFormat.JPEG:
                return None
            image = Image.open(BytesIO(found.data), formats=("JPEG",))
            turned = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)  # LibRaw adds what the raw file says of it
        except Exception:  # damaged, or of a kind that is not known: the photo itself may still be fine
            return None
        width, height = reversed(image.size) if turned else image.size
        shape = (width / height) / (self.size[0] / self.size[1])
        large = width >= least[0] and height >= least[1]
        return image if large and abs(shape - 1) <= _ALIKE else None

    def developed(self, *, half: bool) -> Image.Image:
        """The photo itself, upright, in colour or grey; `half`: four sensor pixels make one, none is guessed."""
        import rawpy

        self._raw.unpack()
        pixels = self._raw.postprocess(
            half_size=half,
            use_camera_wb=True,
            gamma=(2.4, 12.92),  # as in sRGB
            demosaic_algorithm=rawpy.DemosaicAlgorithm.LINEAR,  # the quickest: it is made smaller anyway
        )
        return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)


@contextmanager
def opened(file: BinaryIO) -> Iterator[RawFile | None]:
    """Open a raw file; None for one that LibRaw does not take for one, whatever it is called."""
    import rawpy

    with rawpy.RawPy() as raw:
        file.seek(0)
        try:
            raw.open_buffer(file)
        except rawpy.LibRawError:
            photo = None
        else:
            photo = RawFile(raw)
        yield photo
