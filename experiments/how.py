"""The three pictures of docs/how.md.

    python experiments/how.py [--out docs/images]

What a known class teaches (points made up here), how the posterior weighs groupings (drawn letters), and what a
rehearsal is, with how far stated confidence holds (results/glance/draws.jsonl). It takes some seconds on a CPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from common import Parser, run
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from medi.core.files import make_folder, read_journal
from medi.core.progress import Silent
from medi.core.workplace import Workplace
from medi.data.items import Items
from medi.demo import write_letters
from medi.discover.config import DiscoveryConfig
from medi.discover.pipeline import discover_groups
from medi.grouping.engine import ALONE, known_label
from medi.grouping.whitening import whitening

ROOT = Path(__file__).resolve().parents[1]
COLOURS = ("#3b6fb6", "#c2552d", "#4f8f4f", "#8a5aa8", "#b08a2e", "#5aa0a0")
GREY, INK = "#8a939c", "#1c2733"
NOVEL, SIZES, KNOWN, ONE_OFF = (4, 7, 5), (3, 2, 2), 10, 0
"""The small pool: novel letters and how many drawings of each, a known letter, a one-off."""
SIDE, DRAWS, SHOWN = 32, 4000, 4


class Letters(NamedTuple):
    """The demo's letters: known ones, and drawings of the pool by label."""

    known: Items
    pool: dict[int, list[np.ndarray]]


def letters() -> Letters:
    """Written to a folder as the demo does, and read again."""
    with TemporaryDirectory() as name:
        truth = write_letters(Path(name))
        folders = sorted((Path(name) / "known").iterdir())
        known = [(_read(file), place) for place, folder in enumerate(folders) for file in sorted(folder.iterdir())]
        pool: dict[int, list[np.ndarray]] = {}
        for file, label in truth.items():
            pool.setdefault(label, []).append(_read(Path(name) / "novel" / file))
    images, labels = zip(*known, strict=True)
    return Letters(Items(np.stack(images), np.array(labels), tuple(folder.name for folder in folders)), pool)


def _read(file: Path) -> np.ndarray:
    return np.asarray(Image.open(file).convert("L").resize((SIDE, SIDE)), np.uint8)[None]


def teaching() -> Figure:
    """Known classes show which differences do not matter: before and after whitening."""
    generator = np.random.default_rng(3)
    scatter = np.array([[1.5, 0.0], [1.35, 0.22]])
    places = np.array([[-2.4, 1.4], [-0.7, 1.5], [0.8, -1.5], [2.4, -1.2]])
    known = np.concatenate([place + generator.normal(size=(14, 2)) @ scatter.T for place in places])
    labels = np.repeat(np.arange(len(places)), 14)
    novel = np.array([[-0.5, 0.4], [0.1, -0.1], [0.7, -0.6]])
    pool = np.concatenate([place + generator.normal(size=(5, 2)) @ scatter.T for place in novel])
    matrix = whitening(known, labels, shrinkage=0.0)
    figure = Figure((9, 3.9), layout="constrained")
    for axes, made, title in zip(
        figure.subplots(1, 2),
        (np.eye(2), matrix),
        ("As measured: new points lie in one long heap", "Known classes made round: three groups show"),
        strict=True,
    ):
        for c in range(len(places)):
            axes.plot(*(known[labels == c] @ made).T, "o", color=COLOURS[c], alpha=0.35, markersize=5)
        for group, mark in enumerate("s^D"):
            shown = "o" if axes is figure.axes[0] else mark
            axes.plot(*(pool[5 * group : 5 * group + 5] @ made).T, shown, color=INK, markersize=6)
        axes.set_title(title, fontsize=11)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_aspect("equal", "datalim")
    return figure


def weighing(of: Letters) -> Figure:
    """The likeliest groupings of a small pool, with how likely each is."""
    images = [image for letter, size in zip(NOVEL, SIZES, strict=True) for image in of.pool[letter][:size]]
    images += [of.pool[ALONE][ONE_OFF], of.pool[known_label(KNOWN)][0]]
    work = Workplace("cpu", 0, reporter=Silent())
    outcome = discover_groups(of.known, np.stack(images), DiscoveryConfig(only_novel=False), work)
    drawn = outcome.pool.grouping.sample(DRAWS)[:, outcome.pool.place]
    likeliest = Counter(_by_first(row) for row in drawn.tolist()).most_common(SHOWN)
    figure = Figure((9, 4.4), layout="constrained")
    for row, (labels, count) in zip(figure.subplots(SHOWN, len(images) + 1), likeliest, strict=True):
        row[0].axis("off")
        row[0].text(0.5, 0.5, f"{100 * count / DRAWS:.0f} %", fontsize=16, ha="center", va="center")
        for axes, image, label in zip(row[1:], images, labels, strict=True):
            _tile(axes, image, label, of.known.class_names)
    return figure


