"""Every kind of picture reads as what a person sees in it; every broken one is refused with a reason."""

import io
import json
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pictures import CORNERS, avif, bomb, corner_colours, corners, heic, noise, stating, truncated
from PIL import Image, features
from systems import peak_megabytes

from medi.photos import resize, room
from medi.photos.decode import PREVIEW, Cut, UnreadableError, decoding, read_photo

CUT = Cut(32, fraction=0.9)


def read(source, cut=CUT, **options):
    """Read a file, its content, or an image saved with the options."""
    if isinstance(source, bytes):
        source = io.BytesIO(source)
    elif isinstance(source, Image.Image) and options["format"] == "HEIF":
        source = io.BytesIO(heic(source, **options))
    elif isinstance(source, Image.Image):
        buffer = io.BytesIO()
        source.save(buffer, **options)
        buffer.seek(0)
        source = buffer
    else:
        source = io.BytesIO(source.read_bytes())
    with decoding():
        return read_photo(source, cut, preview=True)


@pytest.mark.parametrize(
    ("form", "mode", "off"),
    [
        ("JPEG", "RGB", 40),
        ("JPEG", "CMYK", 60),
        ("PNG", "RGB", 2),
        ("PNG", "RGBA", 2),
        ("PNG", "P", 40),
        ("GIF", "P", 40),
        ("BMP", "RGB", 2),
        ("WEBP", "RGB", 40),
        ("TIFF", "RGB", 2),
        ("TIFF", "CMYK", 2),
        ("TIFF", "P", 40),
        ("HEIF", "RGB", 40),
        ("HEIF", "RGBA", 40),
        ("AVIF", "RGB", 40),
        ("AVIF", "RGBA", 40),
    ],
)
def test_formats_and_colour_modes_show_the_same_picture(form, mode, off):
    photo = read(corners().convert(mode), format=form)
    assert photo.pixels.shape == (3, 32, 32)
    assert photo.pixels.dtype == np.uint8
    assert np.abs(corner_colours(photo.pixels) - CORNERS).max() <= off


@pytest.mark.parametrize("mode", ["L", "LA", "1", "I;16", "I", "F"])
def test_grey_pictures_keep_their_brightness_whatever_their_depth(mode):
    grey = np.array([[10, 90], [170, 250]], dtype=np.uint8).repeat(16, 0).repeat(16, 1)
    if mode == "I;16":
        image = Image.fromarray(grey.astype(np.uint16) * 257)
    elif mode == "I":
        image = Image.fromarray(grey.astype(np.int32) * 257)
    elif mode == "F":
        image = Image.fromarray(grey.astype(np.float32) / 255)
    else:
        image = Image.fromarray(grey).convert(mode)
    photo = read(image, format="TIFF")
    off = 2 if mode != "1" else 60  # black and white dots for grey
    assert np.abs(corner_colours(photo.pixels).T - [10, 90, 170, 250]).mean() <= off


def test_twelve_bits_in_a_file_of_sixteen_are_not_read_as_black():
    grey = np.array([[0, 1000], [2000, 4095]], dtype=np.uint16).repeat(16, 0).repeat(16, 1)
    photo = read(Image.fromarray(grey), format="PNG")
    assert np.abs(corner_colours(photo.pixels)[:, 0] - [0, 62, 125, 255]).max() <= 2


@pytest.mark.parametrize(
    ("form", "mode"),
    [("PNG", "RGBA"), ("PNG", "LA"), ("PNG", "P"), ("HEIF", "RGBA"), ("HEIF", "LA"), ("AVIF", "RGBA"), ("AVIF", "LA")],
)
def test_what_is_transparent_is_white(form, mode):
    image = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    image.paste((200, 200, 200, 255), (0, 0, 20, 40))
    photo = read(image.convert(mode), format=form)
    assert np.abs(corner_colours(photo.pixels)[:, 0] - [200, 255, 200, 255]).max() <= 3


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "HEIF", "AVIF"])
def test_photos_are_shown_upright_however_the_camera_was_held(form, orientation):
    # What the camera stored is the upright picture under the inverse of what the tag says to do.
    back = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    image = corners(400, 300)
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = image.transpose(back[orientation]) if orientation > 1 else image
    photo = read(stored, format=form, exif=exif.tobytes(), quality=95, subsampling="4:4:4")
    assert np.abs(corner_colours(photo.pixels) - CORNERS).max() <= 12
    assert photo.preview.size == (PREVIEW, 96)


def test_broken_exif_does_not_cost_the_photo():
    photo = read(corners(), format="JPEG", exif=b"Exif\x00\x00MM\x00*\xff\xff\xff\xff garbage")
    assert photo.pixels.shape == (3, 32, 32)


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG", "TIFF", "HEIF", "AVIF"])
def test_of_an_animation_the_first_frame_is_taken(form):
    second = Image.new("RGB", (60, 40), "black")
    photo = read(corners(), format=form, save_all=True, append_images=[second])
    assert np.abs(corner_colours(photo.pixels) - CORNERS).max() <= 60


