import io

import numpy as np
import pytest
from PIL import Image

from medi.photos.decode import PREVIEW
from medi.photos.thumbnails import LARGEST_BYTES, thumbnail


def busy(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    assert image.format == "JPEG"
    assert image.mode == "RGB"
    return image


@pytest.mark.parametrize("size", [(1, 1), (32, 32), (PREVIEW, 96), (1, PREVIEW), (PREVIEW, PREVIEW)])
def test_a_thumbnail_keeps_its_size_within_the_bytes_allowed(size):
    data = thumbnail(busy(*size))
    assert opened(data).size == size
    assert len(data) <= LARGEST_BYTES


def test_where_quality_does_not_suffice_size_gives_way():
    smaller = thumbnail(busy(PREVIEW, PREVIEW), most_bytes=1_500)
    assert len(smaller) <= 1_500
    assert max(opened(smaller).size) < PREVIEW
    with pytest.raises(ValueError, match="no JPEG fits into 10 bytes"):
        thumbnail(busy(8, 8), most_bytes=10)


def test_a_thumbnail_looks_like_its_picture():
    ramp = np.tile(np.linspace(0, 255, PREVIEW).astype(np.uint8), (PREVIEW, 1))
    picture = Image.fromarray(np.stack([ramp, ramp.T, np.full_like(ramp, 90)], 2))
    difference = np.asarray(opened(thumbnail(picture))).astype(float) - np.asarray(picture)
    assert np.abs(difference).mean() < 3


def test_a_thumbnail_carries_no_metadata(tmp_path):
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    busy(60, 60).save(tmp_path / "a.jpg", exif=exif, comment=b"a secret" * 1000)
    with Image.open(tmp_path / "a.jpg") as image:
        assert image.info["comment"]
        data = thumbnail(image)
    assert b"secret" not in data
    assert b"home" not in data