def _by_first(labels: Sequence[int]) -> tuple[int, ...]:
    """The same grouping with groups numbered in the order in which they come."""
    numbers: dict[int, int] = {}
    return tuple(label if label < 0 else numbers.setdefault(label, len(numbers)) for label in labels)


def _tile(axes: Axes, image: np.ndarray, label: int, names: Sequence[str]) -> None:
    axes.imshow(image[0], cmap="gray", vmin=0, vmax=255)
    axes.set_xticks([])
    axes.set_yticks([])
    colour = COLOURS[label] if label >= 0 else GREY
    said = f"group {label}" if label >= 0 else "alone"
    if label < ALONE:
        said = f"known: {names[known_label(label)].split()[-1].upper()}"
    axes.set_xlabel(said, fontsize=9, color=colour if label >= 0 else INK, labelpad=2)
    for side in axes.spines.values():
        side.set(color=colour, linewidth=4 if label >= 0 else 1, linestyle="-" if label != ALONE else ":")


def rehearsing(of: Letters, rows: Sequence[dict[str, Any]]) -> Figure:
    """Three rehearsals, and stated confidence beside the share of photos that were right afterwards."""
    figure = Figure((9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(5, 3))
    generator = np.random.default_rng(0)
    classes = len(of.known.class_names)
    sheet = np.full((3 * 46, classes // 2 * 38), 255, np.uint8)
    for number in range(3):
        hidden = generator.permutation(classes // 2)[: classes // 6]
        for c in range(classes // 2):
            image = of.known.values[np.flatnonzero(of.known.labels == c)[number]][0]
            top, start = 46 * number + 7, 38 * c + 3
            sheet[top : top + SIDE, start : start + SIDE] = image
            if c in hidden:
                left.add_patch(_frame(start - 2, top - 2))
    left.imshow(sheet, cmap="gray", vmin=0, vmax=255)
    left.set_yticks([46 * n + 23 for n in range(3)], [f"rehearsal {n + 1}" for n in range(3)])
    left.set_xticks([])
    left.set_title("Framed: known classes that play novel", fontsize=11)
    for side in left.spines.values():
        side.set_visible(False)
    left.tick_params(length=0)
    stated, true = confidence(rows)
    right.plot([0, 100], [0, 100], color=GREY, linewidth=1)
    right.plot(stated, true, "o-", color=COLOURS[0])
    right.set(xlim=(0, 100), ylim=(0, 100), aspect="equal")
    right.set_xlabel("stated confidence, percent")
    right.set_ylabel("photos that are right, percent")
    right.set_title("Afterwards, on new pools", fontsize=11)
    return figure


def _frame(x: float, y: float) -> Rectangle:
    return Rectangle((x, y), SIDE + 3, SIDE + 3, fill=False, edgecolor=COLOURS[1], linewidth=2.5)


def confidence(rows: Sequence[dict[str, Any]], fewest: int = 100) -> tuple[list[float], list[float]]:
    """Mean confidence and share of right lines, percent, in bins of mixed pools that hold enough lines."""
    bins = [row["approaches"]["medi"]["bins"] for row in rows if row["pool"] == "mixed"]
    lines, stated, right = (np.sum([one[name] for one in bins], 0) for name in ("lines", "confidence", "right"))
    enough = lines >= fewest
    return (100 * stated[enough] / lines[enough]).tolist(), (100 * right[enough] / lines[enough]).tolist()


def main(parser: Parser) -> None:
    """Draw all three."""
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    out = make_folder(parser.parse_args().out)
    drawn, rows = letters(), read_journal(ROOT / "results" / "glance" / "draws.jsonl")
    for name, figure in {
        "how-known": teaching(),
        "how-groupings": weighing(drawn),
        "how-rehearsal": rehearsing(drawn, rows),
    }.items():
        save(figure, out / f"{name}.png")


def save(figure: Figure, file: Path) -> None:
    """As a small file."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=100)
    Image.open(drawn).convert("RGB").quantize(64).save(file, optimize=True)


if __name__ == "__main__":
    run(main, __doc__)
