"""The figure of a comparison: bars of ACC for every method on each dataset, from `results.jsonl`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from statistics import fmean, stdev
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from medi.bench.grid import ALL, Run
from medi.bench.tables import DIVERGED, Line, summarise
from medi.core.errors import InputError, refuse_unknown
from medi.core.files import make_folder, write_atomically
from medi.data.facts import BENCHMARKS
from medi.registry import COMPARED_METHODS, METHOD_NAMES, title_of

BAR_COLOURS = (
    "#9a9a9a", "#88ccee", "#6699cc", "#44aa99", "#117733", "#ddaa33", "#bb5566", "#aa88bb", "#774488", "#555555",
)  # fmt: skip
"""Of the methods, in the order of the registry."""
REGIME = "honest"

BarKey = tuple[str, str, str | None, str]
"""Method, config, sampler and a mark of what it takes for granted about sizes: one bar."""
Panel = tuple[str, int | str]
"""Dataset and number of observations."""


def draw_comparison(
    rows: Sequence[dict[str, Any]],
    score: str,
    sampler: str | None = None,
    balance: bool | None = None,
    sizes: str = "equal",
) -> Figure:
    """Bars of the honest ACC: a column a dataset, a row a number of observations.

    Args:
        rows: Of results; those of pools, whose ACC means something else, are not drawn.
        score: The scoring set, of `medi.bench.grid.SCORES`.
        sampler: The one that is drawn of a method that takes any; None for a bar each.
        balance: Only methods that were told that classes are equally large, or only those that were not; None for all.
        sizes: Of the classes, of `medi.bench.grid.SIZES`.
    """
    asked, rows = len(rows), [row for row in rows if not Run.of_row(row).by_engine]
    if asked and not rows:
        raise InputError("these results are of pools, which have no figure: show them with `medi bench table`.")
    pools = ["pools, which medi bench table shows"] if len(rows) < asked else []
    if sampler is not None:
        refuse_unknown("sampler in these results", sampler, sorted({row["sampler"] for row in rows} - {None}))
        rows = [row for row in rows if row["sampler"] in (None, sampler)]
    wanted = [
        line
        for line in summarise(rows)
        if (line.run.regime, line.run.score, line.run.sizes) == (REGIME, score, sizes)
        and balance in (None, line.run.balance)
    ]
    drawn, other_ways = _of_one_way(wanted)
    lines = {(_panel(line), _key(line)): line for line in drawn}
    if not any(line.acc for line in drawn):
        told = "" if balance is None else f" --balance {'on' if balance else 'off'}"
        options = f"--score {score} --sizes {sizes}{told}"
        raise InputError(f"no {REGIME} result with {options}: run `medi bench run {options}`, or draw another.")
    named = {panel[0] for panel, _ in lines}
    datasets = [name for name in BENCHMARKS if name in named] + sorted(named - set(BENCHMARKS))
    counts = sorted({panel[1] for panel, _ in lines}, key=lambda count: (count == ALL, count))
    kinds = sorted({kind for _, kind in lines}, key=_order)
    # Four datasets and nine methods are ten inches, so that the smallest letters can be read on a page of 900 pixels.
    width = max(6.5, 0.6 + len(datasets) * (0.3 + 0.24 * len(kinds)))
    figure = Figure(figsize=(width, 1.0 + 2.5 * len(counts)), layout="constrained")
    panels = figure.subplots(len(counts), len(datasets), squeeze=False, sharey=True)
    for row, count in zip(panels, counts, strict=True):
        for axes, dataset in zip(row, datasets, strict=True):
            _draw_panel(axes, {kind: lines.get(((dataset, count), kind)) for kind in kinds})
            title = BENCHMARKS[dataset].title if dataset in BENCHMARKS else Path(dataset).name
            axes.set_title(f"{title}, {_observations(count)}", fontsize=10)
        row[0].set_ylabel("ACC, %")
    caption = _caption([line for line in drawn if line.acc], score)
    caption = " ".join([caption, *(f"Not drawn: {one}." for one in other_ways + pools)])
    figure.supxlabel(fill(caption, int(15 * width)), fontsize=8)
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, PDF or SVG, whole or not at all."""
    form = path.suffix.lower().lstrip(".")
    if form not in ("png", "pdf", "svg"):
        raise InputError(f"{path} is no name of a picture: let it end in .png, .pdf or .svg.")
    content = BytesIO()
    figure.savefig(content, format=form, dpi=160)
    make_folder(path.parent)
    write_atomically(path, content.getvalue())


def colour_of(method: str) -> str:
    """The colour of a method's bars; the last one for those that are not in the registry."""
    place = METHOD_NAMES.index(method) if method in METHOD_NAMES else -1
    return BAR_COLOURS[min(place, len(BAR_COLOURS) - 1)]


