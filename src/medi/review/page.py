"""What `medi review` serves: a page, its state, its actions and the photos.

Photos are had by number and encoded anew, so that neither metadata nor anything but pixels gets out.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, Literal
from urllib.parse import quote

from PIL import Image
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from medi.core.errors import InputError
from medi.core.files import ExchangedError
from medi.core.reading import open_file, parse, refusal
from medi.photos.decode import Cut, UnreadableError, decoding, read_photo
from medi.photos.folders import find_photos
from medi.review.acceptance import Wish, accept_named
from medi.review.actions import RefusedError
from medi.review.discovery_folder import Folder
from medi.review.labelled import copies_of
from medi.review.session import Review, StaleError

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
_STALE = "This was changed in another tab. You now see how it is: do it again if you still want to."
SHORT, LONG = "private, max-age=60", "private, max-age=86400"
LARGEST_BODY = 2**20
"""Bytes of a request: the numbers of 100,000 photos."""

Size = Literal["thumb", "full"]
LONGEST: dict[Size, int] = {"thumb": 256, "full": 1600}
"""Longer side in pixels; smaller photos are not enlarged."""
SAMPLES = 4
"""Photos of a known class that can be seen."""
AT_ONCE = 4
"""Photos decoded at a time, so that a fast scroll does not fill the memory."""
Numbers = Callable[..., Any]
"""The number of a name in an address, or with True all of them; None for what is no number."""


class TooLargeError(Exception):
    """A body without a stated length went on for too long."""


class MissingError(Exception):
    """A photo that cannot be shown; the message says why."""


class Photos:
    """JPEGs of the photos of a pool, made when they are asked for; the browser keeps them."""

    def __init__(self, folder: Folder) -> None:
        self._folder, self._room = folder, BoundedSemaphore(AT_ONCE)
        self._of_class: dict[str, list[Path]] = {}

    def of_class(self, name: str, number: int) -> Path:
        """One of the photos of a known class, taken evenly from all of them.

        Raises:
            MissingError: It has none.
        """
        if name not in self._of_class:
            root = self._folder.known / name
            self._of_class[name] = [root / path for path in find_photos(root, "known").paths] if root.is_dir() else []
        photos = self._of_class[name]
        if not photos:
            raise MissingError("This class has no photos.")
        return photos[number * len(photos) // SAMPLES]

    def jpeg(self, path: Path, size: Size) -> bytes:
        """A photo as a JPEG, upright, without metadata.

        Raises:
            MissingError: It is gone or damaged.
        """
        try:
            with self._room, open_file(path) as file:
                preview = read_photo(file, Cut(1), preview=True, longest=LONGEST[size]).preview
        except OSError as error:
            raise MissingError("This photo is not where it was: put it back, or discover again.") from error
        except UnreadableError as error:
            raise MissingError(f"This photo can no longer be read: {error}.") from error
        if preview is None:
            raise MissingError("This photo has no pixels.")
        canvas = Image.new("RGB", preview.size)  # a new image: saving a read one would write its comments too
        canvas.paste(preview)
        buffer = BytesIO()
        canvas.save(buffer, "JPEG", quality=82 if size == "thumb" else 88)
        return buffer.getvalue()


def application(review: Review, stop: Callable[[InputError], None]) -> Starlette:
    """The page and everything that it asks for, for whoever may ask; `stop` is called when it cannot go on."""
    pages = _Pages(review, stop)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        with decoding():
            yield

    return Starlette(
        routes=[
            Route("/", pages.index),
            Route("/static/{name:str}", pages.static),
            Route("/favicon.ico", pages.icon),
            Route("/photo/{item:str}", pages.photo),
            Route("/known/{place:str}/{number:str}", pages.known),
            Route("/api/state", pages.reading(lambda _: review.state())),
            Route("/api/pool", pages.reading(lambda _: _constants(review))),
            Route("/api/split", pages.reading(lambda of: {"parts": review.preview_split(of("group"), of("parts"))})),
            Route("/api/candidates", pages.reading(lambda of: {"items": review.candidates(of("group"))})),
            Route("/api/places", pages.reading(lambda of: {"places": review.likely_places(of("items", True))})),
            Route("/api/actions", pages.changing(lambda body: _acted(review, body)), methods=["POST"]),
            Route("/api/accept", pages.changing(lambda body: _accepted(review, body)), methods=["POST"]),
        ],
        lifespan=life,
    )


class _Pages:
    """The answers to requests."""

    def __init__(self, review: Review, stop: Callable[[InputError], None]) -> None:
        self._review, self._photos, self._stop = review, Photos(review.folder), stop
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

    async def photo(self, request: Request) -> Response:
        """A photo by its number."""
        item, size = _number(request.path_params["item"]), request.query_params.get("size", "thumb")
        start = self._review.folder.start
        if size not in ("thumb", "full"):
            return _plain("The size is thumb or full.", 400)
        if item is None or item >= len(start):
            return _plain("There is no such photo: they are numbered from 0.", 404)
        path, fresh = self._review.folder.photo(item), request.query_params.get("v") == start.digest
        return await _jpeg(
            lambda: self._photos.jpeg(path, "full" if size == "full" else "thumb"), LONG if fresh else SHORT
        )

    async def known(self, request: Request) -> Response:
        """A photo of a known class, to compare with."""
        place, number = (_number(request.path_params[key]) for key in ("place", "number"))
        names, photos = self._review.setting.class_names, self._photos
        if place is None or place >= len(names) or number is None or number >= SAMPLES:
            return _plain("There is no such photo: classes and their photos are numbered from 0.", 404)
        return await _jpeg(lambda: photos.jpeg(photos.of_class(names[place], number), "thumb"), SHORT)

    def changing(self, change: Callable[[dict[str, Any]], Any]) -> Callable[[Request], Awaitable[Response]]:
        """Takes what was sent, and answers."""

        async def changed(request: Request) -> Response:
            try:
                body = parse(await request.body())
            except TooLargeError:
                return _error("A request has at most 1 MB.", 413)
            except ValueError:
                body = None
            if not isinstance(body, dict):
                return _error("The body must be one JSON object.", 400)
            return await self._answer(lambda: change(body))

        return changed

    def reading(self, make: Callable[[Numbers], Any]) -> Callable[[Request], Awaitable[Response]]:
        """Answers what changes nothing."""

        async def read(request: Request) -> Response:
            def numbers(key: str, several: bool = False) -> Any:
                found = [_number(one) for one in request.query_params.getlist(key)]
                return found if several else next(iter(found), None)

            return await self._answer(lambda: make(numbers))

        return read

    async def _answer(self, make: Callable[[], Any]) -> Response:
        """JSON of what a function returns, with what can be undone and redone in the headers."""

        def checked() -> Any:
            self._review.check()
            return make()

        try:
            response = _json(await run_in_threadpool(checked))
        except ExchangedError as error:
            self._stop(error)
            return _error(str(error), 409)
        except StaleError:
            return _error(_STALE, 409)
        except RefusedError as error:
            return _error(str(error), 400, overridable=error.overridable)
        except InputError as error:
            return _error(str(error), 400)
        except OSError as error:
            return _error(str(refusal(error)), 400)
        response.headers["Medi-Undo"], response.headers["Medi-Redo"] = map(quote, self._review.steps)
        return response


def _acted(review: Review, body: dict[str, Any]) -> dict[str, Any]:
    """The state after an action."""
    review.act(body)
    return review.state()


def _accepted(review: Review, body: dict[str, Any]) -> dict[str, Any]:
    """What `medi accept` asks for."""
    return accept_named(review, Wish.read(body))._asdict()


async def _jpeg(make: Callable[[], bytes], kept: str) -> Response:
    try:
        content = await run_in_threadpool(make)
    except MissingError as error:
        return _plain(str(error), 404)
    return Response(content, media_type="image/jpeg", headers={"Cache-Control": kept})


def _constants(review: Review) -> dict[str, Any]:
    """What does not change while the page is open."""
    pool, folder = review.pool, review.folder
    return {
        "folder": folder.path.resolve().name,
        "known": list(review.setting.class_names),
        "into": str(folder.known),
        "live": review.live,
        "closed": folder.closed,
        "version": folder.start.digest,
        "copies": copies_of([folder.photo(item) for item in range(len(folder.start))]),
        "order": pool.order().tolist() if pool else list(range(len(folder.start))),
        "positions": [[round(x, 4) for x in place] for place in pool.positions().tolist()] if pool else None,
    }


def _number(text: str) -> int | None:
    """A whole number that was written in an address; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _json(value: Any, status: int = 200) -> Response:
    """As JSON, in ASCII: paths may hold what UTF-8 cannot."""
    body = json.dumps(value, separators=(",", ":")).encode()
    return Response(body, status, media_type="application/json")


def _error(message: str, status: int, **more: bool) -> Response:
    return _json({"error": message, **more}, status)


def _plain(message: str, status: int) -> Response:
    return PlainTextResponse(message + "\n", status)
