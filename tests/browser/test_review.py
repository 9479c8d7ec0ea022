"""The page of a review in a real browser."""

import json

import numpy as np
import pytest
from PIL import Image
from review_pages import WIDE, serving, settled, show
from reviews import ToyPool, made_up_review, toy_pool

from medi.discover.result import is_doubtful, per_cent

PHONE, ZOOMED = (360, 740), (320, 225)  # the last: 1280 x 900 at 400 %
HOSTILE = "<img src=x onerror='window.broken = 1'>\u202e\"><script>window.broken = 1</script>"


@pytest.fixture
def review(tmp_path):
    return made_up_review(tmp_path, toy_pool())


@pytest.fixture
def page(browser, review):
    """A page that is loaded, with the keyboard at its beginning."""
    with serving(review) as (address, _):
        show(browser, address)
        yield browser
        assert browser.complaints("http://127.0.0.1:", "about:blank") == []
        browser.call("Page.navigate", url="about:blank")


def name(browser, text: str) -> None:
    """Call the next group something."""
    browser.press("]")
    browser.press("n")
    browser.wait_until("document.querySelector('dialog input')")
    browser.type(text)
    browser.press("Enter")


def walk_to(browser, item: int) -> None:
    """With the arrows, as a person does."""
    for key in ["ArrowRight"] * 20 + ["ArrowLeft"] * 20:
        if browser.run("document.activeElement.closest('.tile')?.dataset.item") == str(item):
            return
        browser.press(key)
    raise AssertionError(f"no way to photo {item}")


def test_everything_by_keyboard_alone(page, review):
    name(page, "sea holly")
    settled(page, review, 1)
    group = int(page.run("document.activeElement.closest('.card').dataset.group"))
    assert review.history.state.names == {group: "sea holly"}

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

    other = next(number for number in review.history.state.members if number != group)
    walk_to(page, review.history.state.members[group][0])
    moved = int(page.run("document.activeElement.closest('.tile').dataset.item"))
    page.press(str(other))
    settled(page, review, 6)
    assert review.history.done[-1]["items"] == [moved]
    assert review.history.state.groups[moved] == other

    walk_to(page, 17)
    page.press(" ")
    page.press("ArrowRight")
    page.press(" ")
    assert page.run("document.querySelector('#bar b').textContent") == "2 photos"
    page.press("g")
    page.wait_until("document.querySelector('dialog input')")
    page.type("odd ones")
    page.press("Enter")
    settled(page, review, 7)
    assert sorted(review.history.done[-1]["items"]) == [17, 18]
    made = review.history.state.groups[17]
    assert review.history.state.names[made] == "odd ones"
    page.wait_until(f"document.activeElement.closest('.card')?.dataset.group === '{made}'")

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
    for number, (key, action) in enumerate([("x", "reject"), ("a", "move")], 2):
        walk_to(page, next(iter(review.history.state.members.values()))[0])
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
    assert review.history.done[-1]["group"] is None


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


def offering_review(folder):
    """One photo of the first heap begins on its own, so that it is offered once that heap has a name."""
    pool = toy_pool()
    pool.labels[5] = -1
    return made_up_review(folder, pool)


def go_to(browser, group: int) -> float:
    """Focus a group; where on the screen it is."""
    card = f"document.querySelector('.card[data-group=\"{group}\"]')"
    browser.run(f"{card}.querySelector('.pick').focus({{preventScroll: true}})")
    return browser.run(f"{card}.getBoundingClientRect().top")


def notice(browser) -> str:
    return browser.run("document.querySelector('#notice > span').textContent")


