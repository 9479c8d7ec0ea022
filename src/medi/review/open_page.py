"""The page of a review that is open: other commands on this machine find it, and ask it to do what they cannot.

Its process holds the output folder. The file `.review.json` there says where it listens, and the key that lets in; only
its owner may read it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from medi.core.errors import InputError
from medi.core.reading import input_errors, parse, read_file
from medi.review.acceptance import Accepted, Wish

OPEN = ".review.json"
PATIENCE = 3600.0
"""Seconds: photos may be many and the disk slow."""


@contextmanager
def announced(path: Path, port: int, cookie: str) -> Iterator[None]:
    """Say in an output folder that the page is open."""
    file = path / OPEN
    with suppress(FileNotFoundError):
        file.unlink()
    with input_errors(file, "write"):
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, json.dumps({"port": port, "cookie": cookie}).encode())
        finally:
            os.close(handle)
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()


def through_page(path: Path, wish: Wish) -> Accepted | None:
    """Let the page that is open accept groups; None where there is none."""
    body = wish._asdict() | {"into": str(wish.into)}
    try:
        facts = parse(read_file(path / OPEN))
        connection = HTTPConnection("127.0.0.1", facts["port"], timeout=PATIENCE)
        headers = {"Cookie": facts["cookie"], "Content-Type": "application/json"}
        connection.request("POST", "/api/accept", json.dumps(body).encode(), headers)
        answer = connection.getresponse()
        content = parse(answer.read())
        if answer.status != 200:
            raise InputError(str(content["error"]))
        return Accepted(**content)
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return None
