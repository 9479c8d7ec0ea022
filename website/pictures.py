"""Make the pictures of the tutorials and of the pages on photos, by doing what the tutorials say.

`python website/pictures.py [PAGE…]` needs Chromium, takes some minutes, and writes to docs/images.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from staging import DOCS, ROOT

sys.path.insert(0, str(ROOT / "tests" / "support"))
import chromium

IMAGES = DOCS / "images"
WIDE, TALL = (1000, 860), (1000, 1300)
NAMES = {1: "delta", 2: "psi", 5: "feh"}
"""Groups that have a name in the picture of the review."""


def main() -> None:
    """All of them, in a folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        os.environ["MEDI_CACHE"] = f"{name}/cache"
        write_files("tutorials/method.md")
        for page in sys.argv[1:] or ("photos", "vectors", "table", "method"):
            photos() if page == "photos" else figures(page)


def write_files(*pages: str) -> None:
    """Blocks that name a file, as that file."""
    for page in pages:
        for file, text in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", (DOCS / page).read_text(), re.M | re.S):
            Path(file).write_text(text)


def figures(page: str) -> None:
    """Pictures that the programs of a tutorial draw."""
    text = (DOCS / "tutorials" / f"{page}.md").read_text()
    if page == "vectors":
        for code in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)[:2]:
            exec(code, globals())
        save(Image.open("groups.png"), "digits")
        return
    for line in re.findall(r"^\$ medi (bench (?:run|figure) .*)$", text, re.M)[:2]:
        medi(*line.split())
    (drawn,) = (path for path in Path().glob("*.png") if path.name != "groups.png")
    save(Image.open(drawn), page)
    drawn.unlink()


def photos() -> None:
    """The report, the page of a review, and the preview of a split."""
    medi("demo")
    medi("discover", "--known", "demo/letters/known", "--novel", "demo/letters/novel", "--out", "found")
    with chromium.browser(Path("profile")) as browser:
        show(browser, Path("found/report.html").resolve().as_uri(), TALL)
        save(shot(browser), "report")
        command = [sys.executable, "-m", "medi", "review", "found", "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout
            show(browser, server.stdout.readline().strip())
            browser.wait_until("document.body.classList.contains('ready')")
            for group, name in NAMES.items():
                card = f".card[data-group='{group}']"
                browser.run(f'document.querySelector("{card} .tile, {card} button").focus()')
                browser.press("n")
                browser.wait_until("document.querySelector('dialog input')")
                browser.type(name)
                browser.press("Enter")
                browser.wait_until("!document.querySelector('dialog')")
                browser.wait_until("!document.body.hasAttribute('aria-busy')")
            browser.run("window.scrollTo(0, 0)")
            save(shot(browser), "review")
            buttons = "[...document.querySelectorAll(\".card[data-group='0'] button\")]"
            browser.run(f"{buttons}.find((button) => button.textContent.includes('Split')).click()")
            browser.wait_until("document.querySelectorAll('dialog .parts section').length === 2")
            browser.run("[...document.querySelectorAll('dialog button')].find((b) => b.textContent === '4').click()")
            browser.wait_until("document.querySelectorAll('dialog .parts section').length === 4")
            save(shot(browser), "review-split")
            server.terminate()


def medi(*words: str) -> None:
    """The program, in a process of its own."""
    subprocess.run([sys.executable, "-m", "medi", *words], check=True)


def show(browser: chromium.Browser, address: str, size: tuple[int, int] = WIDE) -> None:
    """A page in a window of a size."""
    browser.open(address, width=size[0], height=size[1])


def shot(browser: chromium.Browser) -> Image.Image:
    """What the window shows."""
    return Image.open(BytesIO(chromium.b64decode(browser.call("Page.captureScreenshot")["data"])))


def save(image: Image.Image, name: str) -> None:
    """As a small file: 64 colours are enough for pages and charts."""
    image.convert("RGB").quantize(64).save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
