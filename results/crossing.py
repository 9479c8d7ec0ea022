"""How ACC grows with the number of observations: the table and the picture of docs/results.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import log10
from statistics import fmean

from tables import Cells, Rows, chance, find_line, markdown, papers, spread

from medi.bench.figures import colour_of
from medi.bench.grid import ALL
from medi.bench.tables import Line, summarise
from medi.data.facts import BENCHMARKS
from medi.registry import title_of

COUNTS: tuple[int | str, ...] = (1, 5, 20, 100, ALL)
METHODS = ("uno", "simgcd", "mp", "mm")
PANELS = {"svhn": 3000, "cifar10": 5000}
"""Datasets, and how many training images of a novel class there are; of SVHN on average."""
TOP, BOTTOM, LEFT, WIDTH, GAP, HEIGHT = 36, 296, 52, 250, 130, 366
LETTERS = 13
FOOT = "One seed. Honest, pooled, nothing told; MP and MM with CATA. Dashed: nothing was run between the two."


def table(rows: Rows) -> str:
    """A row a method, a column a number of observations, and what the paper has for all of them."""
    lines, cells = summarise(rows), list[Cells]()
    for dataset in PANELS:
        found = {name: _lines(lines, dataset, name) for name in METHODS}
        cells += [
            {"set": BENCHMARKS[dataset].title, "chance": chance(*of_name.values()), "method": title_of(name)}
            | {str(count): spread(of_name.get(count)) for count in COUNTS}
            | {"all, paper": papers(of_name.get(ALL))}
            for name, of_name in found.items()
        ]
    return markdown(cells)


def picture(rows: Rows) -> str:
    """ACC over the number of observations: a panel a dataset, a line a method."""
    lines = summarise(rows)
    panels = [
        _panel(LEFT + number * (WIDTH + GAP), dataset, {name: _lines(lines, dataset, name) for name in METHODS})
        for number, dataset in enumerate(PANELS)
    ]
    width = LEFT + len(PANELS) * (WIDTH + GAP) - 40
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" font-family="sans-serif" '
        f'font-size="{LETTERS}"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="{LEFT - 40}" y="{TOP - 18}">ACC, %</text>{"".join(panels)}'
        f'<text x="{LEFT - 40}" y="{HEIGHT - 6}" font-size="{LETTERS - 1}">{FOOT}</text></svg>\n'
    )


def _lines(lines: Sequence[Line], dataset: str, method: str) -> dict[int | str, Line]:
    of = {count: find_line(lines, dataset, count, None, method, score="pooled", sampler="cata", balance=False)
          for count in COUNTS}  # fmt: skip
    return {count: line for count, line in of.items() if line}


def _panel(left: int, dataset: str, methods: Mapping[str, Mapping[int | str, Line]]) -> str:
    most = PANELS[dataset]

    def at(count: int | str, acc: float) -> tuple[float, float]:
        share = log10(most if count == ALL else int(count)) / log10(most)
        return left + WIDTH * share, BOTTOM - (BOTTOM - TOP) * acc

    title = BENCHMARKS[dataset].title
    parts = [
        f'<text x="{left + WIDTH / 2}" y="{TOP - 18}" text-anchor="middle" font-weight="bold">{title}</text>',
        f'<path d="M{left} {TOP}V{BOTTOM}H{left + WIDTH}" fill="none" stroke="#333"/>',
        f'<text x="{left + WIDTH / 2}" y="{BOTTOM + 38}" text-anchor="middle">observations of each novel class</text>',
    ]
    for tick in range(0, 101, 20):
        y = at(1, tick / 100)[1]
        parts.append(f'<text x="{left - 8}" y="{y + 4:.0f}" text-anchor="end">{tick}</text>')
        parts.append(f'<path d="M{left} {y:.0f}H{left + WIDTH}" stroke="#eee"/>' if tick else "")
    for count in [count for count in COUNTS if any(count in found for found in methods.values())]:
        x = at(count, 0)[0]
        name = f"all ({most:,})" if count == ALL else str(count)
        parts.append(f'<path d="M{x:.1f} {BOTTOM}v5" stroke="#333"/>')
        parts.append(f'<text x="{x:.1f}" y="{BOTTOM + 19}" text-anchor="middle">{name}</text>')
    floor = next(iter(methods["mp"].values())).chance
    y = at(1, floor)[1]
    parts.append(f'<path d="M{left} {y:.1f}H{left + WIDTH}" stroke="#333" stroke-dasharray="2 3"/>')
    ends = [("chance", "#333333", y)]
    for name, found in methods.items():
        points = {count: at(count, fmean(line.acc)) for count, line in found.items()}
        for (before, start), (after, end) in pairwise(points.items()):
            dashes = ' stroke-dasharray="7 4"' if COUNTS.index(after) > COUNTS.index(before) + 1 else ""
            path = "M{:.1f} {:.1f}L{:.1f} {:.1f}".format(*start, *end)
            parts.append(f'<path d="{path}" stroke="{colour_of(name)}" stroke-width="2.5"{dashes}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour_of(name)}"/>' for x, y in points.values()]
        ends.append((title_of(name), colour_of(name), points[ALL][1]))
    for (name, colour, _), y in zip(ends, _apart([y for *_, y in ends]), strict=True):
        parts.append(f'<text x="{left + WIDTH + 10}" y="{y + 4:.1f}" fill="{colour}">{name}</text>')
    return "".join(parts)


def _apart(heights: Sequence[float]) -> Iterable[float]:
    """Heights of labels that do not overlap, each as near its own as those above it let it be."""
    placed, last = dict[int, float](), float("-inf")
    for number in sorted(range(len(heights)), key=heights.__getitem__):
        last = placed[number] = max(heights[number], last + LETTERS + 2)
    return [placed[number] for number in range(len(heights))]
