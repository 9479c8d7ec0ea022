"""What differs between operating systems; Windows is played where this is not Windows."""

import errno
import ntpath
import os
import subprocess
import sys
import threading
import time
from pathlib import Path, PurePosixPath, PureWindowsPath
from platform import libc_ver
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medi.core import files, system
from medi.core.errors import InputError


@pytest.fixture
def windows(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")


@pytest.fixture
def msvcrt(monkeypatch, windows):
    """Locks of Windows: on bytes of a file from where it stands, refused with EACCES, gone when they are given back."""
    held = set()

    def locking(handle: int, mode: int, count: int) -> None:
        byte = os.fstat(handle).st_ino, os.lseek(handle, 0, os.SEEK_CUR)
        if mode == 0:
            held.remove(byte)
        elif byte in held:
            raise PermissionError(errno.EACCES, "Permission denied")
        else:
            held.add(byte)

    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK=2, LK_UNLCK=0, locking=locking))
    monkeypatch.setitem(sys.modules, "fcntl", None)  # importing it is an error
    return held


def test_windows_locks_refuse_a_second_holder_and_are_given_back(msvcrt, tmp_path):
    with files.only_process(tmp_path):
        assert len(msvcrt) == 1
        with pytest.raises(InputError, match="in use by another"), files.only_process(tmp_path):
            pass
    assert not msvcrt
    with files.only_process(tmp_path):
        assert len(msvcrt) == 1


def test_who_waits_for_a_windows_lock_gets_it(msvcrt, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LOCK_SECONDS", 0.01)
    path, told = tmp_path / "training.lock", []
    path.write_bytes(b"left by somebody")  # then the file stands at its end when it is opened
    first = files.waiting_lock(path, lambda: None)
    first.__enter__()
    threading.Timer(0.1, first.__exit__, (None, None, None)).start()
    with files.waiting_lock(path, lambda: told.append(True)):
        assert len(msvcrt) == 1
    assert told == [True]
    assert not msvcrt


def test_a_rename_on_windows_waits_for_a_reader_and_gives_up_after_a_while(windows, tmp_path, monkeypatch):
    refusals, replace = [2], Path.replace

    def busy(source: Path, target: Path) -> Path:
        if refusals[0]:
            refusals[0] -= 1
            raise PermissionError(errno.EACCES, "The process cannot access the file")
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", busy)
    files.write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    refusals[0] = 10**9
    monkeypatch.setattr(system, "BUSY_SECONDS", 0.1)
    with pytest.raises(InputError, match="no permission"):
        files.write_atomically(tmp_path / "a", b"newer")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_rename_elsewhere_does_not_wait(tmp_path, monkeypatch):
    def refused(source: Path, target: Path) -> Path:
        raise PermissionError

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(Path, "replace", refused)
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("waited"))
    with pytest.raises(PermissionError):
        system.rename(tmp_path / "a", tmp_path / "b")


def test_a_system_that_cannot_open_folders_writes_files_all_the_same(tmp_path, monkeypatch):
    monkeypatch.delattr("os.O_DIRECTORY", raising=False)
    files.write_atomically(tmp_path / "a", b"whole")
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_a_process_that_the_system_ended_is_told_from_one_that_failed():
    access_violation, no_memory, fail_fast = 0xC0000005, 0xC0000017, 0xC0000409
    assert not any(map(system.failed_by_itself, (-9, -15, 0, access_violation, no_memory, fail_fast)))
    assert all(map(system.failed_by_itself, (1, 2, 255)))


def test_a_path_too_long_for_windows_is_said_to_be(windows, tmp_path):
    with pytest.raises(InputError, match=r"the path has \d+ characters.*long paths in Windows"):
        files.write_atomically(tmp_path / ("x" * 250) / "y", b"")
    with pytest.raises(InputError, match="no such file"):
        files.write_atomically(tmp_path / "x" / "y", b"")


