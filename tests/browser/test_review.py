"""The page of a review in a real browser."""

import json
import threading
import time
from contextlib import contextmanager

import chromium
import pytest
import uvicorn
from reviews import made_up_review, toy_pool

from medi.review.security import Doorkeeper
from medi.review.serve import listening
from medi.review.server import application

pytestmark = pytest.mark.skipif(chromium.find() is None, reason="no Chromium: install Debian's package `chromium`")

PHONE, WIDE, ZOOMED = (360, 740), (1280, 900), (320, 225)  # the last: 1280 x 900 at 400 %
HOSTILE = "<img src=x onerror='window.broken = 1'>\u202e\"><script>window.broken = 1</script>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@contextmanager
def serving(review):
    with listening(None) as listener:
        port = listener.getsockname()[1]
        keeper = Doorkeeper(port)
        server = uvicorn.Server(uvicorn.Config(application(review, keeper), log_level="error", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/?token={keeper.token}", keeper
        finally:
            server.should_exit = True
            thread.join(10)


@pytest.fixture
def review(tmp_path):
    return made_up_review(tmp_path, toy_pool())


@pytest.fixture
def page(browser, review):
    """A page that is loaded, with the keyboard at its beginning."""
    with serving(review) as (address, _):
        show(browser, address)
        yield browser
        assert complaints(browser) == []
        browser.call("Page.navigate", url="about:blank")


def show(browser, address, size=WIDE, **options) -> None:
    browser.open(address, width=size[0], height=size[1], **options)
    browser.wait_until("document.body?.classList.contains('ready')")


def complaints(browser) -> list[str]:
    """What the console says, and what is asked of others than this machine."""
    found = []
    for event in browser.events:
        method, params = event.get("method"), event.get("params", {})
        if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            found.append(str(params))
        if method == "Network.requestWillBeSent" and not params["request"]["url"].startswith("http://127.0.0.1:"):
            found.append(params["request"]["url"])
    return [line for line in found if "about:blank" not in line]


def settled(browser, review, seq: int) -> None:
    """Until an action is taken and shown."""
    browser.wait_until("!document.body.hasAttribute('aria-busy')")
    deadline = time.monotonic() + 10
    while review.history.seq < seq:
        assert time.monotonic() < deadline, f"still at {review.history.seq}"
        time.sleep(0.02)
    browser.wait_until("!document.body.hasAttribute('aria-busy')")


def names(review) -> dict[int, str]:
    return dict(review.history.state.names)


def walk_to(browser, item: int) -> None:
    """With the arrows, as a person does."""
    for _ in range(80):
        if browser.run("document.activeElement.closest('.tile')?.dataset.item") == str(item):
            return
        browser.press("ArrowRight")
    raise AssertionError(f"no way to photo {item}")


def test_everything_by_keyboard_alone(page, review):
    page.press("]")  # the first group
    group = int(page.run("document.activeElement.closest('.card').dataset.group"))
    page.press("n")
    page.wait_until("document.querySelector('dialog input')")
    page.type("sea holly")
    page.press("Enter")
    settled(page, review, 1)
    assert names(review) == {group: "sea holly"}

    page.press("s")
    page.wait_until("document.querySelectorAll('dialog .parts section').length === 2")
    page.press("3")
    page.wait_until("document.querySelectorAll('dialog .parts section').length === 3")
    page.press("Enter")
    settled(page, review, 2)
    assert review.history.done[-1]["parts"] == 3

    page.press("z")
    settled(page, review, 3)
    assert len(review.state()["groups"]) == 3
    page.press("Z", shift=True)
    settled(page, review, 4)
    assert len(review.state()["groups"]) == 5
    page.press("z")
    settled(page, review, 5)

    page.press("]")
    page.press("ArrowRight")
    moved = int(page.run("document.activeElement.closest('.tile').dataset.item"))
    page.press("1")
    settled(page, review, 6)
    assert review.history.done[-1]["items"] == [moved]
    assert review.history.state.groups[moved] == int(page.run("document.querySelector('.card').dataset.group"))

    walk_to(page, 17)
    page.press(" ")
    page.press("ArrowRight")
    page.press(" ")
    assert page.run("document.querySelector('#bar b').textContent") == "2 photos"
    page.press("g")
    settled(page, review, 7)
    assert sorted(review.history.done[-1]["items"]) == [17, 18]

    page.press("y" if page.run("!document.getElementById('question').hidden") else "z")
    settled(page, review, 8)
    page.press("t")
    page.wait_until("document.querySelector('.strip .tile')")
    page.press("ArrowRight")
    page.press("ArrowRight")
    before = review.history.seq
    page.press("b")
    settled(page, review, before + 1)
    assert review.history.done[-1]["action"] in ("split", "answer")
    page.press("t")
    page.wait_until("document.querySelector('canvas.map')")
    page.press("t")
    page.press("?")
    page.wait_until("document.querySelector('dialog .help')")
    page.press("Escape")
    page.wait_until("!document.querySelector('dialog')")


def test_merging_rejecting_setting_aside_and_known_classes_by_keyboard(page, review):
    page.press("]")
    page.press("v")
    page.press("]")
    page.press("v")
    chosen = page.run("[...document.querySelectorAll('.card.chosen')].map((card) => Number(card.dataset.group))")
    assert len(chosen) == 2
    page.press("j")
    settled(page, review, 1)
    assert sorted(review.history.done[-1]["groups"]) == sorted(chosen)
    for number, (key, action) in enumerate([("x", "reject"), ("a", "aside")], 2):
        page.press("]")
        page.press("ArrowRight")
        page.press(key)
        settled(page, review, number)
        assert review.history.done[-1]["action"] == action
        assert "undo" in page.run("document.getElementById('notice').textContent.toLowerCase()")
    page.press("]")
    page.press("k")
    page.wait_until("document.querySelector('dialog #options li')")
    page.type("tul")
    page.press("Enter")
    settled(page, review, 4)
    assert review.history.done[-1]["name"] == "tulip"
    page.press("]")
    page.press("m")
    page.wait_until("document.querySelector('dialog #options li')")
    page.type("no group")
    page.press("Enter")
    settled(page, review, 5)
    assert review.history.done[-1]["action"] == "aside"


def test_checking_page_by_page_doubles_until_the_first_no(page, review):
    page.press("]")
    page.press("c")
    sizes = []
    for step in range(4):
        page.wait_until("document.querySelector('dialog .checked')")
        sizes.append(page.run("document.querySelectorAll('dialog .checked').length"))
        if step == 2:
            page.press("x")
        page.run("document.querySelector('dialog').dataset.seen = 1")
        page.press("Enter")
        page.wait_until("!document.querySelector('dialog[data-seen]')")
        settled(page, review, step + 1)
        if step < 3 and not wait_for_dialog(page):
            break
    assert sizes[:2] == [1, 2]
    assert sum(sizes) >= 4
    page.press("Escape")


def wait_for_dialog(browser) -> bool:
    try:
        browser.wait_until("document.querySelector('dialog .checked')", patience=2)
    except AssertionError:
        return False
    return True


def test_equal_names_offer_a_merge(page, review):
    page.press("]")
    page.press("n")
    page.wait_until("document.querySelector('dialog input')")
    page.type("aster")
    page.press("Enter")
    settled(page, review, 1)
    page.press("]")
    page.press("n")
    page.wait_until("document.querySelector('dialog input')")
    page.type("Aster")
    page.press("Enter")
    page.wait_until("document.querySelector('dialog')?.textContent.includes('Merge them')")
    page.press("Enter")
    settled(page, review, 2)
    assert review.history.done[-1]["action"] == "merge"


def test_photos_are_dragged_with_the_mouse_and_picked_with_clicks(page, review):
    def middle(selector):
        return page.run(
            f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )

    x, y = middle(".card .tile .pick")
    for kind in ("mousePressed", "mouseReleased"):
        page.mouse(kind, x, y, button="left", clickCount=1)
    assert page.run("document.querySelectorAll('.tile.picked').length") == 1
    item = int(page.run("document.querySelector('.tile.picked').dataset.item"))
    cards = page.run("[...document.querySelectorAll('.card[data-group]')].map((card) => Number(card.dataset.group))")
    target = cards[1]
    page.run(
        f"""(() => {{
            const data = new DataTransfer();
            const fire = (element, type) => element.dispatchEvent(
                new DragEvent(type, {{ bubbles: true, cancelable: true, dataTransfer: data }}));
            fire(document.querySelector('.tile[data-item="{item}"] .pick'), "dragstart");
            const card = document.querySelector('.card[data-group="{target}"]');
            fire(card, "dragover");
            fire(card, "drop");
        }})()"""
    )
    settled(page, review, 1)
    assert review.history.state.groups[item] == target
    assert page.run("document.querySelectorAll('.tile.picked').length") == 0


def test_the_lasso_selects_what_it_goes_around(page):
    page.run("document.getElementById('tab-map').click()")
    page.wait_until("document.querySelector('canvas.map').clientWidth > 100")
    left, top, width, height = page.run(
        "(() => { const e = document.querySelector('canvas.map'); e.scrollIntoView();"
        " const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()"
    )
    height = min(height, WIDE[1] - top - 4)
    corners = [(0.005, 0.02), (0.6, 0.02), (0.6, 0.6), (0.3, 0.98), (0.005, 0.98), (0.005, 0.5), (0.005, 0.02)]
    points = [(left + x * width, top + y * height) for x, y in corners]
    page.mouse("mousePressed", *points[0], button="left", clickCount=1)
    for point in points[1:]:
        page.mouse("mouseMoved", *point, button="left", buttons=1)
    page.mouse("mouseReleased", *points[-1], button="left", clickCount=1)
    page.wait_until("!document.getElementById('bar').hidden")
    assert int(page.run("document.querySelector('#bar b').textContent").split()[0]) >= 10


def test_two_tabs_cannot_overwrite_each_other(page, review):
    review.act({"seq": 0, "action": "name", "group": 1, "name": "elsewhere"})
    page.press("]")
    page.press("x")
    page.wait_until("document.querySelector('.notice.bad')?.textContent.includes('another tab')")
    assert review.history.seq == 1
    assert page.run("[...document.querySelectorAll('.name')].some((name) => name.textContent === 'elsewhere')")
    page.events[:] = [event for event in page.events if "409" not in json.dumps(event)]
    page.press("x")
    settled(page, review, 2)


def test_a_contradiction_is_shown_and_asked_about(page, review):
    for a, b in ((0, 1), (1, 2)):
        review.act({"seq": review.history.seq, "action": "answer", "a": a, "b": b, "same": True})
    page.run("import('/static/api.js').then((api) => api.load())")
    page.run("import('/static/api.js').then((api) => { api.act('answer', { a: 0, b: 2, same: false }); })")
    page.wait_until("document.querySelector('dialog')?.textContent.includes('000.jpg and 001.jpg are the same')")
    page.press("Enter")
    settled(page, review, 3)
    assert review.history.done[-1]["override"] is True
    page.events[:] = [event for event in page.events if "400" not in json.dumps(event)]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, WIDE, ZOOMED], ids=["phone", "wide", "zoomed"])
