"""The web application of a review: a page, its state, its actions and the photos."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from medi.errors import InputError
from medi.photos.decode import decoding
from medi.review.photos import MissingError, Photos
from medi.review.requests import RefusedError
from medi.review.security import Doorkeeper, Guard, TooLargeError
from medi.review.session import Review, StaleError

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
_STALE = "This was changed in another tab. You now see how it is: do it again if you still want to."
SHORT, LONG = "private, max-age=60", "private, max-age=86400"


def application(review: Review, keeper: Doorkeeper) -> Guard:
    """Everything that `medi review` serves, behind its guard."""
    shown = _Pages(review)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        with decoding():
            yield

    app = Starlette(
        routes=[
            Route("/", shown.index),
            Route("/static/{name:str}", shown.static),
            Route("/favicon.ico", shown.icon),
            Route("/api/state", shown.state),
            Route("/api/pool", shown.pool),
            Route("/api/history", shown.history),
            Route("/api/split", shown.split),
            Route("/api/candidates", shown.candidates),
            Route("/api/actions", shown.act, methods=["POST"]),
            Route("/photo/{item:str}", shown.photo),
        ],
        lifespan=life,
    )
    return Guard(app, keeper)


class _Pages:
    """The answers to requests."""

    def __init__(self, review: Review) -> None:
        self._review, self._photos = review, Photos(review.folder)
        self._static = {
            item.name: item.read_bytes()
            for item in files("medi.review").joinpath("static").iterdir()
            if item.name.endswith(tuple(_TYPES))
        }

    async def index(self, request: Request) -> Response:
        """The page."""
        return Response(self._static["index.html"], media_type=_TYPES[".html"])

    async def icon(self, request: Request) -> Response:
        """Browsers ask for one; there is none."""
        return Response(status_code=204)

    async def static(self, request: Request) -> Response:
        """Scripts and styles."""
        name = request.path_params["name"]
        if name not in self._static:
            return _plain("There is no such file.", 404)
        return Response(self._static[name], headers={"Content-Type": _TYPES["." + name.rpartition(".")[2]]})

    async def state(self, request: Request) -> Response:
        """Where everything is."""
        return await self._answer(self._whole_state)

    async def pool(self, request: Request) -> Response:
        """What does not change while the page is open."""

        def facts() -> dict[str, Any]:
            pool, review = self._review.pool, self._review
            return {
                "folder": review.folder.path.resolve().name,
                "known": list(review.setting.class_names),
                "into": str(review.folder.known),
                "live": review.live,
                "version": review.folder.start.digest,
                "order": pool.order().tolist() if pool else list(range(len(review.folder.start))),
                "positions": [[round(x, 4) for x in place] for place in pool.positions().tolist()] if pool else None,
            }

        return await self._answer(facts)

    async def history(self, request: Request) -> Response:
        """The latest actions."""
        return await self._answer(self._review.recent)

    async def split(self, request: Request) -> Response:
        """What a split would do."""
        group, parts = (_number(request.query_params.get(key)) for key in ("group", "parts"))
        return await self._answer(lambda: {"parts": self._review.preview_split(group, parts)})

    async def candidates(self, request: Request) -> Response:
        """Photos to confirm in a group."""
        group = _number(request.query_params.get("group"))
        return await self._answer(lambda: {"items": self._review.candidates(group)})

    async def act(self, request: Request) -> Response:
        """Take an action and answer with the new state."""
        try:
            body = json.loads(await request.body())
        except TooLargeError:
            return _error("A request has at most 1 MB.", 413)
        except (ValueError, RecursionError):
            return _error("The body must be one JSON object.", 400)
        if not isinstance(body, dict):
            return _error("The body must be one JSON object.", 400)

        def change() -> dict[str, Any]:
            self._review.act(body)
            return self._review.state()

        return await self._answer(change)

    async def photo(self, request: Request) -> Response:
        """A photo by its number."""
        item, size = _number(request.path_params["item"]), request.query_params.get("size", "thumb")
        if size not in ("thumb", "full"):
            return _plain("The size is thumb or full.", 400)
        if item is None or item >= len(self._photos):
            return _plain("There is no such photo: they are numbered from 0.", 404)
        try:
            content = await run_in_threadpool(self._photos.jpeg, item, "full" if size == "full" else "thumb")
        except MissingError as error:
            return _plain(str(error), 404)
        version = request.query_params.get("v") == self._review.folder.start.digest
        return Response(content, media_type="image/jpeg", headers={"Cache-Control": LONG if version else SHORT})

    def _whole_state(self) -> dict[str, Any]:
        return self._review.state()

    async def _answer(self, make: Callable[[], Any]) -> Response:
        """JSON of what a function returns, with what can be undone and redone in the headers."""
        try:
            response = _json(await run_in_threadpool(make))
        except StaleError:
            return _error(_STALE, 409)
        except RefusedError as error:
            return _error(str(error), 400, overridable=error.overridable)
        except InputError as error:
            return _error(str(error), 400)
        undo, redo = self._review.steps
        response.headers["Medi-Undo"], response.headers["Medi-Redo"] = undo, redo
        return response


def _number(text: str | None) -> int | None:
    """A whole number that was written in an address; None for anything else."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else None


def _json(value: Any, status: int = 200) -> Response:
    """As JSON, in ASCII: paths may hold what UTF-8 cannot."""
    body = json.dumps(value, separators=(",", ":")).encode()
    return Response(body, status, media_type="application/json")


def _error(message: str, status: int, **more: bool) -> Response:
    return _json({"error": message, **more}, status)


def _plain(message: str, status: int) -> Response:
    return PlainTextResponse(message + "\n", status)
