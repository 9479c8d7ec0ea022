"""The report in a real browser."""

import re

import pytest
from discoveries import made_up, patterns

from medi.photos.folders import Skipped
from medi.report.page import render

PHONE, WIDE = (360, 740), (1280, 900)
HOSTILE = (
    "<img src=x onerror='window.broken = 1'></script><script>window.broken = 1</script>\n\" onload=\"window.broken = 1"
)
SHOWN = "(() => { const p = document.getElementById('preview'); return p.hidden ? null : p.textContent; })()"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Ten pictures of all kinds, the number given, with names that do their worst; 20 groups of 25; none at all."""
    folder = tmp_path_factory.mktemp("pages")
    bad, skipped = [f"{HOSTILE}/{'x' * 200}{i}.jpg" for i in range(10)], [Skipped(HOSTILE, HOSTILE)]
    good = [f"{i}.jpg" for i in range(500)]
    texts = {
        "few": render(
            made_up([4, 3], known={HOSTILE: 2}, alone=1, given=True),
            bad,
            patterns,
            skipped,
            HOSTILE,
            {HOSTILE: "x" * 300},
        ),
        "many": render(made_up([25] * 20), good, patterns, [], "medi discover --known a --novel b --out c", {}),
        "none": render(made_up([], given=True), [], patterns, [], "medi discover", {}),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in texts}


def lonely_points(browser, count: int) -> list[int]:
    """Numbers of the points that nothing lies on: the browser finds them at their middle."""
    numbers = browser.run(
        """(() => {
            document.querySelector(".map").scrollIntoView({block: "center"});
            return [...document.querySelectorAll(".point")].filter((point) => {
                const box = point.querySelector("circle").getBoundingClientRect();
                const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
                return top?.closest(".point") === point;
            }).map((point) => Number(point.id.slice("point-".length)));
        })()"""
    )
    assert len(numbers) >= count
    return numbers[:count]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, WIDE], ids=["phone", "wide"])
@pytest.mark.parametrize("name", ["few", "many", "none"])
def test_thumbnails_show_nothing_complains_and_nothing_sticks_out(browser, pages, name, size, dark):
    browser.open(pages[name], width=size[0], height=size[1], dark=dark)
    images = browser.run("[...document.querySelectorAll('main img[src]')].map((image) => image.naturalWidth)")
    assert len(images) == {"few": 12, "many": 520, "none": 0}[name]
    assert set(images) <= {40}
    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.run("window.broken") is None
    assert browser.complaints("file:", "data:") == []


def test_a_picture_enlarges_at_a_click_and_arrows_go_through_all(browser, pages):
    browser.open(pages["few"], width=PHONE[0], height=PHONE[1])
    name = "document.getElementById('large').open ? document.querySelector('#large p').textContent : null"
    assert browser.run(name) is None
    browser.click(*browser.middle("#picture-1 img"))
    assert "1.jpg" in browser.run(name)
    assert browser.run("document.querySelector('#large img').clientWidth > 200")
    seen = set()
    for _ in range(10):
        browser.press("ArrowRight")
        seen.add(browser.run(name))
    assert len(seen) == 10
    browser.press("Escape")
    assert browser.run(name) is None
    browser.run("document.getElementById('look').focus()")
    browser.press("Enter")
    assert browser.run(name) is not None
    assert browser.complaints("file:", "data:") == []


def test_the_report_says_the_next_command(browser, pages):
    for name, found in (("many", True), ("few", False)):
        browser.open(pages[name], width=WIDE[0], height=WIDE[1])
        assert browser.run("document.getElementById('groups').textContent.includes('medi review c')") == found


@pytest.mark.parametrize("name", ["few", "many"])
def test_pointing_at_the_map_shows_the_picture_and_leaving_hides_it(browser, pages, name):
    browser.open(pages[name], width=WIDE[0], height=WIDE[1])
    assert browser.run(SHOWN) is None
    for number in lonely_points(browser, 3):
        browser.mouse("mouseMoved", *browser.middle(f"#point-{number} circle"))
        face, width = browser.run(
            "(() => { const i = preview.querySelector('img'); return [i.src, i.naturalWidth]; })()"
        )
        assert face == browser.run(f"document.querySelector('#picture-{number} img').src")
        assert width == 40
        alt = browser.run(f"document.querySelector('#picture-{number} img').alt")
        belongs = browser.run(f"document.querySelector('#picture-{number}').dataset.belongs")
        assert browser.run(SHOWN).startswith(f"{alt}{belongs} · ")
        left, right, frame = browser.run(
            "[preview.getBoundingClientRect().left, preview.getBoundingClientRect().right, innerWidth]"
        )
        assert 0 <= left < right <= frame
    browser.mouse("mouseMoved", 2, 2)
    assert browser.run(SHOWN) is None
    assert browser.complaints("file:", "data:") == []


def test_a_click_on_a_point_goes_to_its_picture(browser, pages):
    browser.open(pages["many"], width=WIDE[0], height=WIDE[1])
    (number,) = lonely_points(browser, 1)
    browser.click(*browser.middle(f"#point-{number} circle"))
    assert browser.run("location.hash") == f"#picture-{number}"
    top = browser.run(f"document.querySelector('#picture-{number}').getBoundingClientRect().top")
    assert 0 <= top < WIDE[1]


def test_the_keyboard_walks_the_map_from_one_stop(browser, pages):
    browser.open(pages["many"], width=WIDE[0], height=WIDE[1])
    browser.run("document.getElementById('faces').focus()")
    browser.press("Tab")
    assert browser.run("document.activeElement.id").startswith("point-")
    for key, ahead in [("ArrowRight", "x"), ("ArrowDown", "y"), ("ArrowRight", "x"), ("ArrowDown", "y")]:
        before = browser.run(f"document.activeElement.getBoundingClientRect().{ahead} + scroll{ahead.upper()}")
        browser.press(key)
        after = browser.run(f"document.activeElement.getBoundingClientRect().{ahead} + scroll{ahead.upper()}")
        assert after > before
        number = browser.run("document.activeElement.id").removeprefix("point-")
        assert browser.run("preview.querySelector('img').src") == browser.run(
            f"document.querySelector('#picture-{number} img').src"
        )
        assert browser.run(SHOWN)
    browser.press("Escape")
    assert browser.run(SHOWN) is None
    browser.press("ArrowLeft")
    assert browser.run(SHOWN)
    browser.press("Tab")
    assert not browser.run("document.activeElement.id").startswith("point-")
    assert browser.run(SHOWN) is None


def test_page_keys_take_every_point_in_turn(browser, pages):
    browser.open(pages["few"], width=WIDE[0], height=WIDE[1])
    browser.run("document.querySelector('.point[tabindex=\"0\"]').focus()")
    visited = [browser.run("document.activeElement.id")]
    for _ in range(9):
        browser.press("PageDown")
        visited.append(browser.run("document.activeElement.id"))
    assert sorted(visited) == [f"point-{number}" for number in range(10)]
    browser.press("PageUp")
    assert browser.run("document.activeElement.id") == visited[-2]


def test_a_first_tap_shows_the_picture_and_a_second_goes_to_it(browser, pages):
    browser.open(pages["few"], width=PHONE[0], height=PHONE[1], touch=True)
    first, second = lonely_points(browser, 2)
    for number in (first, second):
        browser.tap(*browser.middle(f"#point-{number} circle"))
        source = browser.run(f"document.querySelector('#picture-{number} img').src")
        assert browser.run(SHOWN)
        assert browser.run("preview.querySelector('img').src") == source
        assert browser.run("location.hash") == ""
    browser.tap(*browser.middle(f"#point-{second} circle"))
    assert browser.run("location.hash") == f"#picture-{second}"


def test_the_map_can_show_pictures_in_place_of_numbers(browser, pages):
    browser.open(pages["many"], width=PHONE[0], height=PHONE[1])
    count = "document.querySelectorAll('.point image[href^=\"data:image/jpeg\"]').length"
    browser.run("document.getElementById('faces').click()")
    assert browser.run(count) == 500
    assert browser.run("document.querySelector('.point image').getBoundingClientRect().width") > 5
    browser.run("document.getElementById('faces').click()")
    assert browser.run(count) == 0
    assert browser.complaints("file:", "data:") == []


def test_without_scripts_only_the_preview_is_missing(browser, pages):
    browser.open(pages["few"], width=WIDE[0], height=WIDE[1], script=False)
    assert browser.run("[...document.querySelectorAll('main img[src]')].every((image) => image.naturalWidth === 40)")
    assert browser.run("[...document.querySelectorAll('.scripted')].every((element) => !element.offsetParent)")
    assert browser.run("document.querySelector('.unscripted').offsetHeight") > 0
    (number,) = lonely_points(browser, 1)
    x, y = browser.middle(f"#point-{number} circle")
    browser.mouse("mouseMoved", x, y)
    assert browser.run(SHOWN) is None
    browser.click(x, y)
    assert browser.run("location.hash") == f"#picture-{number}"


def test_the_figures_are_one_click_away_and_a_group_leads_to_the_one_it_may_belong_with(browser, pages):
    browser.open(pages["many"], width=WIDE[0], height=WIDE[1])
    assert browser.run("document.querySelector('#figures dl').checkVisibility()") is False
    browser.mouse("mouseMoved", *browser.middle("#figures summary"))
    for selector in ("#figures summary", "#group-2 .opinion a"):
        browser.click(*browser.middle(selector))
    assert browser.run("document.querySelector('#figures dl').checkVisibility()") is True
    assert browser.run("location.hash") == "#group-1"


def test_the_copy_button_copies_or_selects_the_command(browser, pages):
    browser.open(pages["many"], width=WIDE[0], height=WIDE[1])
    browser.click(*browser.middle("#copy"))
    said = browser.run(
        """new Promise((resolve) => {
            const look = () => copied.textContent ? resolve(copied.textContent) : setTimeout(look, 20);
            look();
        })"""
    )
    if said != "Copied.":
        assert said.startswith("Selected")
        assert browser.run("getSelection().toString()") == "medi discover --known a --novel b --out c"
    assert browser.complaints("file:", "data:") == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("verdict", ["trustworthy", "doubtful", "no help"])
def test_all_text_stands_out_from_what_is_behind_it(browser, tmp_path, verdict, dark):
    path = tmp_path / "page.html"
    discovery, paths = made_up([4] * 28, known={"cat": 5}, alone=3, verdict=verdict), [f"{i}.jpg" for i in range(120)]
    text = render(discovery, paths, patterns, [Skipped("a", "b")], "medi", {"Seed": "0"})
    path.write_text(text, encoding="utf-8")
    browser.open(path.as_uri(), width=WIDE[0], height=WIDE[1], dark=dark)
    browser.run("for (const details of document.querySelectorAll('details')) details.open = true")
    ratios = browser.contrasts("script, style, title")
    assert len(ratios) > 400
    assert min(ratios)[0] >= 4.5, min(ratios)


def test_it_prints_dark_on_white_without_buttons(browser, pages, tmp_path):
    browser.open(pages["few"], width=WIDE[0], height=WIDE[1], dark=True)
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(19, 23, 27)"
    browser.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    browser.call(
        "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    ink = re.findall(r"\d+", browser.run("getComputedStyle(document.body).color"))
    assert max(map(int, ink)) < 80
    assert browser.run("document.getElementById('copy').offsetParent") is None
    assert browser.run("[...document.querySelectorAll('.picture img')].every((image) => image.offsetHeight > 0)")