def test_nothing_sticks_out_and_names_are_text(browser, tmp_path, size, dark):
    pool = toy_pool()
    paths = [f"{number}{HOSTILE.replace('/', '')}.jpg" for number in range(len(pool))]
    review = made_up_review(tmp_path, pool, paths=paths)
    review.act({"seq": 0, "action": "name", "group": 0, "name": HOSTILE})
    review.act({"seq": 1, "action": "name", "group": 1, "name": "x" * 200})
    with serving(review) as (address, _):
        show(browser, address, size, dark=dark)
        for tab in ("groups", "strip", "map"):
            browser.run(f"document.getElementById('tab-{tab}').click()")
            assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), tab
        browser.run("document.getElementById('tab-groups').click()")
        browser.run("document.querySelector('.tile').scrollIntoView()")
        browser.wait_until("document.querySelector('.tile img').naturalWidth === 24")
        assert browser.run("window.broken") is None
        assert "onerror" in browser.run("document.querySelector('[data-group=\"0\"] .name').textContent")
        assert browser.run("location.search") == ""
        assert too_faint(browser) == []
        assert complaints(browser) == []


def too_faint(browser) -> list[str]:
    """Texts whose contrast with what lies behind them is below 4.5 (WCAG AA)."""
    return browser.run(
        """(() => {
        const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
        const pen = canvas.getContext("2d", { willReadFrequently: true });
        const over = (colour, below) => {
            pen.fillStyle = `rgb(${below.join(",")})`; pen.fillRect(0, 0, 1, 1);
            pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
            return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
        };
        const behind = (element) => {
            const chain = [];
            for (let one = element; one; one = one.parentElement) chain.unshift(getComputedStyle(one).backgroundColor);
            return chain.reduce((below, colour) => over(colour, below), [255, 255, 255]);
        };
        const light = (rgb) => {
            const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const found = [];
        for (const element of document.querySelectorAll("body *")) {
            const text = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());
            if (!text.length || element.offsetParent === null) continue;
            if (element.closest(":disabled, .zoom, .unseen, .skip, select, kbd")) continue;
            const back = behind(element);
            const [a, b] = [light(over(getComputedStyle(element).color, back)), light(back)];
            const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (ratio < 4.5) found.push(`${element.className || element.tagName}: ${text[0].data} ${ratio.toFixed(2)}`);
        }
        return [...new Set(found)];
    })()"""
    )


def test_everything_that_can_be_pressed_has_a_name(page):
    page.run("document.querySelector('.tile .pick').click()")
    nameless = page.run(
        """[...document.querySelectorAll("button, input, select, [role=tab]")]
        .filter((one) => !one.closest("[aria-hidden=true]") && one.getAttribute("aria-hidden") !== "true")
        .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length))
        .map((one) => one.outerHTML)"""
    )
    assert nameless == []
    assert page.run("document.querySelectorAll('.pick[tabindex=\"0\"]').length") == 1