def test_what_is_offered_is_taken_or_left_with_one_key_and_undo_says_what_it_undid(browser, tmp_path):
    review = offering_review(tmp_path)
    review.act({"seq": 0, "action": "name", "group": 0, "name": "aster"})
    with serving(review) as (address, _):
        show(browser, address)
        for key, action in (("l", "check"), ("o", "move")):
            go_to(browser, 0)
            assert "1 more may belong here" in browser.run("document.querySelector('.offer').textContent")
            before = review.history.seq
            browser.press(key)
            settled(browser, review, before + 1)
            line = review.history.done[-1]
            assert line["action"] == action
            assert (line.get("no") or line["items"]) == [5]
            assert browser.run("document.querySelector('.offer')") is None
            if key == "l":
                text = notice(browser)
                browser.press("z")
                settled(browser, review, before + 2)
                assert notice(browser) == f"Undone: {text}"
        assert review.history.state.groups[5] == 0
        assert browser.complaints("http://127.0.0.1:", "about:blank") == []


def test_the_card_in_use_stays_in_place_and_finished_ones_go_last_once_they_are_left(browser, tmp_path):
    review = made_up_review(tmp_path, toy_pool((30, 25, 20, 22)))
    with serving(review) as (address, _):
        show(browser, address, (1280, 600))
        first, second, third, _ = cards(browser)
        for number, group in enumerate((second, first, third), 1):
            go_to(browser, group)
            browser.run("document.activeElement.closest('.card').scrollIntoView({block: 'center'})")
            before = go_to(browser, group)
            browser.press("r")
            settled(browser, review, number)
            assert go_to(browser, group) == pytest.approx(before, abs=1)
        browser.run("[...document.querySelectorAll('.card .all')].forEach((one) => one.click())")
        assert sorted(review.history.state.names) == []
        for number, group in enumerate((second, third), 4):
            go_to(browser, group)
            browser.press("r")
            settled(browser, review, number)
        assert cards(browser)[-1] == second
        assert browser.complaints("http://127.0.0.1:", "about:blank") == []


def cards(browser) -> list[int]:
    return browser.run("[...document.querySelectorAll('.card[data-group]')].map((card) => Number(card.dataset.group))")


def test_a_list_of_targets_begins_with_the_likeliest_and_takes_a_new_name_as_typed(page, review):
    go_to(page, 1)
    page.press("m")
    page.wait_until("document.querySelector('dialog #options li')")
    assert "Group 1" in page.run("document.querySelector('#options li').textContent")
    page.type("sea holly")
    page.press("Enter")
    settled(page, review, 1)
    assert "sea holly" in review.history.state.names.values()
    assert page.run("document.querySelector('.card[data-group=\"3\"]').getBoundingClientRect().top") < WIDE[1]


def test_known_cards_are_confirmed_one_by_one_or_together(page, review):
    page.run("document.querySelector('.card[data-other^=known] .pick').focus()")
    page.press("r")
    settled(page, review, 1)
    assert review.history.done[-1]["items"] == [15, 16]
    page.press("z")
    settled(page, review, 2)
    page.run(
        "[...document.querySelectorAll('button')].find((one) => one.textContent.startsWith('All of them')).click()"
    )
    settled(page, review, 3)
    assert review.history.done[-1]["items"] == [15, 16]


def test_a_photo_is_compared_and_put_right_in_the_full_view(browser, tmp_path):
    review = made_up_review(tmp_path, toy_pool())
    for name in ("rose", "tulip"):
        Image.new("RGB", (40, 30)).save(review.folder.known / name / "1.png")
    with serving(review) as (address, _):
        show(browser, address)
        go_to(browser, 0)
        browser.press("Enter")
        browser.wait_until("document.querySelectorAll('.compare section').length === 3")
        browser.wait_until("[...document.querySelectorAll('.compare img')].every((one) => one.naturalWidth > 0)")
        for number, (key, action) in enumerate((("r", "confirm"), ("o", "move"), ("w", "known"), ("x", "reject")), 1):
            before = browser.run("document.querySelector('.whole').alt")
            browser.wait_until("document.querySelectorAll('.compare section').length === 3")
            browser.press(key)
            settled(browser, review, number)
            assert review.history.done[-1]["action"] == action
            browser.wait_until(f"document.querySelector('.whole').alt !== '{before}'")
        browser.press("m")
        browser.wait_until("document.querySelector('#options li')")
        browser.press("Escape")
        browser.press("Escape")
        browser.wait_until("!document.querySelector('dialog')")
        assert browser.complaints("http://127.0.0.1:", "about:blank") == []


