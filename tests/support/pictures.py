"""Pictures whose every corner can be told from the others, in every mode and state that folders of photos hold."""

import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

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


def heic(image: Image.Image, **options: Any) -> bytes:
    """A HEIC file, written without Pillow's list of formats, so that a test sees who adds the reader to it."""
    from pillow_heif import from_pillow

    more = [from_pillow(other)[0] for other in options.pop("append_images", ())]
    buffer = BytesIO()
    from_pillow(image).save(buffer, append_images=more, **options)
    return buffer.getvalue()


def avif(image: Image.Image, **options: Any) -> bytes:
    """An AVIF file."""
    buffer = BytesIO()
    image.save(buffer, "AVIF", **options)
    return buffer.getvalue()


def stating(content: bytes, width: int, height: int) -> bytes:
    """A HEIC or AVIF file that says to hold images of another size."""
    parts = content.split(b"ispe")
    size = struct.pack(">II", width, height)
    return b"ispe".join([parts[0], *(part[:4] + size + part[12:] for part in parts[1:])])


def dng(
    image: Image.Image,
    *,
    orientation: int = 1,
    preview: bytes = b"",
    stated: tuple[int, int] | None = None,
    grey: bool = False,
) -> bytes:
    """A raw file as simple as there is: sensor pixels (red, green; green, blue), uncompressed, linear, 16 bits.

    Args:
        image: What the sensor sees, RGB, sides even.
        orientation: How the camera was held.
        preview: The camera's own JPEG; none where empty.
        stated: The width and height it says it has, where they are not those of the image.
        grey: A sensor without colours, which sees the red ones.
    """
    levels = np.asarray(image, dtype=np.float64) / 255
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    sensor = np.empty((image.height, image.width), dtype="<u2")
    for y, x, channel in ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 2)):
        sensor[y::2, x::2] = (linear[y::2, x::2, 0 if grey else channel] * 65535).round()
    to_camera = (3.2406, -1.5372, -0.4986, -0.9689, 1.8758, 0.0415, 0.0557, -0.2040, 1.0570)  # from XYZ: linear sRGB
    content = sensor.tobytes()
    first = _directory(
        8,
        {
            254: ("I", (0,)),
            256: ("I", (stated[0] if stated else image.width,)),
            257: ("I", (stated[1] if stated else image.height,)),
            258: ("H", (16,)),
            259: ("H", (1,)),
            262: ("H", (34892 if grey else 32803,)),  # linear levels, or those behind an array of filters
            271: ("s", (b"Maker\0",)),
            272: ("s", (b"Model\0",)),
            273: ("I", (8192,)),
            274: ("H", (orientation,)),
            277: ("H", (1,)),
            278: ("I", (image.height,)),
            279: ("I", (len(content),)),
            **({330: ("I", (4096,))} if preview else {}),
            **({} if grey else {33421: ("H", (2, 2)), 33422: ("B", (0, 1, 1, 2))}),
            50706: ("B", (1, 4, 0, 0)),  # the version of DNG
            50708: ("s", (b"Maker Model\0",)),
            50714: ("H", (0,)),
            50717: ("I", (65535,)),
            50721: ("r", to_camera),
            50728: ("R", (1.0, 1.0, 1.0)),  # what is white
            50778: ("H", (21,)),
        },
    )
    second = b""
    if preview:
        with Image.open(BytesIO(preview)) as small:
            width, height = small.size
        second = _directory(
            4096,
            {
                254: ("I", (1,)),
                256: ("I", (width,)),
                257: ("I", (height,)),
                258: ("H", (8, 8, 8)),
                259: ("H", (7,)),  # JPEG
                262: ("H", (6,)),
                273: ("I", (8192 + len(content),)),
                277: ("H", (3,)),
                278: ("I", (height,)),
                279: ("I", (len(preview),)),
            },
        )
    header = struct.pack("<2sHI", b"II", 42, 8)
    return ((header + first).ljust(4096, b"\0") + second).ljust(8192, b"\0") + content + preview


def _directory(start: int, tags: dict[int, tuple[str, tuple]]) -> bytes:
    """A directory of a little-endian TIFF at an offset, and after it the values that do not fit into it."""
    kinds = {"B": 1, "s": 2, "H": 3, "I": 4, "R": 5, "r": 10}
    entries, values = b"", b""
    after = start + 2 + 12 * len(tags) + 4
    for tag, (form, items) in sorted(tags.items()):
        if form == "s":
            value, count = items[0], len(items[0])
        elif form in "Rr":
            integers = [number for item in items for number in (round(item * 10000), 10000)]
            value, count = struct.pack(f"<{len(integers)}{'I' if form == 'R' else 'i'}", *integers), len(items)
        else:
            value, count = struct.pack(f"<{len(items)}{form}", *items), len(items)
        if len(value) > 4:
            place, values = struct.pack("<I", after + len(values)), values + value + b"\0" * (len(value) % 2)
        else:
            place = value.ljust(4, b"\0")
        entries += struct.pack("<HHI", tag, kinds[form], count) + place
    return struct.pack("<H", len(tags)) + entries + bytes(4) + values
