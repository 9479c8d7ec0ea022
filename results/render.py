"""Write every generated table, in the documents and under `results/`, from the committed results.

    make results          (or: python results/render.py)

`tests/test_results.py` fails where a committed table is not what this writes.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import crossing
import discovery_tables
import glance_tables
import missing
import paper_coverage
import part_tables
import pool_page
import presets
import tables
from tables import by_setting, markdown

from medi.bench.rows import read_rows
from medi.bench.tables import read_results, render

sys.path.append(str(Path(__file__).resolve().parents[1] / "experiments" / "theory"))
from theory_tables import markdown_tables

from medi.core.files import read_journal

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
CROSSING = ("few", "crossing", "abundant")
"""Folders with rows of one observation to all."""
NUMBERS = """## Set by set

Up to 20 known classes of up to 20 pictures and 5 or 20 novel ones of 1 to 10; percent, mean over 20 draws (digits: 10).
a / b: pools of novel classes alone, with `--only-novel` / pools with as many known pictures, and up to ten one-offs.
*Right*: lines of `clusters.csv`. *Calibration error*: of the confidence, in ten bins. *Number*: of groups; the stated
90 % interval *holds* it. Glyphs and digits are compared as pixels, the others by the default encoder.

"""
EARLIER = """## The engine before this one

Commit a0ff070, on the same draws."""
NONE_OF_THESE = """## None of these

