"""The site: what is staged, what its reference holds, and what its link checker finds."""

import check_pages
import cli_pages
import pytest
import staging
import typer
from api_pages import PAGES, pages

from medi.cli.main import app
from medi.registry import METHOD_NAMES


def test_what_pages_link_to_is_staged_and_links_follow_and_a_missing_file_is_named(tmp_path, monkeypatch):
    files = {
        "README.md": "[a](docs/deep/a.md) [t](results/t.md#rows) [p](code.py)\n\n```text\n[x](gone.md)\n```\n",
        "docs/deep/a.md": "[home](../../README.md) [out](https://example.org/) ![i](../i.png)\n",
        "docs/i.png": "",
        "results/t.md": "# Rows\n\n[back](../docs/deep/a.md)\n",
        "results/unlinked.md": "",
        "code.py": "print(1)\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(staging, "ROOT", tmp_path)
    monkeypatch.setattr(staging, "DOCS", tmp_path / "docs")
    into = tmp_path / "staged"
    staging.stage(into)
    staged = {str(path.relative_to(into)) for path in into.rglob("*") if path.is_file()}
    assert staged == {"index.md", "deep/a.md", "i.png", "results/t.md", "code.md"}
    index = (into / "index.md").read_text()
    assert "[a](deep/a.md) [t](results/t.md#rows) [p](code.md)" in index
    assert "[x](gone.md)" in index, "code is left alone"
    assert "[back](../deep/a.md)" in (into / "results/t.md").read_text()
    assert "print(1)" in (into / "code.md").read_text()
    (tmp_path / "docs/deep/a.md").write_text("[gone](../../results/gone.json)")
    with pytest.raises(staging.MissingFile, match=r"docs/deep/a\.md: no file \.\./\.\./results/gone\.json"):
        staging.stage(into)


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ('<a href="gone.html">', "no such file"),
        ('<a href="other.html#gone">', "no such anchor"),
        ('<a href="../outside.html">', "no such file"),
        ('<a href="https:/typing.mistake">', "not an address"),
        ('<link rel="stylesheet" href="//fonts.example.org/x.css">', "need the network"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path, html, reason):
    (tmp_path / "index.html").write_text(html)
    (tmp_path / "other.html").write_text('<h1 id="there">')
    check_pages._read.cache_clear()
    (line,) = check_pages.faults(tmp_path)
    assert line.startswith("index.html: ")
    assert reason in line


def test_links_that_lead_somewhere_are_left_alone(tmp_path):
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "index.html").write_text('<h1 id="hé"><a href="/index.html#h"></a><a href="../x.csv"></a>')
    (tmp_path / "x.csv").write_text("")
    (tmp_path / "index.html").write_text(
        '<h1 id="h"><a href="a%20b/#h%C3%A9"><a href="https://example.org/x"><a href="mailto:a@example.org">'
    )
    check_pages._read.cache_clear()
    assert check_pages.faults(tmp_path) == []


def test_the_reference_has_every_command_and_option():
    def leaves(command, path):
        for name, child in getattr(command, "commands", {}).items():
            yield (*path, name), child
            yield from leaves(child, (*path, name))

    page = cli_pages.page()
    commands = dict(leaves(typer.main.get_command(app), ("medi",)))
    assert ("medi", "bench", "run") in commands
    for path, command in commands.items():
        section = page.split(f"# {' '.join(path)}\n", 1)[1].partition("\n## ")[0].partition("\n### ")[0]
        for option in command.params:
            names = [name for name in option.opts if name.startswith("-")]
            assert all(f"`{name}" in section for name in names), f"{path}: {names}"
    assert "`--seed N` (default: 0;" in page


def test_the_reference_has_every_method_and_all_that_is_documented():
    made = pages()
    assert made.keys() == PAGES.keys()
    assert all(f"`{name}`\n:   [" in made["methods"] for name in METHOD_NAMES)
    assert "### MetaDiscovery.predict_proba" in made["estimator"]
    assert "`none_rate`\n:   " in made["estimator"]
    assert "**Returns:** Scores by regime." in made["scores"]
