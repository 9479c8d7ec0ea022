"""Files that are none, closed, or lie, in every command: one line with the culprit, or a reason; never a wait."""

import ast
import errno
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from people import Result, discover, refused, tinted
from reviews import toy_pool, write_discovery
from systems import posix

from medi.cli import main as cli
from medi.core.errors import STOPPED
from medi.core.progress import Silent
from medi.core.reading import open_file, parse, read_file, refusal
from medi.photos.cache import PhotoCache
from medi.photos.folders import find_photos
from medi.review.discovery_folder import read_folder
from medi.review.page import AT_ONCE, MissingError, Photos

ROOT = Path(__file__).resolve().parents[2]
pytestmark = posix


def odd(path: Path, kind: str) -> Path:
    """Something in the place of a file."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.relpath(path))  # a socket's path is short
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to({"device": "/dev/zero", "circle": path, "kernel": "/proc/self/stat", "gone": "nowhere"}[kind])
    return path


CHOOSE = ("bench", "choose", "--dataset", "glyphs", "--method", "kmeans")
ODD = ("pipe", "socket", "folder", "device", "circle", "kernel")


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_file_is_an_error_at_once(tmp_path, kind):
    if kind == "kernel" and not Path("/proc/self").exists():
        pytest.skip("needs /proc")
    path = odd(tmp_path / "a", kind)
    for mode in ("rb", "ab", "a+b"):
        with pytest.raises(OSError, match=r".") as caught:
            open_file(path, mode)
        assert str(path) in str(refusal(caught.value))
    (tmp_path / "b").write_bytes(b"yes")
    assert read_file(tmp_path / "b") == b"yes"


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 90 + "]" * 90, '{"a":' * 100_000, "\xff", "1" * 5_000, ""])
def test_what_is_no_json_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        parse(text.encode("latin-1"))


def test_every_file_is_opened_in_the_one_place():
    """So that no command can forget it: only files that come with the package, or were just fetched, are not."""
    own = {"report/page.py", "schemas/__init__.py", "demo.py", "bench/published.py", "review/page.py"}
    own.add("hubs/downloads.py")
    for path in sorted((ROOT / "src" / "medi").rglob("*.py")):
        place = path.relative_to(ROOT / "src" / "medi").as_posix()
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            modes = [word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
            reads = name in ("read_bytes", "read_text") or (name == "open" and any(m in ("r", "rb") for m in modes))
            assert not reads or place in own, f"{place}:{call.lineno}"


@pytest.fixture
def reviewed(tmp_path):
    """A finished discovery, and folders to discover in."""
    out = write_discovery(tmp_path, toy_pool())
    for name in ("rose", "tulip"):
        for i in range(2):
            tinted(tmp_path / "known" / name / f"{i}.png", (200, 40, 40), i)
    return out


def words_for(out: Path) -> dict[str, tuple]:
    """A command for each kind of file that is read, with the file at fault."""
    folder = out.parent
    features, rows = folder / "odd.npz", folder / "rows" / "results.jsonl"
    assign = ("assign", "--model", out, "--images", folder / "novel", "--out", folder / "t.csv")
    export = ("export", out, "--format", "csv", "--out", folder / "t.csv")
    return {
        "features": (features, discover(folder, "--features", features, out="new")),
        "parquet": (folder / "odd.parquet", discover(folder, "--features", folder / "odd.parquet", out="new")),
        "encoder": (folder / "own.py", discover(folder, "--encoder", f"{folder / 'own.py'}:Own", out="new")),
        "grouping": (folder / "own.py", discover(folder, "--grouping", f"{folder / 'own.py'}:own", out="new")),
        "known": (folder / "known", discover(folder, out="new")),
        "novel": (folder / "novel", discover(folder, out="new")),
        "model": (out / "model", assign),
        "encoder of a model": (out / "model" / "encoder.json", assign),
        "discovery": (out / "discovery.json", export),
        "clusters": (out / "clusters.csv", export),
        "journal": (out / "review.jsonl", export),
        "review": (out / "review.jsonl", ("review", out, "--no-browser")),
        "lock": (out / ".lock", ("review", out, "--no-browser")),
        "rows": (rows, ("bench", "table", "--results", rows)),
        "rerun": (rows, ("bench", "rerun", f"{rows}:1")),
        "figure": (rows, ("bench", "figure", "--results", rows, "--out", folder / "a.png")),
        "candidates": (folder / "c.json", (*CHOOSE, "--candidates", folder / "c.json", "--out", folder / "choice")),
        "theory": (features, ("theory", "overlap", "--features", features)),
    }


WAYS = tuple(words_for(Path("out")))


@pytest.mark.parametrize("way", WAYS)
def test_what_is_no_file_is_refused_by_every_command_in_one_line(reviewed, medi_, way):
    path, words = words_for(reviewed)[way]
    for kind in ODD:
        if kind == "folder" and way in ("known", "novel", "model", "rows", "figure"):
            continue  # a folder is what they want, or it is searched
        odd(path, kind)
        refused(without_notes(medi_(*words)))


def without_notes(result: Result) -> Result:
    return replace(result, err="".join(line for line in result.err.splitlines(True) if not line.startswith("Note:")))


def close(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody look at a path. Root may look everywhere, so the system's answer is played."""

    def closed(real):
        def call(of, *more, **options):
            if isinstance(of, str | os.PathLike) and Path(of).is_relative_to(path):
                raise PermissionError(errno.EACCES, "Permission denied", os.fspath(of))
            return real(of, *more, **options)

        return call

    for name in ("stat", "open", "scandir", "listdir", "lstat", "mkdir"):
        monkeypatch.setattr(os, name, closed(getattr(os, name)))