Percent of further pictures of the novel classes that are recognised / called none, and of strangers found out, after a
discovery with `--only-novel`, by `--none-rate`. `none given` is the default, the ring in the picture; `mixed`: after a
discovery in a mixed pool."""

VERDICTS = """Six draws of each world: 4 to 8 novel classes of 3 to 10 items, up to 20 known classes of 12, the number
not given; one CPU thread. Verdicts are counts, the rest smallest to largest. `letters`: as pixels; `conv4`: as features
of a network trained on other letters; `shuffled`: known classes are random heaps; `other rule`: known classes are
colours, novel ones shapes; `far`: novel items are another kind of picture."""


def files() -> dict[Path, str]:
    """What every generated file should hold."""
    found = {}
    for path in sorted(RESULTS.glob("*/results.jsonl")):
        found[path.with_name("table.md")] = render(read_results(path), "md")
    for path in sorted(RESULTS.glob("*/choices.jsonl")):
        rows = [row for name in ("choices", "threes") for row in read_rows(path.with_name(f"{name}.jsonl"))]
        found[path.with_name("trials.md")] = tables.trials(rows)
    found |= {RESULTS / "presets.md": presets.page(), RESULTS / "choosing.md": choosing()}
    found[RESULTS / "missing.md"] = missing.page(rows_of_today())
    return found | studies() | {ROOT / name: with_tables(ROOT / name, marked) for name, marked in pages().items()}


def studies() -> dict[Path, str]:
    """The tables of what scripts measured, which are too long for a page."""
    pools = read_json("cluster/pool")
    of_pools, of_costs = script("pool"), script("complexity_page")
    costs_of_machines = [of_costs.section(read_json(f"complexity/{name}")) for name in ("h200", "cpu")]
    theory, of = markdown_tables(RESULTS / "theory"), discovery_tables
    cases, before, trade = (make(draws()).strip() for make in (of.cases, of.earlier, of.trade))
    numbers = NUMBERS + of.numbers(draws()).strip()
    contents = {
        "cluster": f"{of_pools.memory_table(pools).strip()}\n\n{of_pools.process_table(pools)}",
        "complexity": "".join(costs_of_machines),
        "discover": f"{numbers}\n\n## Every case\n\n{cases}\n\n{EARLIER}\n\n{before}\n\n{NONE_OF_THESE}\n\n{trade}",
        "diagnose": f"{VERDICTS}\n\n{script('diagnose').table(read_journal(RESULTS / 'diagnose' / 'cpu.jsonl'))}",
        "glance": glance_tables.cases_table(draws("glance")),
        "theory": "\n".join(f"## {name.capitalize()}\n\n{table}" for name, table in theory.items()),
    }
    written = {RESULTS / folder / "table.md": f"{content.strip()}\n" for folder, content in contents.items()}
    images = ROOT / "docs" / "images"
    pictures = {"none-rate": discovery_tables.curve(draws()), "crossing": crossing.picture(rows_of(*CROSSING))}
    return written | {images / f"{name}.svg": picture for name, picture in pictures.items()}


def pages() -> dict[str, dict[str, str]]:
    """The tables of every document, by the name between whose marks they stand."""
    episodes = rows_of("kmeans", "mp", "mm", "medi")
    return {
        "README.md": {"results": by_setting(episodes, tables.headline)},
        "results/tables.md": {
            "coverage": paper_coverage.coverage(rows_of("few", "abundant", "kmeans", "mm", "mm-parts", "mp", "medi")),
            "mp": by_setting(episodes, partial(tables.of_method, "mp")),
            "mm": by_setting(episodes, partial(tables.of_method, "mm")),
            "cata": part_tables.cata(episodes),
            "told": tables.on_equal_terms(rows_of("few", "kmeans")),
            "told-adds": part_tables.told(rows_of("few", "kmeans")),
            "told-rules": told_rules(),
            "crossing": crossing.table(rows_of(*CROSSING)),
            "abundant": tables.abundant(rows_of("abundant", "earlier")),
            "kmeans": tables.kmeans(rows_of("kmeans")),
            "parts": part_tables.parts(rows_of("mm-parts"), "mm"),
            "views": views(),
            "costs": costs(read_json("complexity/h200")),
            "speed": speed(),
        },
        "results/README.md": {"rounded": rounded()},
        "docs/glance.md": glance_tables.page_tables(draws("glance")),
        "docs/pools.md": pool_page.tables(rows_of("pools")),
        "docs/review.md": {"answers": answers(read_json("review/simulated"))},
        "docs/cluster.md": {"pools": script("pool").largest_pool(read_json("cluster/pool"))},
    }


def answers(facts: Mapping[str, Any]) -> str:
    """What answers and gestures are worth to a simulated person."""
    rows, pools = facts["answers"], facts["gestures"]
    counts = [f"{100 * fmean(row[count] for row in rows):.1f} after {count}" for count in rows[0] if count.isdigit()]
    shown, mean = fmean(row["shown"] for row in rows), {key: fmean(row[key] for row in pools) for key in pools[0]}
    return (
        f"Photos in the right group, percent, by answers: {', '.join(counts)} ({len(rows)} draws; of 30 questions "
        f"{shown:.0f} were expected to correct a fifth of a photo or more).\n"
        f"Photos labelled by a gesture: {mean['per_gesture']:.1f}, {100 * mean['right']:.0f} % of them rightly: "
        f"{mean['photos']:.0f} of {mean['pool']:.0f} in {mean['gestures']:.0f} gestures ({len(pools)} draws).\n"
    )


def told_rules() -> str:
    """What methods do with known sizes, on held-out known classes."""
    rows = read_journal(RESULTS / "told" / "cpu.jsonl")
    return str(script("common").markdown(script("told").told_table(rows)))


def views() -> str:
    """What views of `rules` know of the rule, by reading and weight of the orthogonality term."""
    common, folder = script("common"), RESULTS / "views"
    heading, *lines = script("orthogonality").term_table(read_journal(folder / "orthogonality.jsonl"))
    kinds = [row for row in read_journal(folder / "views.jsonl") if row["dataset"] == "rules"]
    divided = [row for row in kinds if row["kind"] == "specialised"]
    bits = common.mean_of([row["agreement"]["rule"]["bits"] for row in divided])
    cosine = f"{fmean(row['mean_cosine'] for row in divided):.4f}"
    return str(common.markdown([heading, *lines, ["mean, `specialised`", "1/3", cosine, bits, ""]]))


def choosing() -> str:
    """How settings rank on held-out known classes and on novel ones."""
    of_both = script("choosing")
    table = script("common").markdown(of_both.correlation_table(of_both.read_settings(RESULTS)))
    return f"{CHOOSING_NOTE}\n{table}"


CHOOSING_NOTE = """# ACC on held-out known classes and on novel ones

