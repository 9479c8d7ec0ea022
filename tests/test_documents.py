"""What README.md, CONTRIBUTING.md and docs/ show works as it is written there."""

import sys
from contextlib import contextmanager
from itertools import takewhile

import pytest
import typer
import uvicorn
from documents import PAGES, ROOT, blocks, run_page, words_of
from people import PALETTES, tinted

import medi.cli.main
from medi.review import server, session

RUN = [page for page in PAGES if any(block.kind in ("console", "python") and not block.why for block in blocks(page))]
IN_FULL = {"README.md", "docs/tutorials/photos.md", "docs/tutorials/vectors.md", "docs/tutorials/table.md"}
"""Pages that show what is printed; on the others, commands do little of what they do otherwise."""
SLOW = {
    "README.md",
    "docs/pools.md",
    "docs/tutorials/photos.md",
    "docs/tutorials/method.md",
    "docs/tutorials/table.md",
}
# What a person names on the page of `medi review`, where it is not the first group.
NAMED = {
    "README.md": {2: "psi"},
    "docs/tutorials/photos.md": {1: "delta", 2: "psi", 5: "feh"},
}


def name_of(page):
    return str(page.relative_to(ROOT))


def all_blocks():
    return [block for page in PAGES for block in blocks(page)]


def test_every_block_is_run_or_says_why_not():
    for block in all_blocks():
        assert block.kind in ("console", "python", "text", "json", ""), f"{block}: run `{block.kind}`, or call it text"
        if block.kind in ("", "text"):
            assert not any(line.startswith("$ ") for line in block.text.splitlines()), f"{block}: call it console"
        if block.kind == "console":
            assert block.text.startswith("$ "), f"{block}: a command begins with $"
        assert block.why is None or len(block.why.split()) > 2, f"{block}: why is it not run?"
    assert sum(block.kind in ("console", "python") and block.why is None for block in all_blocks()) > 10


def parsed(words):
    """Down to the command that would run: every name and option must be there."""
    command, context = typer.main.get_command(medi.cli.main.app), None
    name, rest = "medi", list(words)
    while hasattr(command, "commands"):
        context = typer.Context(command, info_name=name, parent=context)
        name = next(word for word in rest if not word.startswith("-"))
        rest.remove(name)
        command = command.commands[name]
    return command.make_context(name, rest, parent=context)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_that_is_shown_exists_with_all_its_options(page):
    for block in blocks(page):
        for command, _ in block.steps() if block.kind == "console" else ():
            words = list(takewhile(lambda word: word not in ("|", ">"), words_of(command)))
            start = next((i for i, word in enumerate(words) if word == "medi"), None)
            if start is None or words[0] in ("pip", "pipx", "uv"):
                continue
            if words[start + 1] in ("--version", "--help", "demo") or "--help" in words:
                continue
            try:
                parsed(words[start + 1 :])
            except Exception as error:
                pytest.fail(f"{block}: {command}: {error}")


@pytest.fixture
def program(capsys, monkeypatch):
    """The program in this process."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["medi", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            medi.cli.main.run()
        printed = capsys.readouterr()
        assert stop.value.code == 0, f"medi {' '.join(words)}: {printed.err}"
        return printed.out + printed.err

    return run


@pytest.fixture
def hurried(program, hurry):
    """The program, with short work."""

    def run(*words):
        few = ("--episodes", "5", "--seeds", "1") if words[:2] == ("bench", "run") else ()
        return program(*words, *few)  # the last of an option counts

    def begin():
        hurry()
        return run

    return begin


@pytest.fixture
def person(monkeypatch):
    """In place of the page that `medi review` serves: somebody names groups, and stops it."""
    names, reviews = {0: "named in review"}, []

    @contextmanager
    def opened(*given, **more):
        with session.opened(*given, **more) as review:
            reviews.append(review)
            yield review

    def run(self, sockets=None):
        for group, name in names.items():
            reviews[-1].act({"seq": reviews[-1].history.seq, "action": "name", "group": group, "name": name})

    monkeypatch.setattr(server, "opened", opened)
    monkeypatch.setattr(server.webbrowser, "open", lambda address: None)
    monkeypatch.setattr(uvicorn.Server, "run", run)
    return names


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """What pages take for granted: photos of known classes, of a pool, and new ones."""
    for number, name in enumerate(("reds", "greens")):
        for i in range(3):
            tinted(tmp_path / "photos" / "known" / name / f"{i}.png", PALETTES[name], 10 * number + i)
    for number, name in enumerate(("blues", "greys")):
        for i in range(4):
            tinted(tmp_path / "photos" / "novel" / f"{name} {i}.png", PALETTES[name], 100 + 10 * number + i)
            tinted(tmp_path / "photos" / "new" / f"{name} {i}.png", PALETTES[name], 200 + 10 * number + i)
    for name in ("known", "novel", "new"):
        (tmp_path / name).symlink_to(tmp_path / "photos" / name)
    (tmp_path / "results").symlink_to(ROOT / "results")
    monkeypatch.setenv("MEDI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_is_no_slow_page_that_is_not_run():
    assert {name_of(page) for page in RUN} >= SLOW | IN_FULL | NAMED.keys()


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if name_of(page) in SLOW else ()) for page in RUN],
    ids=name_of,
)
def test_what_a_page_shows_can_be_done(page, folder, program, hurried, person):
    if name_of(page) in NAMED:
        person.clear()
        person.update(NAMED[name_of(page)])
        (folder / "known").unlink()  # the pages make folders of their own
        (folder / "new").unlink()
    run_page(page, program if name_of(page) in IN_FULL else hurried())