def test_equal_names_offer_a_merge(page, review):
    name(page, "aster")
    settled(page, review, 1)
    name(page, "Aster")
    page.wait_until("document.querySelector('dialog')?.textContent.includes('Merge them')")
    page.press("Escape")
    page.wait_until("!document.querySelector('dialog')")
    assert review.history.seq == 1, "a question that is left changes nothing"
    page.press("n")
    page.wait_until("document.querySelector('dialog input')")
    page.type("Aster")
    page.press("Enter")
    page.wait_until("document.querySelector('dialog')?.textContent.includes('Merge them')")
    page.press("Enter")
    settled(page, review, 2)
    assert review.history.done[-1]["action"] == "merge"


def test_photos_are_dragged_with_the_mouse_and_picked_with_clicks(page, review):
    page.click(*page.middle(".card .tile .pick"))
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
        assert min(browser.contrasts(":disabled, .zoom, .unseen, .skip, select, kbd"))[0] >= 4.5
        assert browser.complaints("http://127.0.0.1:", "about:blank") == []


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


@pytest.mark.parametrize("every", [False, True], ids=["settled", "all"])
def test_accepting_asks_about_doubtful_photos_and_leaves_them_out_by_default(browser, tmp_path, every):
    review = made_up_review(tmp_path, toy_pool(), learning=False)
    members, sure = review.history.state.members[0], review.history.state.confidence
    settled_ones = [item for item in members if not is_doubtful(sure[item])]
    review.act({"seq": 0, "action": "name", "group": 0, "name": "holly", "items": settled_ones})
    with serving(review) as (address, _):
        show(browser, address)
        browser.run("document.getElementById('accept').click()")
        browser.wait_until("document.querySelector('dialog .buttons')")
        assert "null" not in browser.run("document.querySelector('dialog').textContent")
        if every:
            browser.press("Tab")
        browser.press("Enter")
        settled(browser, review, 2)
        assert browser.complaints("http://127.0.0.1:", "about:blank") == []
    assert sorted(review.history.state.accepted) == (members if every else settled_ones)
    assert len(settled_ones) < len(members)


def test_a_copy_is_marked_and_says_of_which_photo(browser, tmp_path):
    review = made_up_review(tmp_path, toy_pool())
    (tmp_path / "novel" / "003.jpg").write_bytes((tmp_path / "novel" / "001.jpg").read_bytes())
    with serving(review) as (address, _):
        show(browser, address)
        labels = browser.run("[...document.querySelectorAll('.pick')].map((one) => one.ariaLabel)")
    assert {label.partition(",")[0] for label in labels if "001.jpg" in label} == {"001.jpg", "003.jpg"}


def test_the_number_of_a_photo_and_its_mark_agree_with_what_the_terminal_says(browser, tmp_path):
    sure = [0.66, 0.6649, 0.665, 0.6651, 0.6666, 2 / 3, 0.6667, 0.67]
    pool = ToyPool(np.zeros((len(sure), 2)), np.zeros(len(sure), int), confidence=sure)
    review = made_up_review(tmp_path, pool, learning=False)
    with serving(review) as (address, _):
        show(browser, address)
        tiles = browser.run(
            "[...document.querySelectorAll('.tile')].map((one) => [Number(one.dataset.item), "
            "parseInt(one.querySelector('.sure').textContent), one.classList.contains('doubtful')])"
        )
        facts = browser.run("document.querySelector('.facts').textContent")
    assert {item: (number, doubtful) for item, number, doubtful in tiles} == {
        item: (per_cent(c), is_doubtful(c)) for item, c in enumerate(sure)
    }
    assert f"{sum(map(is_doubtful, sure))} doubtful" in facts