Settings that have rows of both kinds, honest, uniform tasks. ACC is the mean over the splits that all settings of a
line were tried on, and over seeds. ρ: Spearman's rank correlation with a bootstrap interval; p: share of all orders
that agree as well. *Chosen*: ACC on novel classes of the first setting on held-out ones; *best*: of the best.
"""

ROUNDED = ("179c9cce", "592fffb1", "65856df3", "6aef179a", "b96511bd")
"""Commits of GPU rows that come before 7600dd6: their ResNet-18 rounds features to bfloat16."""


def rounded() -> str:
    """How many rows of each folder have rounded features, of those by ResNet-18 on a GPU."""
    counts = []
    for path in sorted(RESULTS.glob("*/results.jsonl")):
        rows = [r for r in read_rows(path) if "resnet18" in (r["network"] or "") and r["device"].startswith("NVIDIA")]
        if rows:
            old = sum(row["commit"].startswith(ROUNDED) for row in rows)
            counts.append(f"{path.parent.name} {old} of {len(rows)}")
    return ", ".join(counts)


def costs(facts: Mapping[str, Any]) -> str:
    """Operations and time of a training step and of a discovery by every method, stage by stage."""
    digits = script("complexity_page").digits
    table = []
    for row in facts["methods"]:
        if row["method"] in ("K-means", "MCL"):  # K-means by its preset `features`; MCL as KCL
            continue
        cells = {"method": row["method"]}
        step, discovery = row["training"], [row["discovery"]] * bool(row["discovery"])
        for title, parts, figure, scale in (
            ("step, GFLOPs", step, "flops", 1e-9),
            ("step, ms", step, "seconds", 1e3),
            ("discovery, ms", discovery, "seconds", 1e3),
        ):
            cells[title] = " + ".join(digits(scale * part[figure]) for part in parts)
        table.append(cells)
    return markdown(table)


def speed() -> str:
    """Our ways beside plain ones, measured in the same run."""
    ratios: dict[str, dict[str, float]] = {}
    for where, name, tasks in (("H200", "h200", 16), ("2 CPU cores", "cpu", 1)):
        found, maml = read_json(f"speed/{name}"), read_json(f"speed/maml-{name}")
        ways = [way["ratio to float32 loop"] for way in maml["ways"] if "bfloat16" not in way["way"]]
        ratios[where] = {
            "MP training, 16 tasks a step (CPU: one)": found[f"training, {tasks} tasks a step: ratio to plain"],
            "scoring 600 episodes, 5-way": found["scoring 5-way, honest: ratio to scikit-learn"],
            "scoring 600 episodes, 20-way": found["scoring 20-way, honest: ratio to scikit-learn"],
            "MM, a second-order step": max(ways),
        }
    for stage in read_json("speed/steps-h200")["stages"]:
        ratios["H200"][f"RS, the stage `{stage['stage']}`"] = stage["ratio"]
    return markdown(
        [
            {"": what} | {where: f"{some[what]:.3g}" if what in some else "" for where, some in ratios.items()}
            for what in ratios["H200"]
        ]
    )


def rows_of(*folders: str) -> list[dict[str, Any]]:
    """The rows of some folders; of a run in several the last folder's counts."""
    return [row for folder in folders for row in read_rows(RESULTS / folder / "results.jsonl")]


def rows_of_today() -> list[dict[str, Any]]:
    """All rows but those of code or settings of before."""
    return rows_of(
        *sorted(path.parent.name for path in RESULTS.glob("*/results.jsonl") if path.parent.name != "earlier")
    )


def script(name: str) -> ModuleType:
    """A script of `experiments` or `benchmarks`: it makes the tables of what it measured."""
    folders = [str(ROOT / name) for name in ("benchmarks", "experiments", "experiments/theory")]
    sys.path += [folder for folder in folders if folder not in sys.path]  # scripts import one another by name
    return importlib.import_module(name)


def draws(of: str = "discover") -> list[dict[str, Any]]:
    """What `benchmarks/discover.py` measured, or another script that draws."""
    return read_journal(RESULTS / of / "draws.jsonl")


def read_json(name: str) -> dict[str, Any]:
    """A measurement by its name under `results/`."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def with_tables(page: Path, marked: Mapping[str, str]) -> str:
    """The page with every table between its marks."""
    text = page.read_text()
    for name, table in marked.items():
        marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        text, found = marks.subn(lambda marks, table=table: f"{marks[1]}{table.strip()}\n{marks[2]}", text)
        if found != 1:
            raise ValueError(f"{page} has {found} places for the table {name}, not one")
    return text


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
