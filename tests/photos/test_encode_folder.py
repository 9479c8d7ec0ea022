"""Photos become arrays in the order of their names, and are decoded again only if their content is new."""

import io
from threading import current_thread, main_thread

import numpy as np
import pytest
from pictures import bomb, noise, truncated
from PIL import Image

from medi.core.progress import Silent
from medi.photos import encode_folder
from medi.photos.cache import THUMBNAILS, PhotoCache
from medi.photos.decode import PREVIEW, Cut
from medi.photos.encode_folder import read_photos, read_shards, read_thumbnails
from medi.photos.encoders import Encoder
from medi.photos.folders import Found, find_photos


class Counting:
    """An encoder whose features are the mean colours; counts what it is asked for."""

    def __init__(self):
        self.encoded = 0
        self.largest = 0

    def __call__(self, images):
        assert images.dtype == np.uint8
        self.encoded += len(images)
        self.largest = max(self.largest, len(images))
        return images.mean((2, 3)).astype(np.float32)


@pytest.fixture
def counting():
    return Counting()


def read(folder, counting, tmp_path, *, side=16, in_threads=True, **options):
    encoder = Encoder("means", "means-1", Cut(side), (3,), counting, in_threads=in_threads)
    cache = PhotoCache(encoder.identity, Silent(), tmp_path / "cache")
    found = find_photos(folder, "--novel")
    return read_photos(found, encoder, cache, Silent(), **options)


def colour_of(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).mean((0, 1))


def test_rows_belong_to_their_photos_whatever_is_skipped_between_them(tmp_path, counting, monkeypatch):
    monkeypatch.setattr(encode_folder, "BATCH", 2)
    monkeypatch.setattr(encode_folder, "SHARD", 4)
    folder = tmp_path / "photos"
    for i in range(23):
        noise(folder / f"{i:02}.png", seed=i, size=(20, 20))
    truncated(folder / "05b.jpg")
    (folder / "11b.jpg").write_text("not a photo")
    bomb(folder / "22b.png")
    result = read(folder, counting, tmp_path)
    assert result.paths == [f"{i:02}.png" for i in range(23)]
    assert [skipped.path for skipped in result.skipped] == ["05b.jpg", "11b.jpg", "22b.png"]
    assert counting.encoded == 23
    assert counting.largest == 2
    expected = np.stack([colour_of(folder / path) for path in result.paths])
    assert np.abs(result.arrays - expected).max() < 3


def test_only_new_content_is_encoded_again(tmp_path, counting):
    folder = tmp_path / "photos"
    for i in range(5):
        noise(folder / f"{i}.png", seed=i)
    first = read(folder, counting, tmp_path)
    (folder / "0.png").rename(folder / "z.png")
    noise(folder / "1.png", seed=77)
    second = read(folder, counting, tmp_path)
    assert counting.encoded == 5 + 1
    assert second.paths == ["1.png", "2.png", "3.png", "4.png", "z.png"]
    assert np.array_equal(second.arrays[1:4], first.arrays[2:5])
    assert np.array_equal(second.arrays[4], first.arrays[0])


def thumbnail_cache(tmp_path):
    return PhotoCache(THUMBNAILS, Silent(), tmp_path / "cache")


def test_a_gpu_is_fed_by_one_thread_with_whole_shards_and_the_arrays_are_the_same(tmp_path, counting, monkeypatch):
    monkeypatch.setattr(encode_folder, "BATCH", 2)
    monkeypatch.setattr(encode_folder, "SHARD", 6)
    folder = tmp_path / "photos"
    for i in range(17):
        noise(folder / f"{i:02}.png", seed=i)
    truncated(folder / "05b.jpg")
    by_threads = read(folder, counting, tmp_path / "one")
    sizes, real = [], encode_folder._encoded

    def noting(files, encoder):
        sizes.append((len(files), current_thread() is main_thread()))
        return real(files, encoder)

    monkeypatch.setattr(encode_folder, "_encoded", noting)
    together = read(folder, counting, tmp_path / "other", in_threads=False)
    assert sizes == [(6, True)] * 3
    assert together.paths == by_threads.paths
    assert np.array_equal(together.arrays, by_threads.arrays)


def test_thumbnails_are_made_of_the_photos_that_can_still_be_read(tmp_path):
    names = ["a.png", "b.jpg", "gone.png"]
    noise(tmp_path / names[0], size=(300, 200))
    truncated(tmp_path / names[1])
    jpegs = read_thumbnails(tmp_path, names, [bytes([i]) * 32 for i in range(3)], thumbnail_cache(tmp_path))
    assert Image.open(io.BytesIO(jpegs[0])).size == (128, 85)
    assert jpegs[1:] == [b"", b""]


