"""Pictures whose every corner can be told from the others, in every mode and state that folders of photos hold."""

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

RED, GREEN, BLUE, WHITE = (220, 30, 30), (30, 200, 30), (40, 40, 220), (240, 240, 240)
CORNERS = (RED, GREEN, BLUE, WHITE)


def corners(width: int = 60, height: int = 40) -> Image.Image:
    """Red at the upper left, green at the upper right, blue at the lower left, white at the lower right."""
    pixels = np.empty((height, width, 3), dtype=np.uint8)
    pixels[: height // 2, : width // 2], pixels[: height // 2, width // 2 :] = RED, GREEN
    pixels[height // 2 :, : width // 2], pixels[height // 2 :, width // 2 :] = BLUE, WHITE
    return Image.fromarray(pixels)


def corner_colours(pixels: np.ndarray) -> np.ndarray:
    """Colours (4, 3) in the middle of the quarters of pixels (3, side, side), in the order of `CORNERS`."""
    quarter = pixels.shape[1] // 4
    return np.array([pixels[:, y, x] for y in (quarter, -quarter) for x in (quarter, -quarter)]).astype(int)


def noise(path: Path, seed: int = 0, size: tuple[int, int] = (60, 40)) -> Path:
    """A photo like no other."""
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC).save(path)
    return path


def bomb(path: Path, side: int = 60_000) -> Path:
    """A PNG of a few bytes that claims to be `side` x `side` pixels."""
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    return path


def truncated(path: Path) -> Path:
    """The first half of a photo."""
    noise(path, size=(300, 200))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path
