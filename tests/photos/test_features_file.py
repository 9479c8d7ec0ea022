"""Features that were made elsewhere are found by path, and whatever is wrong with their file is said in one line."""

import pickle
import sys
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pictures import noise, truncated

from medi.core.errors import InputError
from medi.core.progress import Silent
from medi.photos.features_file import Features, read_features
from medi.photos.folders import find_photos

PATHS = ["cat/a.png", "cat/b.png", "dog/a.png"]
VECTORS = np.arange(6, dtype=np.float32).reshape(3, 2)


def npz(file, path=PATHS, vector=VECTORS, **more):
    np.savez(file, path=np.asarray(path), vector=np.asarray(vector), **more)
    return file


def parquet(file, path=PATHS, vector=VECTORS, kind=None):
    """The same as .parquet; `vector` may be any list of lists."""
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow (pip install 'medi[parquet]')")
    from pyarrow import parquet

    rows = vector.tolist() if isinstance(vector, np.ndarray) else vector
    table = pyarrow.table({"path": path, "vector": pyarrow.array(rows, type=kind and kind(pyarrow))})
    parquet.write_table(table, file, row_group_size=2)
    return file


def refused(files, *parts):
    with pytest.raises(InputError) as error:
        read_features(files)
    for part in parts:
        assert str(part) in str(error.value)
    assert "\n" not in str(error.value)


def vectors_of(features, root):
    """Vectors by path."""
    found = find_photos(root, "--novel")
    features.check(found)
    photos = features.read(found, Silent(), title="reading")
    return dict(zip(photos.paths, photos.arrays, strict=True))


@pytest.fixture
def photos(tmp_path):
    """A folder with the photos that `PATHS` names."""
    for seed, path in enumerate(PATHS):
        noise(tmp_path / "photos" / path, seed=seed)
    return tmp_path / "photos"


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
NUMBERS = st.floats(-9, 9, width=32)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(data=st.data())
def test_every_path_has_its_own_vector_whatever_the_order_and_the_kind_of_numbers(tmp_path, data):
    paths = data.draw(st.lists(NAMES, min_size=1, max_size=8, unique=True))
    dtype = data.draw(st.sampled_from([np.float32, np.float64, ">f4", np.int16]))
    values = data.draw(arrays(np.float32, (len(paths), data.draw(st.integers(1, 4))), elements=NUMBERS))
    values = values.astype(dtype)
    order = data.draw(st.permutations(range(len(paths))))
    file = npz(tmp_path / "f.npz", [paths[i] for i in order], np.asarray(values[order], order="F"))
    features = read_features([file])
    assert features.vectors.dtype == np.float32
    assert features.rows.keys() == set(paths)
    for path, value in zip(paths, values, strict=True):
        assert features.vectors[features.rows[path]].tolist() == value.astype(np.float32).tolist()