@pytest.mark.parametrize("side", [16, PREVIEW])
def test_a_photo_is_decoded_once_for_its_array_and_its_thumbnail(tmp_path, counting, monkeypatch, side):
    monkeypatch.setattr(encode_folder, "BATCH", 2)
    monkeypatch.setattr(encode_folder, "SHARD", 4)
    decoded, real = [], encode_folder.read_photo
    monkeypatch.setattr(
        encode_folder,
        "read_photo",
        lambda file, *more, **options: decoded.append(file.name) or real(file, *more, **options),
    )
    folder = tmp_path / "photos"
    for i in range(11):
        noise(folder / f"{i:02}.{'jpg' if i % 2 else 'png'}", seed=i, size=(300 + i, 200))
    truncated(folder / "05b.jpg")
    photos = read(folder, counting, tmp_path, side=side, thumbnails=thumbnail_cache(tmp_path))
    assert len(decoded) == 12
    for thumbnails in (thumbnail_cache(tmp_path), thumbnail_cache(tmp_path)):  # of this run, and of the next one
        jpegs = read_thumbnails(folder, photos.paths, photos.digests, thumbnails)
        for path, jpeg in zip(photos.paths, jpegs, strict=True):
            with Image.open(io.BytesIO(jpeg)) as small:
                assert max(small.size) == PREVIEW
                assert np.abs(np.asarray(small).mean((0, 1)) - colour_of(folder / path)).max() < 4
    assert len(decoded) == 12, "thumbnails come from the cache"
    read(folder, counting, tmp_path, side=side, thumbnails=thumbnail_cache(tmp_path))
    assert len(decoded) == 13, "the array of the damaged photo alone is not in the cache"
    plain = read(folder, counting, tmp_path / "plain", side=side)
    assert np.array_equal(plain.arrays, photos.arrays), "they do not depend on thumbnails"


def test_shards_come_in_order_each_kept_before_it_is_given_out_and_few_are_held(tmp_path, counting, monkeypatch):
    monkeypatch.setattr(encode_folder, "BATCH", 2)
    monkeypatch.setattr(encode_folder, "SHARD", 4)
    monkeypatch.setattr(encode_folder, "_cores", lambda: 1)
    paths = [noise(tmp_path / f"{i:02}.png", seed=i).name for i in range(23)]
    encoder = Encoder("means", "means-1", Cut(16), (3,), counting)
    cache = PhotoCache(encoder.identity, Silent(), tmp_path / "cache")
    seen = []
    for number, shard in enumerate(read_shards(Found(tmp_path, paths), encoder, cache, Silent())):
        seen += shard.paths
        assert shard.arrays.shape == (len(shard.paths), 3)
        kept = PhotoCache(encoder.identity, Silent(), tmp_path / "cache")
        assert all(kept.get(digest) is not None for digest in shard.digests)
        assert counting.encoded <= 4 * (number + 1) + 2 * 3, "no more than a few batches ahead"
    assert seen == paths
    assert len(list((tmp_path / "cache").glob("*/*.shard"))) == 6


def test_processes_that_share_a_machine_share_its_cores(monkeypatch):
    monkeypatch.setattr(encode_folder.os, "sched_getaffinity", lambda _: range(8), raising=False)
    for variables, cores in (
        ({}, 8),
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "64"}, 8),
        ({"OMP_NUM_THREADS": "4,2"}, 8),
        ({"OMP_NUM_THREADS": "1", "LOCAL_WORLD_SIZE": "4"}, 2),
        ({"LOCAL_WORLD_SIZE": "16"}, 1),
    ):
        for name in ("OMP_NUM_THREADS", "LOCAL_WORLD_SIZE"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert encode_folder._cores() == cores, variables


def test_an_interrupted_reading_keeps_its_finished_batches(tmp_path, counting, monkeypatch):
    monkeypatch.setattr(encode_folder, "BATCH", 2)
    monkeypatch.setattr(encode_folder, "SHARD", 4)
    monkeypatch.setattr(encode_folder, "_cores", lambda: 1)  # batches end in the order they began
    for i in range(10):
        noise(tmp_path / "photos" / f"{i}.png", seed=i)

    def stopped(images):
        if counting.encoded >= 4:
            raise KeyboardInterrupt
        return counting(images)

    with pytest.raises(KeyboardInterrupt):
        read(tmp_path / "photos", stopped, tmp_path)
    assert counting.encoded == 4
    read(tmp_path / "photos", counting, tmp_path)
    assert counting.encoded == 10


def test_a_file_that_vanishes_meanwhile_is_skipped_and_no_photos_are_no_rows(tmp_path, counting):
    encoder = Encoder("means", "means-1", Cut(16), (3,), counting)
    noise(tmp_path / "a.png")
    cache = PhotoCache("x", Silent(), tmp_path / "cache")
    result = read_photos(Found(tmp_path, ["a.png", "gone.png"]), encoder, cache, Silent())
    assert result.paths == ["a.png"]
    assert "no such file" in result.skipped[0].reason
    assert read_photos(Found(tmp_path, []), encoder, cache, Silent()).arrays.shape == (0, 3)