def test_a_cache_that_may_not_be_looked_at_is_done_without(tmp_path, monkeypatch):
    close(tmp_path / "closed", monkeypatch)
    cache = PhotoCache("some", Silent(), tmp_path / "closed")
    cache.put([(bytes(32), b"value")])
    assert cache.get(bytes(32)) is None


@pytest.mark.parametrize("way", WAYS)
def test_a_place_on_the_way_that_may_not_be_looked_at_is_named_by_every_command(reviewed, medi_, monkeypatch, way):
    path, words = words_for(reviewed)[way]
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)
    close(path, monkeypatch)
    refused(without_notes(medi_(*words)), path.name)


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EROFS, errno.EMFILE, errno.ENAMETOOLONG, errno.EIO, errno.ESTALE]
)
def test_whatever_the_system_says_comes_with_the_culprit_and_a_cure(medi_, monkeypatch, number):
    def fail(*_):
        raise OSError(number, os.strerror(number), "some/place")

    monkeypatch.setattr("medi.schemas.text", fail)
    refused(medi_("schema", "row"), "some/place", os.strerror(number).lower(), ";")


def test_an_error_of_the_program_is_still_a_traceback(monkeypatch):
    def fail(*_):
        raise OSError("a library's own words, without a number")

    monkeypatch.setattr("medi.schemas.text", fail)
    monkeypatch.setattr(sys, "argv", ["medi", "schema", "row"])
    with pytest.raises(OSError, match="own words"):
        cli.run()


def test_odd_things_among_photos_are_skipped_with_a_reason(tmp_path):
    for kind in ODD:
        odd(tmp_path / f"{kind}.jpg", kind)
    odd(tmp_path / "processes", "kernel").unlink()
    (tmp_path / "processes").symlink_to("/proc")
    found = find_photos(tmp_path, "--novel")
    assert found.paths == []
    assert {skipped.path for skipped in found.skipped} == {*(f"{k}.jpg" for k in ODD if k != "folder"), "processes"}


def test_photos_that_became_pipes_block_neither_a_review_nor_its_other_photos(reviewed):
    folder = read_folder(reviewed)
    photos = Photos(folder)
    for item in range(AT_ONCE):
        odd(folder.photo(item), "pipe")
    for item in range(AT_ONCE):
        with pytest.raises(MissingError):
            photos.jpeg(folder.photo(item), "thumb")
    assert photos.jpeg(folder.photo(AT_ONCE), "thumb")


def test_odd_things_in_the_cache_are_as_if_they_were_not_there(tmp_path):
    digest = bytes(range(32))
    PhotoCache("some", Silent(), tmp_path).put([(digest, b"value")])
    (kept,) = (tmp_path / "some").iterdir()
    for kind in ("pipe", "device", "folder", "kernel"):
        odd(kept.with_name(f"{kind}.shard"), kind)
    assert PhotoCache("some", Silent(), tmp_path).get(digest) == b"value"
    cache = PhotoCache("some", Silent(), tmp_path)
    odd(kept, "pipe")
    assert cache.get(digest) is None


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["--help", "schema row", "data list --json"])
def test_a_full_disk_behind_the_output_is_one_line_and_a_closed_pipe_is_none(words, tmp_path):
    environment = os.environ | {"MEDI_DATA": str(tmp_path)}
    with FULL.open("w") as full:
        for streams in ({"stdout": full}, {"stdout": full, "stderr": full}):
            streams = {"stderr": subprocess.PIPE} | streams
            done = subprocess.run(
                [sys.executable, "-m", "medi", *words.split()], **streams, text=True, env=environment, timeout=60
            )
            assert done.returncode == 2, done.stderr
            if done.stderr is not None:
                assert len(done.stderr.splitlines()) == 1, done.stderr
                assert "space" in done.stderr
    for closed in (">&-", "<&- 2>&-"):
        command = f"{sys.executable} -m medi {words} {closed}"
        done = subprocess.run(command, shell=True, capture_output=True, text=True, env=environment, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), closed


MAIN = """
import os, signal, sys
import medi.cli.main
from medi.__main__ import main
class Last:
    def __del__(self):
        press()
def press():
    os.kill(os.getpid(), signal.SIGINT)
    for i in range(10_000): pass
def run():
    {}
medi.cli.main.run = run
main()
"""


@pytest.mark.parametrize(
    "work",
    [
        "press()",
        "Last()",
        "import atexit; atexit.register(press); sys.exit(130)",
        "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); sys.exit(130)",
        "import functools; sorted([2, 1], key=functools.cmp_to_key(lambda a, b: press() or 0))",
        "import weakref; x = Last.__new__(type('O', (), {})); weakref.finalize(x, press); del x",
    ],
)
def test_ctrl_c_is_answered_wherever_it_comes(work):
    done = subprocess.run([sys.executable, "-c", MAIN.format(work)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 130, done
    assert "Traceback" not in done.stderr
    assert done.stderr.strip() in (STOPPED, "")


def test_ctrl_c_when_all_is_done_changes_nothing():
    work = "import atexit; atexit.register(press); sys.exit(0)"
    done = subprocess.run([sys.executable, "-c", MAIN.format(work)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