@pytest.mark.parametrize(("squash", "box"), [(False, (50, 10, 70, 30)), (True, (30, 10, 90, 30))])
def test_the_cut_is_the_middle_as_a_square_or_the_same_part_of_width_and_height(squash, box):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 120, 3), dtype=np.uint8))
    cut = Cut(10, fraction=0.5, filter=Image.Resampling.BOX, squash=squash)
    expected = np.asarray(image.resize((10, 10), Image.Resampling.BOX, box), int).transpose(2, 0, 1)
    assert np.abs(read(image, cut, format="PNG").pixels - expected).max() <= 1


@pytest.mark.parametrize("size", [(1, 1), (1, 5000), (5000, 1)])
def test_a_photo_may_be_one_pixel_or_very_long(size):
    photo = read(Image.new("RGB", size, (10, 20, 30)), format="PNG")
    assert (photo.pixels == np.array([10, 20, 30])[:, None, None]).all()
    assert sorted(photo.preview.size) == [1, min(PREVIEW, max(size))]


def test_a_large_jpeg_decoded_at_a_fraction_shows_the_same_picture():
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8))
    image = image.resize((1200, 900), Image.Resampling.BICUBIC)
    reduced = read(image, format="JPEG", quality=95).pixels.astype(int)
    whole = read(image, format="PNG").pixels.astype(int)
    assert np.abs(reduced - whole).mean() < 3


