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
        "README.md": "[a](docs/deep/a.md) [t](results/t.md#rows)\n\n```text\n[x](gone.md)\n```\n",
        "docs/deep/a.md": "[home](../../README.md) [out](https://example.org/)\n",
        "results/t.md": "[back](../docs/deep/a.md)\n",
        "results/unlinked.md": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(staging, "ROOT", tmp_path)
    monkeypatch.setattr(staging, "DOCS", tmp_path / "docs")
    into = tmp_path / "staged"
    staging.stage(into)
    staged = {str(path.relative_to(into)) for path in into.rglob("*") if path.is_file()}
    assert staged == {"index.md", "deep/a.md", "results/t.md"}
    index = (into / "index.md").read_text()
    assert "[a](deep/a.md) [t](results/t.md#rows)" in index
    assert "[x](gone.md)" in index, "code is left alone"
    (tmp_path / "docs/deep/a.md").write_text("[gone](../../results/gone.json)")
    with pytest.raises(staging.MissingFile, match=r"docs/deep/a\.md: no file \.\./\.\./results/gone\.json"):
        staging.stage(into)


def test_links_that_lead_nowhere_are_found_and_others_left_alone(tmp_path):
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "index.html").write_text('<h1 id="hé"><a href="/index.html#h"></a>')
    good = ["a%20b/#h%C3%A9", "https://example.org/x", "mailto:a@example.org"]
    bad = [
        "gone.html",
        "a%20b/index.html#gone",
        "../outside.html",
        "https:/typing.mistake",
        "//fonts.example.org/x.css",
    ]
    links = "".join(f'<a href="{link}">' for link in good + bad)
    (tmp_path / "index.html").write_text(f'<h1 id="h">{links}')
    assert len(check_pages.faults(tmp_path)) == len(bad)


def test_the_reference_has_every_command_with_its_options():
    page = cli_pages.page()
    section = page.split("# medi bench run\n", 1)[1].partition("\n## ")[0].partition("\n### ")[0]
    assert "`--seeds" in section
    assert "`--seed N` (default: 0;" in page
    assert all(f"# medi {name}\n" in page for name in typer.main.get_command(app).commands)


def test_the_reference_has_every_method_and_all_that_is_documented():
    made = pages()
    assert made.keys() == PAGES.keys()
    assert all(f"`{name}`\n:   [" in made["methods"] for name in METHOD_NAMES)
    assert "### MetaDiscovery.predict_proba" in made["estimator"]
    assert "`none_rate`\n:   " in made["estimator"]
    assert "**Returns:** Scores by regime." in made["scores"]
