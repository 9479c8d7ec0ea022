"""Thumbnails: what a page shows of a photo."""

from __future__ import annotations

from io import BytesIO

from PIL import Image

LARGEST_BYTES = 5_600
"""Of a thumbnail. In base64, 500 of them and one more for each of 40 groups take 4.04 of a page's 5 MB."""

_QUALITIES = (80, 65, 50, 35, 20)


def thumbnail(preview: Image.Image, most_bytes: int = LARGEST_BYTES) -> bytes:
    """A JPEG of a small RGB picture, without metadata; what is too busy loses quality first and then size."""
    canvas = Image.new("RGB", preview.size)  # a new image, because saving a read one writes its comments too
    canvas.paste(preview)
    for quality in _QUALITIES:
        buffer = BytesIO()
        canvas.save(buffer, "JPEG", quality=quality, optimize=True)
        if buffer.tell() <= most_bytes:
            return buffer.getvalue()
    if max(canvas.size) == 1:
        raise ValueError(f"no JPEG fits into {most_bytes} bytes")
    width, height = (max(1, side * 3 // 4) for side in canvas.size)
    return thumbnail(canvas.resize((width, height), Image.Resampling.LANCZOS), most_bytes)