READ_LARGE = """
import sys
from pathlib import Path
from medi.photos.decode import Cut, UnreadableError, decoding, read_photo
with decoding():
    try:
        print(read_photo(open(sys.argv[1], "rb"), Cut(32, fraction=0.9), preview=True).pixels[:, ::31, ::31].tolist())
    except UnreadableError as error:
        print(error)
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""
LARGE = {
    "JPEG": ["RGB", "RGB subsampling=0", "L", "RGB progressive=1", "CMYK progressive=1 subsampling=0"],
    "PNG": ["RGB", "RGBA", "LA", "P", "1", "I;16"],
    "TIFF": ["RGB", "RGB compression=tiff_lzw", "I;16", "I", "F", "RGB compression=tiff_lzw strip_size=1000000000"],
    "WEBP": ["RGB quality=20 method=0", "RGBA quality=20 method=0"],
    "GIF": ["P"],
    "BMP": ["RGB"],
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measures as Linux does")
@pytest.mark.parametrize(("form", "kind"), [(form, kind) for form, kinds in LARGE.items() for kind in kinds])
def test_a_picture_of_12000_by_12000_takes_less_than_a_gigabyte_or_is_refused(tmp_path, form, kind):
    mode, *options = kind.split()
    said = {name: int(value) if value.isdigit() else value for name, value in (text.split("=") for text in options)}
    image = corners(12_000, 12_000).convert("I" if mode == "I;16" else mode)
    image.convert(mode).save(tmp_path / "large", form, **said)
    del image
    words = [sys.executable, "-c", READ_LARGE, str(tmp_path / "large")]
    shown, peak = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert int(peak) < 700_000
    assert "too many" in shown or len(json.loads(shown)) == 3


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "1", "I;16", "I", "F"])
def test_a_picture_that_is_made_smaller_in_bands_shows_the_same(mode, monkeypatch):
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(0, 256, (7, 5, 4), dtype=np.uint8)).resize((700, 1010))
    image = Image.fromarray(np.asarray(image.convert("I"), np.uint16) * 16) if mode == "I;16" else image.convert(mode)
    whole = read(image, format="TIFF")
    monkeypatch.setattr(resize, "LARGE", 0)
    monkeypatch.setattr(resize, "BAND", 9000)
    bands = read(image, format="TIFF")
    assert bands.preview.size == whole.preview.size
    assert np.abs(bands.pixels.astype(int) - whole.pixels).mean() < 2


def test_colours_of_a_jpeg_in_scans_of_their_own_are_counted_as_they_are_held():
    buffer = io.BytesIO()
    corners(64, 64).save(buffer, "JPEG", subsampling=0)
    whole = buffer.getvalue()
    place = whole.index(b"\xff\xda")
    with Image.open(io.BytesIO(whole)) as image:
        assert room.bytes_held(image, 0, 4096) == 0
    apart = whole[: place + 2] + b"\0\x08\x01\x01\0\0\x3f\0" + whole[place + 14 :]
    with Image.open(io.BytesIO(apart)) as image:
        assert room.bytes_held(image, 0, 4096) == 3 * 2 * 4096


def test_photos_take_turns_where_memory_is_not_enough_for_all():
    shared, held, most = room.Room(10), [], []

    def read_one(size):
        with shared.taken(size):
            held.append(size)
            most.append(sum(held))
            held.remove(size)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read_one, [6, 5, 10, 1, 3] * 40))
    assert max(most) <= 10
    assert shared.free == 10


@pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"])
def test_a_file_cut_short_is_refused(tmp_path, form):
    path = truncated(tmp_path / f"half.{form.lower()}")
    with pytest.raises(UnreadableError, match=r"damaged|not an image"):
        read(path)


def test_a_bomb_is_refused_before_it_goes_off(tmp_path):
    with pytest.raises(UnreadableError, match="pixels"):
        read(bomb(tmp_path / "bomb.png"))
    with pytest.raises(UnreadableError, match="too many"):
        read(bomb(tmp_path / "smaller.png", side=13_000))


@pytest.mark.parametrize(
    "content",
    [b"just some text", b"", b"\xff\xd8\xff", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", bytes(500)],
)
def test_what_is_no_image_is_called_that(tmp_path, content):
    path = tmp_path / "photo.jpg"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=r"not an image|damaged"):
        read(path)


def test_bytes_changed_at_random_give_a_photo_or_a_reason_but_never_another_error(tmp_path):
    generator, reasons = np.random.default_rng(0), []
    for form in ("jpg", "png", "gif", "webp", "tif", "bmp", "avif", "heic"):
        original = heic(smooth()) if form == "heic" else noise(tmp_path / f"photo.{form}").read_bytes()
        for _ in range(60):
            content = np.frombuffer(original, dtype=np.uint8).copy()
            places = generator.integers(0, len(content), 8)
            content[places] = generator.integers(0, 256, 8)
            path = tmp_path / f"changed.{form}"
            path.write_bytes(content.tobytes())
            try:
                read(path)
            except UnreadableError as error:
                reasons.append(str(error))
    assert reasons
    assert all(reason and "\n" not in reason for reason in reasons)


def smooth():
    """A picture without edges, which lossy coding hardly changes."""
    pixels = np.random.default_rng(0).integers(0, 256, (4, 5, 4), dtype=np.uint8)
    return Image.fromarray(pixels).resize((150, 120), Image.Resampling.BICUBIC)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA"])
@pytest.mark.parametrize("write", [heic, avif])
def test_heic_and_avif_show_what_a_png_shows(write, mode):
    image = smooth().convert(mode)
    photo, png = read(write(image, quality=95)), read(image, format="PNG")
    assert np.abs(photo.pixels.astype(int) - png.pixels).mean() < 3
    assert photo.preview.size == png.preview.size


def test_a_heic_of_ten_bits_shows_what_a_png_shows():
    from pillow_heif import from_bytes

    image = smooth().convert("RGB")
    deep = (np.asarray(image).astype("<u2") * 257).tobytes()
    buffer = io.BytesIO()
    from_bytes("RGB;16", image.size, deep).save(buffer, quality=95)
    assert np.abs(read(buffer.getvalue()).pixels.astype(int) - read(image, format="PNG").pixels).mean() < 3


@pytest.mark.parametrize("write", [heic, avif])
def test_heic_and_avif_cut_short_anywhere_give_a_reason(write):
    content = write(smooth().convert("RGB"))
    for length in range(12, len(content), len(content) // 40):
        with pytest.raises(UnreadableError, match="damaged"):
            read(content[:length])


@pytest.mark.parametrize("size", [(60_000, 60_000), (13_000, 13_000)])
@pytest.mark.parametrize("write", [heic, avif])
def test_a_bomb_in_heic_and_avif_is_refused_before_it_goes_off(write, size):
    # 60 x 40 pixels are cut out of 64 x 64 in HEIC, and Pillow only tells of the former.
    content = stating(write(corners()), *size)
    before = peak_megabytes()
    with pytest.raises(UnreadableError, match=f"{size[0]:,} x {size[1]:,} pixels are too many"):
        read(content)
    assert peak_megabytes() - before < 50


def test_a_film_is_no_image():
    with pytest.raises(UnreadableError, match="not an image"):
        read(b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(500))


def test_without_avif_in_pillow_such_a_file_is_refused_by_name(monkeypatch):
    content = avif(corners())
    monkeypatch.setattr(features, "check", lambda _: False)
    with pytest.raises(UnreadableError, match="Pillow cannot read AVIF"):
        read(content)
    assert read(heic(corners())).pixels.shape == (3, 32, 32)


def test_the_reader_of_heic_is_loaded_by_the_first_such_file_in_whatever_thread(tmp_path):
    (tmp_path / "a.heic").write_bytes(heic(corners()))
    corners().save(tmp_path / "a.png")
    script = """
        import sys
        from concurrent.futures import ThreadPoolExecutor
        from medi.photos.decode import Cut, decoding, read_photo

        def read(name):
            with open(name, "rb") as file:
                return read_photo(file, Cut(8)).pixels.shape

        with decoding():
            read("a.png")
            assert not {"pi_heif", "rawpy"} & set(sys.modules)
            with ThreadPoolExecutor(8) as pool:
                assert set(pool.map(read, ["a.heic"] * 32)) == {(3, 8, 8)}
        assert "pi_heif" in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, check=True)


def test_pillows_own_limit_is_back_once_photos_are_read():
    limit = Image.MAX_IMAGE_PIXELS
    read(corners(), format="PNG")
    assert limit == Image.MAX_IMAGE_PIXELS
