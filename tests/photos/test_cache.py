"""The cache finds what was put into it; whatever goes wrong with it costs time, never a result."""

import os
import subprocess
import sys
import time
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medi.core.progress import Silent
from medi.photos.cache import STALE_SECONDS, PhotoCache, cache_folder


class Told(Silent):
    def __init__(self):
        super().__init__()
        self.said = []

    def say(self, message):
        self.said.append(message)


def open_cache(folder, name="net-1", told=None):
    return PhotoCache(name, told or Silent(), folder)


def digest(name) -> bytes:
    return sha256(str(name).encode()).digest()


def rows(names, value=b"value"):
    return [(digest(name), value) for name in names]


def only_shard(folder):
    (path,) = folder.glob("*/*.shard")
    return path


def test_what_was_put_is_found_at_once_by_the_next_run_and_by_the_same_encoder_only(tmp_path):
    cache = open_cache(tmp_path)
    cache.put([(digest("a"), b"11"), (digest("b"), b"22")])
    for found in (cache, open_cache(tmp_path)):
        assert (found.get(digest("a")), found.get(digest("b")), found.get(digest("c"))) == (b"11", b"22", None)
    assert open_cache(tmp_path, "net-2").get(digest("a")) is None


@given(st.lists(st.dictionaries(st.integers(0, 50), st.binary(min_size=3, max_size=3), max_size=8), max_size=6))
def test_the_shards_of_two_programs_at_once_are_one_dictionary(tmp_path_factory, shards):
    folder = tmp_path_factory.mktemp("cache")
    expected, caches = {}, (open_cache(folder), open_cache(folder))
    for number, shard in enumerate(shards):
        new = {name: value for name, value in shard.items() if name not in expected}
        caches[number % 2].put([(digest(name), value) for name, value in new.items()])
        expected |= new
    both = open_cache(folder)
    assert {name: value for name in range(51) if (value := both.get(digest(name))) is not None} == expected


def test_a_shard_that_does_not_fit_together_is_a_mistake_of_ours(tmp_path):
    for bad in ([(b"short", b"1")], [(digest("a"), b"1"), (digest("b"), b"22")]):
        with pytest.raises(ValueError, match="one length"):
            open_cache(tmp_path).put(bad)


def test_the_environment_chooses_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDI_CACHE", str(tmp_path / "here"))
    assert cache_folder() == tmp_path / "here"
    monkeypatch.delenv("MEDI_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    assert cache_folder().name == "features"


WRITE_FOR_EVER = """
import sys
from hashlib import sha256
from itertools import count
from pathlib import Path

from medi.photos.cache import PhotoCache
from medi.core.progress import Silent

cache = PhotoCache("net-1", Silent(), Path(sys.argv[1]))
for number in count():
    digests = [sha256(f"{number}.{i}".encode()).digest() for i in range(20)]
    cache.put([(digest, bytes([number % 256]) * 5000) for digest in digests])
    print(number, flush=True)
"""


def test_a_process_killed_while_it_writes_leaves_whole_shards(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", WRITE_FOR_EVER, tmp_path], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"0\n"
    process.kill()
    process.communicate()
    cache = open_cache(tmp_path)
    number = 0
    while cache.get(digest(f"{number}.0")) is not None:
        for i in range(20):
            assert cache.get(digest(f"{number}.{i}")) == bytes([number % 256]) * 5000
        number += 1
    assert number >= 1
    assert all(cache.get(digest(f"{number}.{i}")) is None for i in range(20))


@pytest.mark.parametrize("cut", [0, 10, 40, 100, 180, -1])
def test_a_torn_shard_is_not_read_and_makes_room_for_a_whole_one(tmp_path, cut):
    open_cache(tmp_path).put(rows("abc"))
    path = only_shard(tmp_path)
    path.write_bytes(path.read_bytes()[:cut])
    told = Told()
    cache = open_cache(tmp_path, told=told)
    assert [cache.get(digest(name)) for name in "abc"] == [None] * 3
    assert not path.exists()
    cache.put(rows("abc"))
    assert open_cache(tmp_path).get(digest("b")) == b"value"
    assert not told.said


def test_a_flipped_bit_anywhere_is_never_read_as_a_value(tmp_path):
    open_cache(tmp_path).put([(digest("a"), b"0123"), (digest("b"), b"4567")])
    path = only_shard(tmp_path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        cache = open_cache(tmp_path)
        assert cache.get(digest("a")) in (None, b"0123"), place
        assert cache.get(digest("b")) in (None, b"4567"), place
        assert not path.exists(), place


def test_a_shard_that_is_damaged_or_deleted_while_the_cache_is_open_is_done_without(tmp_path):
    cache = open_cache(tmp_path)
    cache.put(rows("ab"))
    path = only_shard(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    assert cache.get(digest("a")) is None, "what is damaged in part is not trusted in part"
    assert cache.get(digest("b")) is None
    cache.put(rows("ab"))
    only_shard(tmp_path).unlink()
    assert cache.get(digest("a")) is None


def test_what_killed_processes_were_writing_is_cleared_away_once_it_is_old(tmp_path):
    PhotoCache("net-1", Silent(), tmp_path)
    old, new = (tmp_path / "net-1" / f".{name}.shard.1.tmp" for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, time.time() - STALE_SECONDS - 1))
    PhotoCache("net-1", Silent(), tmp_path)
    assert (old.exists(), new.exists()) == (False, True)


def test_a_folder_that_cannot_be_had_is_told_once_and_done_without(tmp_path):
    (tmp_path / "file").touch()
    told = Told()
    cache = open_cache(tmp_path / "file", told=told)
    cache.put(rows("a"))
    cache.put(rows("b"))
    assert cache.get(digest("a")) is None
    assert len(told.said) == 1
    assert "not kept" in told.said[0]


def test_a_cache_that_fails_later_is_told_once_and_still_read(tmp_path, monkeypatch):
    told = Told()
    cache = open_cache(tmp_path, told=told)
    cache.put(rows("a"))

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        cache.put(rows("b"))
        cache.put(rows("c"))
    assert cache.get(digest("a")) == b"value"
    assert cache.get(digest("b")) is None
    assert len(told.said) == 1
    assert "No space left" in told.said[0]
    assert not list(tmp_path.rglob("*.tmp"))
