"""The table of a method taken apart: the ACC of the whole, and what is lost or won without each part."""

from __future__ import annotations

from tables import NOT_YET, Cells, Rows, chance, find_line, markdown, spread

from medi.bench.paired import paired_difference
from medi.bench.tables import summarise
from medi.data.facts import BENCHMARKS


def parts(rows: Rows, method: str) -> str:
    """A line for each of the settings in the order in which they were run; the first is the whole.

    Of the others it has the difference to the whole, paired by seed.
    """
    if not rows:
        return NOT_YET
    whole, *others = dict.fromkeys(row["config"] for row in rows)
    table: list[Cells] = [{"": name.removeprefix("small-").replace("-", " ")} for name in ("chance", whole, *others)]
    for dataset in [name for name in BENCHMARKS if any(row["dataset"] == name for row in rows)]:
        title = BENCHMARKS[dataset].title
        mine = [row for row in rows if row["dataset"] == dataset]
        of_whole, *of_others = ([row for row in mine if row["config"] == name] for name in (whole, *others))
        line = find_line(summarise(mine), dataset, 5, None, method, config=whole)
        differences = [paired_difference(one, of_whole) for one in of_others]
        column = [chance(line), spread(line), *(one.points() if one else "" for one in differences)]
        for cells, cell in zip(table, column, strict=True):
            cells[title] = cell
    return markdown(table)
