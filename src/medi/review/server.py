"""Run the page of a review on this machine, for the person who has the printed address and nobody else.

Other web pages in the same browser, other machines on the network and names that are made to point at this machine
(DNS rebinding) are kept out before a request reaches anything that reads or writes.
"""

from __future__ import annotations

import secrets
import shlex
import socket
import webbrowser
from collections.abc import Callable
from errno import EACCES, EADDRINUSE
from pathlib import Path
from threading import Lock, Timer
from urllib.parse import parse_qs

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from medi.core.errors import InputError
from medi.core.reading import input_errors, open_file
from medi.review.open_page import announced
from medi.review.page import LARGEST_BODY, TooLargeError, application
from medi.review.session import opened

ADDRESS = "127.0.0.1"
HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
SAFE = frozenset({"GET", "HEAD"})

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_NO_COOKIE = "Open the address that `medi review` printed: it works once. Start the review again for a new one.\n"


def serve(
    path: Path, port: int | None, *, browser: bool, announce: Callable[[str], None], warn: Callable[[str], None]
) -> None:
    """Open the review in a folder, print its address and answer until the process is stopped.

    Args:
        path: The folder that `medi discover` wrote.
        port: Where to listen; None for any free port.
        browser: Open the page.
        announce: Prints the address, and in the end what comes next.
        warn: Prints what a person should know.
    """
    with opened(path, "medi review") as review:
        folder = review.folder
        if not folder.novel.is_dir():
            raise InputError(f"{folder.novel} with the photos is gone: put it back, or discover again.")
        with input_errors(folder.journal, "write"):
            open_file(folder.journal, "ab").close()
        if folder.closed:
            warn(folder.closed)
        if missing := folder.missing():
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
            faults = list[InputError]()

            def stop(error: InputError) -> None:
                faults.append(error)
                server.should_exit = True

            config = uvicorn.Config(
                Guard(application(review, stop), keeper),
                log_level="error",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=2,
                ws="none",
            )
            server = uvicorn.Server(config)
            with announced(path, number, keeper.key):
                try:
                    server.run(sockets=[listener])
                finally:  # Ctrl-C comes through here
                    if review.history.state.names and not folder.closed:
                        announce(f"Next, to make known classes of named groups: {_accept(path, folder.known)}")
            if faults:
                raise faults[0]
            review.check()


def _accept(path: Path, known: Path) -> str:
    return shlex.join(["medi", "accept", str(path), "--into", str(known)])


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


class Doorkeeper:
    """A token that is exchanged once for a cookie."""

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self.cookie = f"medi-review-{port}"  # cookies do not tell ports apart, and two reviews may run
        self.key = f"{self.cookie}={secrets.token_urlsafe(32)}"
        self._used = False
        self._lock = Lock()

    def admits(self, headers: Headers) -> bool:
        """Whether a request brings the cookie."""
        return any(
            secrets.compare_digest(one.strip().encode(), self.key.encode())
            for one in headers.get("cookie", "").split(";")
        )

    def redeem(self, token: str) -> str | None:
        """The cookie for the token, the first time it is shown."""
        with self._lock:
            if self._used or not secrets.compare_digest(token.encode(), self.token.encode()):
                return None
            self._used = True
            return f"{self.key}; Path=/; HttpOnly; SameSite=Strict"


class Guard:
    """Checks every request before the application sees it, and adds the headers that bind the browser."""

    def __init__(self, app: ASGIApp, keeper: Doorkeeper) -> None:
        self._app, self._keeper = app, keeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        headers, cookie = Headers(scope=scope), ""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    sent[name] = value
                sent.setdefault("Cache-Control", "no-store")
                if cookie:
                    sent.append("Set-Cookie", cookie)
            await send(message)

        refusal = self._foreign(scope, headers)
        if refusal is None and not self._keeper.admits(headers):
            token = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
            redeemable = scope["path"] == "/" and scope["method"] == "GET"
            cookie = (self._keeper.redeem(token) or "") if redeemable and token else ""
            if not cookie:
                refusal = PlainTextResponse(_NO_COOKIE, 401)
        length = headers.get("content-length", "0")
        if refusal is None and (not length.isdigit() or int(length) > LARGEST_BODY):
            refusal = PlainTextResponse(f"A request has at most {LARGEST_BODY} bytes.\n", 413)
        if refusal is None:
            await self._app(scope, _limited(receive), guarded)
        else:
            await refusal(scope, receive, guarded)

    def _foreign(self, scope: Scope, headers: Headers) -> Response | None:
        """A refusal of what does not come from a page of this machine."""
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or _hostname(host) not in HOSTS:
            return PlainTextResponse("This page answers to 127.0.0.1 and localhost only.\n", 403)
        if scope["method"] in SAFE:
            return None
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if (site is not None and site != "same-origin") or (origin is not None and origin != f"http://{host}"):
            return PlainTextResponse("Writing is for the page itself, not for other sites.\n", 403)
        return None


def _limited(receive: Receive) -> Receive:
    """The same, but no more than the largest body."""
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > LARGEST_BODY:
            raise TooLargeError
        return message

    return limited


def _hostname(host: str) -> str:
    """A Host header without its port, in small letters."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()