def test_separators_of_windows_become_ours_and_a_backslash_elsewhere_is_part_of_a_name(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert system.portable(r"C:\photos\a b\c.jpg") == "C:/photos/a b/c.jpg"
    monkeypatch.setattr(sys, "platform", "linux")
    assert system.portable(r"a\b.jpg") == r"a\b.jpg"


@pytest.mark.parametrize(
    ("paths", "below"),
    [
        (["", "/a", "../a", "a/../../b", "a\0b"], ()),
        (["C:/a", "C:a", r"C:\a", r"\a", r"\\server\share\a", r"a\..\..\b"], (PurePosixPath,)),
        (["a.jpg", "a/b.jpg", "…/ä b.jpg", "a..b/c"], (PurePosixPath, PureWindowsPath)),
    ],
)
def test_paths_out_of_the_folder_are_seen_on_every_system(paths, below):
    for path in paths:
        assert {kind for kind in (PurePosixPath, PureWindowsPath) if system.is_below(path, kind)} == set(below), path


@pytest.mark.parametrize("name", ["CON", "nul.txt", "LPT¹", "aux ", "a:b", "what?", "rose.", "rose ", 'a"b', "a\n"])
def test_names_that_windows_cannot_have_are_refused_there_and_only_there(name, monkeypatch):
    for platform in ("linux", "darwin", "win32"):
        monkeypatch.setattr(sys, "platform", platform)
        assert bool(system.name_fault(name)) == (platform == "win32")


@pytest.mark.parametrize("name", ["rose", "Rosa × hybrida", "con2", "console", "com", "lpt", "a.b", "ñandú", "0", "-"])
def test_common_names_are_fine_on_windows(name):
    assert not system.windows_name_fault(name)


def is_reserved(name: str) -> bool:
    """What Python says."""
    if sys.version_info >= (3, 13):
        return ntpath.isreserved(f"folder\\{name}")  # alone, `0:` would be a drive
    unfit = any(c in '<>:"/\\|?*' or ord(c) < 32 for c in name) or name[-1:] in (".", " ")
    return unfit or PureWindowsPath(name).is_reserved()


@given(st.text(st.sampled_from("conprnauxltmCOM019¹² .:$?é"), min_size=1, max_size=7))
def test_names_are_refused_as_python_knows_them_to_be_reserved(name):
    if set(name) <= {"."}:
        return  # "." and ".." are folders; Python does not call them reserved, and we refuse any leading dot before
    if is_reserved(name):
        assert system.windows_name_fault(name)
    elif sys.version_info >= (3, 13):
        assert not system.windows_name_fault(name)


@pytest.mark.parametrize(("one", "other"), [("Rose", "rose"), ("é", "e\u0301"), ("STRASSE", "straße"), ("Å", "\u212b")])
def test_names_that_some_systems_take_for_one_are_known(one, other):
    common = system.same_on_some_systems(one)
    assert common == system.same_on_some_systems(other) == system.same_on_some_systems(common)


def test_nothing_but_the_module_of_systems_asks_which_system_this_is():
    source = Path(system.__file__).parents[1]
    askers = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in ("sys.platform", "os.name", "platform.system"))
    }
    assert askers == {"core/system.py"}


FAULTS = """
import resource, sys
import numpy as np
from medi.core.system import keep_freed_memory
if sys.argv[1] == "kept" and not keep_freed_memory():
    sys.exit("not arranged")
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
np.ones(6_000_000)
before = faults()
for _ in range(30):
    np.ones(6_000_000)
print(faults() - before)
"""


@pytest.mark.skipif(libc_ver()[0] != "glibc", reason="only glibc hands freed memory back at once")
def test_memory_that_was_freed_is_used_again_instead_of_asking_for_new_pages():
    def faults(how: str) -> int:
        command = [sys.executable, "-c", FAULTS, how]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    assert 5 * faults("kept") < faults("returned")


THREADS = """
import sys
from medi.core.system import prefer_one_thread
if sys.argv[1:]:
    prefer_one_thread()
import numpy, scipy.linalg, torch
from threadpoolctl import threadpool_info
print(torch.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"))
"""


def test_torch_and_linear_algebra_take_one_thread_unless_somebody_says_how_many():
    others = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}

    def threads(*words: str, **said: str) -> set[str]:
        command = [sys.executable, "-c", THREADS, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=others | said)
        return set(done.stdout.split())

    assert threads("prefer one") == {"1"}
    for said in ({"OMP_NUM_THREADS": "2"}, {"MKL_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}):
        assert threads("prefer one", **said) == threads(**said)