def _draw_panel(axes: Axes, bars: dict[BarKey, Line | None]) -> None:
    there = [line for line in bars.values() if line is not None]
    for place, (kind, line) in enumerate(bars.items()):
        if line is not None and line.acc:
            _draw_bar(axes, place, colour_of(kind[0]), line)
        elif there:
            why = DIVERGED if line else "not run"
            axes.text(place, 2, why, rotation=90, ha="center", va="bottom", color="#777777", fontsize=8)
    if there:
        axes.axhline(100 * there[0].chance, color="black", lw=1, ls=":")  # every method answers the same questions
    else:
        axes.text(0.5, 0.5, "not run", transform=axes.transAxes, ha="center", color="#777777", fontsize=9)
    labels = [_label(kind, _common_config(bars)) for kind in bars]
    axes.set_xticks(range(len(bars)), labels, rotation=45, ha="right", fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    axes.tick_params(axis="x", length=2, pad=1)
    axes.set_ylim(0, 104)
    axes.set_xlim(-0.6, len(bars) - 0.4)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_bar(axes: Axes, place: int, colour: str, line: Line) -> None:
    height = 100 * fmean(line.acc)
    error = {"lw": 1, "ecolor": "#444444"}
    axes.bar(place, height, width=0.75, color=colour, yerr=_spread(line), capsize=2, error_kw=error)
    if line.oracle is not None:
        axes.plot([place - 0.42, place + 0.42], [100 * line.oracle] * 2, color="black", lw=1.8)
    # At the foot of the bar: above it, a number may stand beside an oracle that it is not.
    dark = height > 8 and sum(to_rgb(colour)) < 1.5
    axes.text(place, 2, f"{height:.0f}", ha="center", va="bottom", fontsize=8, color="white" if dark else "black")


def _panel(line: Line) -> Panel:
    return line.run.dataset, line.run.observations


def _of_one_way(lines: Sequence[Line]) -> tuple[list[Line], list[str]]:
    """The lines that can share panels, and what is left out: bars side by side must have been asked the same.

    Of several numbers of classes in a panel, the dataset's own is drawn, or else the smallest.
    """
    ways: dict[Panel, set[int]] = {}
    for line in lines:
        ways.setdefault(_panel(line), set()).add(line.run.way)
    own = {panel: BENCHMARKS[panel[0]].way if panel[0] in BENCHMARKS else None for panel in ways}
    chosen = {panel: own[panel] if own[panel] in found else min(found) for panel, found in ways.items()}
    drawn = [line for line in lines if line.run.way == chosen[_panel(line)]]
    others = {f"{line.run.dataset} {line.run.way}-way": None for line in lines if line.run.way != chosen[_panel(line)]}
    return drawn, list(others)


def _key(line: Line) -> BarKey:
    mark = "=" if line.run.balance else "≈" if line.assumed else ""
    return line.run.method, line.run.config, line.run.sampler, mark


def _order(kind: BarKey) -> tuple[int, str, str, str, str]:
    method, config, sampler, mark = kind
    place = COMPARED_METHODS.index(method) if method in COMPARED_METHODS else len(COMPARED_METHODS)
    return (place, method, config, sampler or "", mark)


def _spread(line: Line) -> float | None:
    """Half the length of an error bar in percent: the deviation over seeds, or of one seed the 95 % interval."""
    if len(line.acc) > 1:
        return 100 * stdev(line.acc)
    return None if line.interval is None else 100 * line.interval


def _label(kind: BarKey, common: str | None) -> str:
    """A bar's name; a preset that all have in common is in the caption."""
    method, config, sampler, mark = kind
    parts = (config if config not in ("default", common) else "", sampler if sampler != "uniform" else "", mark)
    extra = [part for part in parts if part]
    return " ".join([title_of(method), *extra])


def _common_config(kinds: Iterable[BarKey]) -> str | None:
    configs = {config for _, config, _, _ in kinds}
    return configs.pop() if len(configs) == 1 else None


def _observations(count: int | str) -> str:
    return "all observations" if count == ALL else f"{count} observation{'s' * (count != 1)}"


def _caption(lines: Sequence[Line], score: str) -> str:
    seeds = sorted({len(line.acc) for line in lines})
    several = seeds[-1] > 1
    number = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    sentences = [
        f"Bars and numbers: honest regime, scored {score}, {number} seed{'s' * several}; error bars: deviation "
        "over seeds, or of one seed the 95 % interval over its tasks.",
        "Dotted: chance.",
    ]
    if (config := _common_config(map(_key, lines))) not in (None, "default"):
        sentences.insert(1, f"Preset {config}.")
    told = {line.run.balance for line in lines}
    if told == {True}:
        sentences.append("Every method was told that classes are equally large.")
    elif told == {False}:
        sentences.append("No method was told the sizes of classes.")
    else:
        sentences.append("=: told that classes are equally large; the others were not, so do not compare the two.")
    if any(_key(line)[-1] == "≈" for line in lines):
        sentences.append("≈: not told, but its loss draws clusters to equal size.")
    if any(line.oracle is not None for line in lines):
        sentences.append("Solid: oracle (the observations grouped by their true classes), where it was run.")
    return " ".join(sentences)
