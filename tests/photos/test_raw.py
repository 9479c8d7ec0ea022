"""Raw files of cameras: what the sensor saw or the camera's own JPEG, whichever will do; skipped without rawpy."""

import io

import numpy as np
import pytest
from pictures import CORNERS, corner_colours, corners, dng
from PIL import Image

from medi.photos import raw
from medi.photos.decode import PREVIEW, Cut, UnreadableError, decoding, read_photo

CUT = Cut(32, fraction=0.9)
needs_rawpy = pytest.mark.skipif(not raw.can_read_raw(), reason="needs rawpy: pip install 'medi[raw]'")


def read(path, content, cut=CUT):
    path.write_bytes(content)
    with decoding(), path.open("rb") as file:
        return read_photo(file, cut, preview=True)


def encoded(image, form="JPEG", **options):
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def scene(width=400, height=300):
    """The four corners with a white dot in the middle: the brightest that there is stays white."""
    image = corners(width, height)
    image.paste((255, 255, 255), (width // 2 - 30, height // 2 - 30, width // 2 + 30, height // 2 + 30))
    return image


def test_without_rawpy_a_raw_file_is_refused_with_the_cure(tmp_path, monkeypatch):
    monkeypatch.setattr(raw, "can_read_raw", lambda: False)
    with pytest.raises(UnreadableError, match=r"pip install 'medi\[raw\]'"):
        read(tmp_path / "a.dng", dng(corners()))


@needs_rawpy
@pytest.mark.parametrize("side", [32, 200])  # half as many pixels will do, or not
def test_a_raw_file_shows_what_a_png_shows(tmp_path, side):
    cut = Cut(side, fraction=0.9)
    photo = read(tmp_path / "a.DNG", dng(scene()), cut)
    png = read(tmp_path / "a.png", encoded(scene(), "PNG"), cut)
    assert photo.pixels.shape == (3, side, side)
    assert np.abs(photo.pixels.astype(int) - png.pixels).mean() < 2
    assert np.abs(corner_colours(photo.pixels) - CORNERS).max() <= 4
    assert photo.preview.size == png.preview.size


@needs_rawpy
def test_a_sensor_without_colours_gives_a_grey_photo(tmp_path):
    photo = read(tmp_path / "a.dng", dng(scene(), grey=True))
    assert np.abs(corner_colours(photo.pixels) - np.array(CORNERS)[:, :1]).max() <= 4


@needs_rawpy
@pytest.mark.parametrize("jpeg", [False, True])
@pytest.mark.parametrize(
    ("orientation", "back"),
    [
        (1, None),
        (2, Image.Transpose.FLIP_LEFT_RIGHT),
        (3, Image.Transpose.ROTATE_180),
        (6, Image.Transpose.ROTATE_90),
        (8, Image.Transpose.ROTATE_270),
    ],
)
def test_a_raw_photo_is_upright_however_the_camera_was_held(tmp_path, orientation, back, jpeg):
    stored = scene() if back is None else scene().transpose(back)
    preview = encoded(stored, quality=95) if jpeg else b""
    photo = read(tmp_path / "a.dng", dng(stored, orientation=orientation, preview=preview))
    assert np.abs(corner_colours(photo.pixels) - CORNERS).max() <= 12
    assert photo.preview.size == (PREVIEW, 96)


@needs_rawpy
@pytest.mark.parametrize(
    ("size", "side", "taken"),
    [
        ((200, 150), 32, True),
        ((200, 150), 250, False),  # too small for the cut
        ((80, 60), 32, False),  # too small for the thumbnail
        ((200, 200), 32, False),  # not of the whole photo
    ],
)
def test_the_jpeg_of_the_camera_is_taken_where_it_will_do(tmp_path, size, side, taken):
    preview = encoded(Image.new("RGB", size, (10, 20, 30)))
    photo = read(tmp_path / "a.dng", dng(scene(), preview=preview), Cut(side, fraction=0.9))
    assert (photo.pixels.max() < 40) == taken


@needs_rawpy
def test_a_damaged_jpeg_of_the_camera_does_not_cost_the_photo(tmp_path):
    preview = b"\0\0\0" + encoded(scene())[3:]
    content = dng(scene(), preview=encoded(scene())).replace(encoded(scene()), preview)
    photo = read(tmp_path / "a.dng", content)
    assert np.abs(corner_colours(photo.pixels) - CORNERS).max() <= 4


@needs_rawpy
@pytest.mark.parametrize("form", ["JPEG", "PNG", "TIFF"])
def test_another_image_with_the_name_of_a_raw_file_is_read(tmp_path, form):
    photo = read(tmp_path / "a.nef", encoded(corners(), form))
    assert np.abs(corner_colours(photo.pixels) - CORNERS).max() <= 40


@needs_rawpy
@pytest.mark.parametrize("content", [b"just some text", bytes(5000), b"II*\0\x08\0\0\0"])
def test_what_is_no_image_is_called_that(tmp_path, content):
    with pytest.raises(UnreadableError, match=r"not an image|damaged"):
        read(tmp_path / "a.cr2", content)


@needs_rawpy
def test_a_raw_file_cut_short_is_refused(tmp_path):
    content = dng(scene())
    for part in (0.3, 0.6, 0.9):
        with pytest.raises(UnreadableError, match="damaged") as error:
            read(tmp_path / "a.dng", content[: int(part * len(content))])
        assert "b'" not in str(error.value)


@needs_rawpy
def test_a_raw_bomb_is_refused_before_it_goes_off(tmp_path):
    with pytest.raises(UnreadableError, match="13,000 x 12,000 pixels are too many"):
        read(tmp_path / "a.dng", dng(corners(), stated=(13_000, 12_000)))
    with pytest.raises(UnreadableError):
        read(tmp_path / "a.dng", dng(corners(), stated=(60_000, 60_000)))


@needs_rawpy
def test_bytes_changed_at_random_give_a_photo_or_a_reason_but_never_another_error(tmp_path):
    generator, reasons = np.random.default_rng(0), []
    original = np.frombuffer(dng(corners(), preview=encoded(corners(200, 132))), dtype=np.uint8)
    inked = np.flatnonzero(original)  # most of it is filling
    for _ in range(300):
        content = original.copy()
        content[generator.choice(inked[:400], 3)] = generator.integers(0, 256, 3)
        content[generator.choice(inked, 8)] = generator.integers(0, 256, 8)
        try:
            read(tmp_path / "a.dng", content.tobytes())
        except UnreadableError as error:
            reasons.append(str(error))
    assert reasons
    assert all(reason and "\n" not in reason for reason in reasons)
