"""Run the page of a review on this machine until Ctrl-C."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable
from errno import EACCES, EADDRINUSE
from pathlib import Path
from threading import Timer

import uvicorn

from medi.errors import InputError
from medi.review.photos import Photos
from medi.review.security import Doorkeeper
from medi.review.server import application
from medi.review.session import opened
from medi.runtime.files import input_errors

ADDRESS = "127.0.0.1"


def serve(
    path: Path, port: int | None, *, browser: bool, announce: Callable[[str], None], warn: Callable[[str], None]
) -> None:
    """Open the review in a folder, print its address and answer until the process is stopped.

    Args:
        path: The folder that `medi discover` wrote.
        port: Where to listen; None for any free port.
        browser: Open the page.
        announce: Prints the address.
        warn: Prints what a person should know.
    """
    with opened(path) as review:
        folder = review.folder
        if not folder.novel.is_dir():
            raise InputError(f"{folder.novel} with the photos is gone: put it back, or discover again.")
        with input_errors(folder.journal, "write"):
            folder.journal.open("ab").close()
        missing = Photos(folder).missing()
        if missing:
            warn(
                f"{len(missing)} of {len(folder.start)} photos are not where they were (first: {missing[0]}): put them "
                "back, or discover again."
            )
        with listening(port) as listener:
            number = listener.getsockname()[1]
            keeper = Doorkeeper(number)
            address = f"http://{ADDRESS}:{number}/?token={keeper.token}"
            announce(address)
            if browser:
                opening = Timer(0.3, webbrowser.open, [address])
                opening.daemon = True
                opening.start()
            config = uvicorn.Config(
                application(review, keeper),
                log_level="error",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=2,
                ws="none",
            )
            uvicorn.Server(config).run(sockets=[listener])


def listening(port: int | None) -> socket.socket:
    """A socket on this machine only."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if hasattr(socket, "SO_REUSEADDR") and not hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, port or 0))
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno in (EADDRINUSE, EACCES):
            reason = "is in use" if error.errno == EADDRINUSE else "may not be used"
            raise InputError(f"port {port} {reason}: choose another with --port, or leave --port out.") from error
        raise InputError(f"cannot listen on {ADDRESS}: {error}; choose another --port.") from error
    return listener
