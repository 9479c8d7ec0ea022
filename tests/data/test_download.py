"""Downloads from a server on this machine: what is wrong leaves nothing behind, what is right is put in place."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from official import CIFAR100, OMNIGLOT, write_tiny

from medi.core.errors import InputError
from medi.core.progress import Silent
from medi.data.check import State, check, summary
from medi.data.download import fetch
from medi.data.facts import Archive, Facts


class Server:
    """Serves `files` by name; one listed in `cut_short` breaks off half way."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut_short: set[str] = set()
        self.asked: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.strip("/")
                server.asked.append(name)
                if name not in server.files:
                    self.send_error(404)
                    return
                content = server.files[name]
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if name in server.cut_short else content)

            def log_message(self, *args: object) -> None:
                """Keep quiet."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/"

    def archive(self, name: str, content: bytes, extract: bool = False) -> Archive:
        self.files[name] = content
        return Archive(self.url + name, hashlib.md5(content).hexdigest(), megabytes=1, extract=extract)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join(timeout=5)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEDI_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def cifar100(server: Server, tmp_path: Path) -> Facts:
    """CIFAR-100 with a tiny archive on the server."""
    write_tiny(tmp_path / "origin", CIFAR100)
    (tmp_path / "origin" / CIFAR100.folder / "fine_label_names.txt").write_text("apple\n")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.add(tmp_path / "origin" / CIFAR100.folder, CIFAR100.folder)
    archives = (server.archive("cifar-100-binary.tar.gz", buffer.getvalue(), extract=True),)
    return replace(CIFAR100, archives=archives, records=dict.fromkeys(CIFAR100.records, 20))


@pytest.fixture
def omniglot(server: Server, tmp_path: Path) -> Facts:
    """Omniglot with two tiny archives on the server."""
    write_tiny(tmp_path / "origin", OMNIGLOT)
    origin = tmp_path / "origin" / OMNIGLOT.folder
    archives = tuple(server.archive(file, (origin / file).read_bytes()) for file in OMNIGLOT.records)
    return replace(OMNIGLOT, archives=archives, records=dict.fromkeys(OMNIGLOT.records, 20))


def contents(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_tar_archive_arrives_unpacked(cifar100: Facts, folder: Path) -> None:
    placed = fetch(cifar100, Silent())
    assert {path.name for path in placed} == {"train.bin", "test.bin", "fine_label_names.txt"}
    assert contents(folder) == {"cifar-100-binary", *(f"cifar-100-binary/{path.name}" for path in placed)}
    assert summary(check(cifar100)) == State.WHOLE


def test_other_archives_are_kept_as_they_are_and_what_is_there_is_not_downloaded_again(
    omniglot: Facts, folder: Path, server: Server
) -> None:
    fetch(omniglot, Silent())
    assert contents(folder) == {"omniglot", *(f"omniglot/{file}" for file in omniglot.records)}
    assert summary(check(omniglot)) == State.WHOLE
    server.asked.clear()
    assert fetch(omniglot, Silent()) == []
    assert server.asked == []
    (folder / "omniglot" / "images_evaluation.zip").unlink()
    fetch(omniglot, Silent())
    assert server.asked == ["images_evaluation.zip"]


def test_only_a_damaged_or_absent_file_is_replaced(cifar100: Facts, folder: Path) -> None:
    fetch(cifar100, Silent())
    train, test = (folder / cifar100.folder / file for file in ("train.bin", "test.bin"))
    train.write_bytes(train.read_bytes()[:-1])
    partial = test.read_bytes()[: 3074 * 5]
    test.write_bytes(partial)
    assert fetch(cifar100, Silent()) == [train]
    assert [file.records for file in check(cifar100)] == [20, 5]
    assert test.read_bytes() == partial


@pytest.mark.parametrize("tampered", [True, False])
@pytest.mark.parametrize(
    "there", [set(), {"cifar-100-binary", "cifar-100-binary/train.bin"}], ids=["nothing", "a file"]
)
def test_a_download_that_is_tampered_with_or_breaks_off_leaves_what_was_there(
    cifar100: Facts, folder: Path, server: Server, tampered: bool, there: set[str]
) -> None:
    if there:
        (folder / cifar100.folder).mkdir(parents=True)
        (folder / cifar100.folder / "train.bin").write_bytes(b"damaged")
    if tampered:
        server.files["cifar-100-binary.tar.gz"] += b"tampered"
    else:
        server.cut_short.add("cifar-100-binary.tar.gz")
    why = "what came does not have the md5 checksum" if tampered else ".*broke off"
    with pytest.raises(InputError, match=rf"download of http://.* failed: {why}"):
        fetch(cifar100, Silent())
    assert contents(folder) == there


def test_ctrl_c_leaves_nothing(cifar100: Facts, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    reporter = Silent()
    monkeypatch.setattr(reporter, "track", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch(cifar100, reporter)
    assert contents(folder) == set()


def test_a_missing_page_and_a_refused_connection_are_told_with_what_to_do(
    omniglot: Facts, cifar100: Facts, folder: Path, server: Server
) -> None:
    server.files.clear()
    with pytest.raises(InputError, match=r"127\.0\.0\.1 answered 404") as error:
        fetch(omniglot, Silent())
    assert f"get images_background.zip by other means and put it into {folder / 'omniglot'}" in str(error.value)
    assert "\n" not in str(error.value)
    server.http.server_close()
    with pytest.raises(InputError, match=r"there is no connection to 127\.0\.0\.1.*check the network") as error:
        fetch(cifar100, Silent())
    assert f"unpack it in {folder}" in str(error.value)
    assert contents(folder) == set()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../escaped.bin", "cannot be unpacked"),
        ("cifar-100-binary/../../../escaped.bin", "cannot be unpacked"),
        ("/escaped.bin", r"lacks test\.bin, train\.bin"),  # the slash is dropped, so that it is missed in its place
        ("link", r"lacks test\.bin, train\.bin"),
    ],
)
def test_a_tar_archive_writes_nowhere_else(server: Server, folder: Path, tmp_path: Path, name: str, why: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        if name == "link":
            link = tarfile.TarInfo("cifar-100-binary")
            link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
            archive.addfile(link)
            name = "cifar-100-binary/escaped.bin"
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    evil = replace(CIFAR100, archives=(server.archive("evil.tar.gz", buffer.getvalue(), extract=True),))
    with pytest.raises(InputError, match=why):
        fetch(evil, Silent())
    assert contents(folder) == set()
    assert not list(tmp_path.rglob("escaped.bin"))


def test_a_folder_that_cannot_be_written_is_named(cifar100: Facts, folder: Path) -> None:
    folder.write_text("a file where the folder should be")
    with pytest.raises(InputError, match=f"MEDI_DATA is {folder}, which is a file"):
        fetch(cifar100, Silent())
