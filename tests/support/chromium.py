"""A headless Chromium, driven through its DevTools protocol over a pipe: no driver, no packages."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# The browser reads commands from file descriptor 3 and answers on 4; moved up first, in case one is in the other's way.
_LAUNCH = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(read, 3), os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find() -> str | None:
    """The browser's path, or None where there is none, or no pipe to drive it (on Windows)."""
    if os.name == "nt":
        return None
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser with a fresh profile and end it afterwards."""
    executable = find()
    assert executable, "no Chromium: ask `find` first"
    (read, answers), (commands, write) = os.pipe(), os.pipe()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", _LAUNCH, str(commands), str(answers)),
            *(executable, *flags, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"),
        ],
        pass_fds=(commands, answers),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(commands)
    os.close(answers)
    try:
        yield Browser(read, write)
    finally:
        process.terminate()
        process.wait(20)
        os.close(read)
        os.close(write)


class Browser:
    """Commands to a browser and what it reports meanwhile, in `events`."""

    def __init__(self, read: int, write: int) -> None:
        self.events: list[dict[str, Any]] = []
        self._read, self._write, self._buffer, self._number = read, write, b"", 0
        self._session: str | None = None

    def open(self, url: str, *, width: int, height: int, dark: bool = False, touch: bool = False, script: bool = True):
        """Show a page in a new tab, and wait until it is loaded."""
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.events.clear()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call(
            "Emulation.setEmulatedMedia", features=[scheme, {"name": "prefers-reduced-motion", "value": "reduce"}]
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while (answer := self._next()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def run(self, script: str) -> Any:
        """The value of an expression on the page, awaited where it is a promise."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def middle(self, selector: str) -> tuple[float, float]:
        """Scroll an element into view and say where it is."""
        x, y = self.run(
            f"""(() => {{
                const element = document.querySelector({selector!r});
                element.scrollIntoView({{block: "center"}});
                const box = element.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"""
        )
        return x, y

    def complaints(self, *own: str) -> list[str]:
        """What the console says, and what the page asks for at addresses that do not begin as its own do."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                found.append(str(params))
            if method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(own):
                found.append(params["request"]["url"])
        return found

    def contrasts(self, ignored: str) -> list[tuple[float, str]]:
        """How far each text stands out from what lies behind it (WCAG: 4.5 is enough), and which it is."""
        return [tuple(found) for found in self.run(f"({_CONTRASTS})({ignored!r})")]

    def tap(self, x: float, y: float) -> None:
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def press(self, key: str, *, shift: bool = False) -> None:
        """A key by its name, or a character."""
        more = {"modifiers": 8} if shift else {}
        if len(key) == 1:
            code = ord(key.upper()) if key.isalnum() or key == " " else 0
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key, windowsVirtualKeyCode=code, **more)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code, **more)
            return
        text = {"text": "\r"} if key == "Enter" else {}  # without it, a key press submits no form
        down = "keyDown" if text else "rawKeyDown"
        for kind in (down, "keyUp"):
            also = text if kind == down else {}
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_KEYS[key], **also, **more
            )

    def type(self, text: str) -> None:
        """Text into what has the focus."""
        self.call("Input.insertText", text=text)

    def wait_until(self, script: str, patience: float = 10.0) -> None:
        """Until an expression on the page is true."""
        deadline = time.monotonic() + patience
        while not self.run(f"Boolean({script})"):
            assert time.monotonic() < deadline, f"not within {patience:.0f} s: {script}"
            time.sleep(0.02)

    def pdf(self, path: Path) -> None:
        path.write_bytes(b64decode(self.call("Page.printToPDF", printBackground=True)["data"]))

    def wait_for(self, method: str) -> None:
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._next())

    def _next(self, patience: float = 60.0) -> dict[str, Any]:
        deadline = time.monotonic() + patience
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"Chromium said nothing for {patience:.0f} s"
            piece = os.read(self._read, 1 << 20)
            assert piece, "Chromium went away"
            self._buffer += piece
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)


_KEYS = {
    "PageUp": 33,
    "PageDown": 34,
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}

_CONTRASTS = """(ignored) => {
    const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const over = (colour, below) => {
        for (pen.fillStyle of [`rgb(${below.join(",")})`, colour]) pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const behind = (element) => {
        const circle = element.closest(".point")?.querySelector("circle");
        const colours = circle ? [getComputedStyle(circle).fill] : [];
        for (let one = element; one; one = one.parentElement) colours.push(getComputedStyle(one).backgroundColor);
        return colours.reverse().reduce((below, colour) => over(colour, below), [255, 255, 255]);
    };
    const light = (rgb) => {
        const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = [];
    for (const element of document.querySelectorAll("body *")) {
        const text = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());
        if (!text.length || element.closest(ignored) || !element.checkVisibility()) continue;
        const style = getComputedStyle(element), paper = behind(element);
        const ink = light(over(element instanceof SVGElement ? style.fill : style.color, paper));
        const ratio = (Math.max(ink, light(paper)) + 0.05) / (Math.min(ink, light(paper)) + 0.05);
        found.push([ratio, `${element.tagName} ${element.getAttribute("class")} ${text[0].data.slice(0, 40)}`]);
    }
    return found;
}"""