def test_paths_are_relative_to_the_folder_or_absolute(tmp_path, photos, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = dict(zip(PATHS, VECTORS.tolist(), strict=True))
    link = tmp_path / "link"
    link.symlink_to(photos)
    for number, folder in enumerate(("", f"{photos}/", f"{link}/")):
        features = read_features([npz(tmp_path / f"{number}.npz", [folder + path for path in PATHS])])
        roots = [link] if folder == f"{link}/" else [photos, link, photos.relative_to(tmp_path)]
        for root in roots:
            assert {path: row.tolist() for path, row in vectors_of(features, root).items()} == expected


def test_paths_with_the_separators_of_windows_are_found_there(tmp_path, photos, monkeypatch):
    expected = dict(zip(PATHS, VECTORS.tolist(), strict=True))
    for number, folder in enumerate(("", f"{photos}/")):
        file = npz(tmp_path / f"{number}.npz", [(folder + path).replace("/", "\\") for path in PATHS])
        with monkeypatch.context() as patch:
            patch.setattr("sys.platform", "win32")
            assert {path: row.tolist() for path, row in vectors_of(read_features([file]), photos).items()} == expected


def test_a_path_that_two_folders_could_mean_is_refused_and_absolute_ones_are_not(tmp_path, photos):
    other = tmp_path / "other"
    noise(other / PATHS[0], seed=9)
    folders = [find_photos(root, "") for root in (photos, other)]
    with pytest.raises(InputError, match="absolute") as error:
        read_features([npz(tmp_path / "f.npz")]).check(*folders)
    assert str(other / PATHS[0]) in str(error.value)
    whole = npz(tmp_path / "g.npz", [*PATHS, str(other / PATHS[0])], [*VECTORS.tolist(), [7, 8]])
    features = read_features([whole])
    features.check(*folders)
    assert vectors_of(features, other)[PATHS[0]].tolist() == [7, 8]
    assert vectors_of(features, photos)[PATHS[0]].tolist() == VECTORS[0].tolist()


def test_files_are_merged_and_a_path_with_two_vectors_is_named(tmp_path):
    first, second = npz(tmp_path / "a.npz"), npz(tmp_path / "b.npz", ["new.png", PATHS[1]], [[9, 9], VECTORS[1]])
    merged = read_features([first, second])
    assert merged.vectors[merged.rows["new.png"]].tolist() == [9, 9]
    assert set(merged.rows) == {*PATHS, "new.png"}
    assert merged.identity != read_features([first]).identity
    refused([first, npz(tmp_path / "c.npz", [PATHS[2]], [[0, 0]])], "two different vectors", PATHS[2])
    refused([npz(tmp_path / "d.npz", ["x", "x"], [[0, 0], [0, 1]])], "two different vectors for x")
    refused([first, npz(tmp_path / "e.npz", ["x"], [[1, 2, 3]])], "e.npz", "length 3", "a.npz", "length 2")


def test_photos_without_a_vector_are_counted_unless_they_cannot_be_read(tmp_path, photos):
    truncated(photos / "a half.jpg")
    (photos / "zebra.jpg").write_text("not a photo")
    features = read_features([npz(tmp_path / "f.npz")])
    found = find_photos(photos, "--novel")
    features.check(found)
    read = features.read(found, Silent(), title="reading")
    assert read.paths == PATHS
    assert {item.path for item in read.skipped} == {"a half.jpg", "zebra.jpg"}
    assert len({*read.digests}) == 3
    (shard,) = features.shards(found, Silent(), title="reading")
    assert np.array_equal(shard.arrays, read.arrays)
    some = read_features([npz(tmp_path / "g.npz", PATHS[:1], VECTORS[:1])])
    with pytest.raises(InputError, match=r"and 2 more: .*first one is cat/a\.png") as error:
        some.check(found)
    assert str(photos / PATHS[1]) in str(error.value)


def test_a_photo_with_a_vector_is_not_decoded(tmp_path, photos):
    (photos / PATHS[0]).write_text("damaged since")
    assert set(vectors_of(read_features([npz(tmp_path / "f.npz")]), photos)) == set(PATHS)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_numbers_that_are_none_are_refused_with_their_path(tmp_path, bad):
    vectors = VECTORS.astype(np.float64)
    vectors[1:, 0] = bad
    refused([npz(tmp_path / "f.npz", vector=vectors)], "f.npz", f"{PATHS[1]} and 1 more")


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return open, (str(self.file), "w")


@pytest.mark.parametrize("make", [npz, parquet])
@pytest.mark.parametrize("numbers", [VECTORS.astype(float) * 1e-160, VECTORS.astype(float) + 1e10])
def test_differences_that_float32_would_lose_are_no_vectors_that_are_the_same(tmp_path, make, numbers):
    file = make(tmp_path / f"f.{make.__name__}", vector=numbers)
    refused([file], file, "differ by less than 32-bit floats can hold")
    same = make(file, vector=np.full((3, 2), 0.1))
    assert (read_features([same]).vectors == np.float32(0.1)).all()


def test_nothing_is_ever_unpickled(tmp_path):
    sprung = tmp_path / "sprung"
    trap = np.array([Trap(sprung)] * 3, dtype=object)
    refused([npz(tmp_path / "a.npz", path=trap)], "a.npz", "Python objects", "dtype=str")
    refused([npz(tmp_path / "b.npz", vector=trap)], "b.npz", "Python objects")
    (tmp_path / "c.npz").write_bytes(pickle.dumps(Trap(sprung)))
    refused([tmp_path / "c.npz"], "c.npz", "np.savez")
    assert not sprung.exists()


def test_files_that_are_not_what_they_should_be_are_named(tmp_path):
    refused([tmp_path / "absent.npz"], "absent.npz", "no such file")
    (tmp_path / "folder.npz").mkdir()
    refused([tmp_path / "folder.npz"], "folder.npz", "directory")
    refused([tmp_path / "table.csv"], "table.csv", ".parquet")
    whole = npz(tmp_path / "whole.npz").read_bytes()
    for size in (0, 10, len(whole) // 2):
        (tmp_path / "cut.npz").write_bytes(whole[:size])
        refused([tmp_path / "cut.npz"], "cut.npz")
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as archive:
        archive.writestr("path", "x")
        archive.writestr("vector", "y")
    refused([tmp_path / "zip.npz"], "zip.npz", "`path`")
    np.savez(tmp_path / "other.npz", names=PATHS, vector=VECTORS)
    refused([tmp_path / "other.npz"], "other.npz", "names, vector", "`path`")


def test_arrays_that_do_not_fit_are_named(tmp_path):
    for path, vector, part in (
        ([1, 2, 3], VECTORS, "list of strings"),
        ([PATHS], VECTORS, "list of strings"),
        (PATHS, VECTORS[0], "table of numbers"),
        (PATHS, VECTORS > 0, "table of numbers"),
        (PATHS, VECTORS.astype(complex), "table of numbers"),
        (PATHS[:2], VECTORS, "2 paths and 3 vectors"),
        (np.zeros(0, str), VECTORS[:0], "no vectors"),
        (PATHS, VECTORS[:, :0], "no vectors"),
    ):
        refused([npz(tmp_path / "f.npz", path, vector)], "f.npz", part)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(data=st.data())
def test_damage_to_a_file_is_an_input_error_or_harmless(tmp_path, data):
    whole = bytearray(npz(tmp_path / "f.npz").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "f.npz").write_bytes(whole)
    with suppress(InputError):
        assert isinstance(read_features([tmp_path / "f.npz"]), Features)


def test_several_processes_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="--ray"):
        read_features([npz(tmp_path / "f.npz")], ray="auto")
    monkeypatch.setenv("WORLD_SIZE", "2")
    refused([tmp_path / "f.npz"], "torchrun")


def test_without_pyarrow_the_cure_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "f.parquet").write_bytes(b"PAR1")
    refused([tmp_path / "f.parquet"], "f.parquet", "pip install", "medi[parquet]")


