"""Who may talk to the page: the person who has the printed address, from a page of this server, and nobody else.

Other web pages in the same browser, other machines on the network and names that are made to point at this machine
(DNS rebinding) are kept out before a request reaches anything that reads or writes.
"""

from __future__ import annotations

import secrets
from threading import Lock
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
LARGEST_BODY = 2**20
"""Bytes of a request: the numbers of 100,000 photos."""
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


class Doorkeeper:
    """A token that is exchanged once for a cookie."""

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self.cookie = f"medi-review-{port}"  # cookies do not tell ports apart, and two reviews may run
        self._key = secrets.token_urlsafe(32)
        self._used = False
        self._lock = Lock()

    def admits(self, headers: Headers) -> bool:
        """Whether a request brings the cookie."""
        found = False
        for part in headers.get("cookie", "").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self.cookie and secrets.compare_digest(value.encode(), self._key.encode()):
                found = True
        return found

    def redeem(self, token: str) -> str | None:
        """The cookie for the token, the first time it is shown."""
        with self._lock:
            if self._used or not secrets.compare_digest(token.encode(), self.token.encode()):
                return None
            self._used = True
            return f"{self.cookie}={self._key}; Path=/; HttpOnly; SameSite=Strict"


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

        refusal = self._refusal(scope, headers)
        if refusal is None and not self._keeper.admits(headers):
            token = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
            redeemable = scope["path"] == "/" and scope["method"] == "GET"
            cookie = (self._keeper.redeem(token) or "") if redeemable and token else ""
            if not cookie:
                refusal = PlainTextResponse(_NO_COOKIE, 401)
        if refusal is None:
            refusal = await self._too_large(headers)
        if refusal is not None:
            await refusal(scope, receive, guarded)
            return
        await self._app(scope, _limited(receive), guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or _hostname(host) not in HOSTS:
            return PlainTextResponse("This page answers to 127.0.0.1 and localhost only.\n", 403)
        if scope["method"] in SAFE:
            return None
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if (site is not None and site != "same-origin") or (origin is not None and origin != f"http://{host}"):
            return PlainTextResponse("Writing is for the page itself, not for other sites.\n", 403)
        return None

    async def _too_large(self, headers: Headers) -> Response | None:
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            return PlainTextResponse(f"A request has at most {LARGEST_BODY} bytes.\n", 413)
        return None


class TooLargeError(Exception):
    """A body without a stated length went on for too long."""


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
