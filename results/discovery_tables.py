"""The tables and the curve of docs/discover.md, from rows that `benchmarks/discover.py` wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from tables import NOT_YET, Cells, Rows, markdown

OURS, EARLIER = "medi", "a0ff070"
"""The engine that rows are of: today's, or that of a commit."""
RATES = ("0.0", "0.02", "0.05", "0.1", "0.2", "0.3")
DEFAULT = "likeliest"
"""Without a rate; rows of earlier commits have none."""
WIDTH, HEIGHT, LEFT, TOP, SIDE = 640, 340, 60, 20, 260
COLOURS = ("#3b6fb6", "#c2552d", "#4f8f4f", "#8a5aa8", "#666666")


def sets_of(rows: Rows) -> list[str]:
    """Names of the sets, in the order of the rows, photos first."""
    names = list(dict.fromkeys(row["set"] for row in rows))
    return sorted(names, key=lambda name: (name in ("cifar100", "omniglot", "glyphs", "digits"), names.index(name)))


def numbers(rows: Rows) -> str:
    """How right and how sure it is in pools of novel classes alone, and in mixed ones."""
    if not rows:
        return NOT_YET
    return markdown([{"set": name} | _cells(rows, name) for name in sets_of(rows)])


def cases(rows: Rows) -> str:
    """Every case of every set."""
    return _cases(rows, OURS)


def earlier(rows: Rows) -> str:
    """The same of the engine before ours, on the first of these draws."""
    return _cases(rows, EARLIER)


def _cases(rows: Rows, engine: str) -> str:
    table = []
    for name in sets_of(rows):
        for pool in ("only", "pure", "mixed"):
            for groups, sizes in sorted({(row["groups"], row["sizes"]) for row in rows if row["set"] == name}):
                mine = _some(rows, name, pool, groups=groups, sizes=sizes, engine=engine)
                if not mine:
                    continue
                table.append(
                    {"set": name, "pool": pool, "classes": f"{groups}, {sizes}", "draws": str(len(mine))}
                    | {
                        "within 20 %": _percent(_within(mine)),
                        "interval holds": _percent(_inside(mine)),
                        "ACC": _percent(_mean(mine, "acc")),
                        "ACC, number given": _percent(_mean(mine, "acc given")),
                        "stated": _percent(_mean(mine, "expected")),
                        "right": _percent(_mean(mine, "right")),
                        "known found": _percent(_mean(mine, "known found")),
                        "recognised": _percent(_further(mine, "recognised")),
                    }
                )
    return markdown(table)


def trade(rows: Rows) -> str:
    """What a share of belonging items called none brings, a line a share."""
    names = sets_of(rows)
    table = []
    lines = {"none given": ("only", DEFAULT), "none given, mixed": ("mixed", DEFAULT)}
    lines |= {rate.rstrip("0").rstrip(".") or "0": ("only", rate) for rate in RATES}
    for line, (pool, rate) in lines.items():
        cells: Cells = {"`--none-rate`": line}
        for name in names:
            mine = _some(rows, name, pool)
            figures = [
                _percent(_further(mine, key, rate)) for key in ("recognised", "called none", "strangers found out")
            ]
            cells[name] = " / ".join(figure or "–" for figure in figures)
        table.append(cells)
    return markdown(table)


def curve(rows: Rows) -> str:
    """The trade as a picture: strangers found out against items that are wrongly called none."""
    right, bottom = LEFT + SIDE * 1.6, TOP + SIDE

    def at(x: float, y: float) -> str:
        return f"{LEFT + (right - LEFT) * x / 0.4:.1f},{bottom - SIDE * y:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="13"><rect width="100%" height="100%" fill="white"/>',
        f'<path d="M{LEFT} {TOP}V{bottom}H{right:.0f}" fill="none" stroke="#333"/>',
    ]
    for tick in range(5):
        x, y = at(tick / 10, 0).split(",")[0], at(0, tick / 4).split(",")[1]
        parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{10 * tick}</text>')
        parts.append(f'<text x="{LEFT - 8}" y="{float(y) + 4:.1f}" text-anchor="end">{25 * tick}</text>')
    parts.append(f'<text x="{LEFT}" y="{bottom + 40}">items of groups called none, %</text>')
    parts.append(f'<text x="16" y="{bottom}" transform="rotate(-90 16 {bottom})">strangers found out, %</text>')
    shown = [name for name in sets_of(rows) if _further(_some(rows, name, "only"), "strangers found out") is not None]
    for number, name in enumerate(shown):
        mine = _some(rows, name, "only")
        points = [(_further(mine, "called none", rate), _further(mine, "strangers found out", rate)) for rate in RATES]
        line = " ".join(at(x, y) for x, y in points if x is not None and y is not None)
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        places = [point.split(",") for point in line.split()]
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places]
        x, y = (_further(mine, key, DEFAULT) for key in ("called none", "strangers found out"))
        if x is not None and y is not None:
            cx, cy = at(x, y).split(",")
            parts.append(f'<circle cx="{cx}" cy="{cy}" r="6" fill="white" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{right + 16:.0f}" y="{TOP + 20 + 22 * number}" fill="{colour}">{name}</text>')
    return "".join(parts) + "</svg>\n"


def calibration_error(rows: Rows) -> float:
    """Expected calibration error over all lines: the mean distance of confidence and share right, in ten bins."""
    total = {key: np.sum([row["bins"][key] for row in rows], 0) for key in ("lines", "confidence", "right")}
    return float(np.abs(total["confidence"] - total["right"]).sum() / total["lines"].sum())


def _cells(rows: Rows, name: str) -> Cells:
    pools = [some for pool in ("only", "mixed") if (some := _some(rows, name, pool))]
    figures: dict[str, Callable[[Rows], str]] = {
        "right": lambda mine: _percent(_mean(mine, "right")),
        "calibration error": lambda mine: f"{calibration_error(mine):.2f}",
        "number within 20 %": lambda mine: _percent(_within(mine)),
        "interval holds": lambda mine: _percent(_inside(mine)),
    }
    return {title: " / ".join(map(figure, pools)) for title, figure in figures.items()} | {
        "known named": _percent(_mean(pools[-1], "known found")),
        "novel called known": _percent(_mean(pools[-1], "novel called known")),
    }


def _some(rows: Rows, name: str, pool: str, **more: Any) -> Rows:
    wanted = {"set": name, "pool": pool, "engine": OURS} | more
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _within(rows: Rows) -> float:
    return fmean(abs(row["k"] - row["classes"]) <= 0.2 * row["classes"] for row in rows)


def _inside(rows: Rows) -> float:
    return fmean(row["low"] <= row["classes"] <= row["high"] for row in rows)


def _mean(rows: Rows, key: str) -> float | None:
    values = [row[key] for row in rows if row.get(key) is not None]
    return fmean(values) if values else None


def _further(rows: Rows, key: str, rate: str = "0.05") -> float | None:
    values: Sequence[float] = [
        found[key] for row in rows if (found := (row.get("further") or {}).get(rate)) and found[key] is not None
    ]
    return fmean(values) if values else None


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f}"