@pytest.mark.parametrize(
    "kind",
    [
        None,
        lambda pa: pa.list_(pa.float32()),
        lambda pa: pa.large_list(pa.float64()),
        lambda pa: pa.list_(pa.float32(), 2),
        lambda pa: pa.list_(pa.int8()),
    ],
)
def test_parquet_gives_the_same_as_npz(tmp_path, kind):
    table = parquet(tmp_path / "f.parquet", kind=kind)
    first, second = read_features([table]), read_features([npz(tmp_path / "f.npz")])
    assert first.rows == second.rows
    assert np.array_equal(first.vectors, second.vectors)


def test_parquet_that_does_not_fit_is_named(tmp_path):
    lists = VECTORS.tolist()
    for path, vector, part in (
        (PATHS, [[1.0, 2], [3], [4, 5]], "different lengths"),
        (PATHS, [[1.0, 2], [3, 4], [4]], "different lengths"),
        (PATHS, [[1.0, 2], None, [4, 5]], "gaps"),
        (PATHS, [[1.0, 2], [None, 1], [4, 5]], "gaps"),
        (PATHS, [[1.0, 2], [np.nan, 1], [4, 5]], PATHS[1]),
        (PATHS, [["1", "2"]] * 3, "column of list"),
        (PATHS, [1.0, 2.0, 3.0], "column of double"),
        (PATHS, [[]] * 3, "column of list"),
        ([1, 2, 3], lists, "not text"),
        ([None, "b", "c"], lists, "not text"),
    ):
        refused([parquet(tmp_path / "f.parquet", path, vector)], "f.parquet", part)
    gap = parquet(tmp_path / "g.parquet", vector=[[1.0, 2], None, [4, 5]], kind=lambda pa: pa.list_(pa.float32(), 2))
    refused([gap], "gaps")
    (tmp_path / "h.parquet").write_bytes(gap.read_bytes()[:50])
    refused([tmp_path / "h.parquet"], "h.parquet", "cannot be read")
    refused([tmp_path / "absent.parquet"], "absent.parquet", "no such file")
