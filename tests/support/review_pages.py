"""The page of a review, served to a browser."""

import threading
import time
from contextlib import contextmanager

import uvicorn

from medi.review.page import application
from medi.review.server import Doorkeeper, Guard, listening

WIDE = (1280, 900)


@contextmanager
def serving(review):
    with listening(None) as listener:
        port = listener.getsockname()[1]
        keeper = Doorkeeper(port)
        server = uvicorn.Server(uvicorn.Config(Guard(application(review, print), keeper), log_level="error", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/?token={keeper.token}", keeper
        finally:
            server.should_exit = True
            thread.join(10)


def show(browser, address, size=WIDE, **options) -> None:
    browser.open(address, width=size[0], height=size[1], **options)
    browser.wait_until("document.body?.classList.contains('ready')")


def settled(browser, review, seq: int) -> None:
    """Until an action is taken and shown."""
    browser.wait_until("!document.body.hasAttribute('aria-busy')")
    deadline = time.monotonic() + 10
    while review.history.seq < seq:
        assert time.monotonic() < deadline, f"still at {review.history.seq}"
        time.sleep(0.02)
    browser.wait_until("!document.body.hasAttribute('aria-busy')")
