"""The search of the site works from the disk, without a server and without the network."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSIDE = "[...document.querySelectorAll('*')].find((one) => one.shadowRoot)?.shadowRoot"
"""Where the search shows itself."""


@pytest.mark.slow
def test_the_search_finds_pages_of_a_site_that_is_opened_from_the_disk(browser):
    subprocess.run([sys.executable, ROOT / "website" / "build.py"], check=True, capture_output=True)
    browser.open((ROOT / "build" / "site" / "tutorials" / "photos.html").as_uri(), width=1000, height=800)
    browser.run("document.querySelector('.md-search__button').click()")
    browser.wait_until(f"{INSIDE}.activeElement")
    browser.type("rehearsal")
    browser.wait_until(f"{INSIDE}.textContent.includes('What a rehearsal is')")
    assert browser.complaints("file://", "data:") == []
