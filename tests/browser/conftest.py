import chromium
import pytest


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if chromium.find() is None:
        pytest.skip("no Chromium: install Debian's package `chromium`")
    with chromium.browser(tmp_path_factory.mktemp("profile")) as started:
        yield started
