"""The figure of a comparison: what it draws is what the rows say."""

from dataclasses import replace

import pytest
from matplotlib.container import BarContainer, ErrorbarContainer

from medi.bench.figures import draw_comparison, save_figure
from medi.bench.grid import Run
from medi.core.errors import InputError

RUN = Run("glyphs", "kmeans", "default", None, 20, 5, "honest", "pooled", 0)


def row(acc: float, run: Run = RUN, **changes: object) -> dict[str, object]:
    scores = {"acc": acc, "nmi": acc, "ari": acc, "chance": 0.15, "acc_ci95": None, "episodes": 1}
    return replace(run, **changes).as_row() | scores


ROWS = [
    row(0.4),
    row(0.6, seed=1),
    row(0.9, regime="grouped"),
    row(0.7, method="mp", sampler="uniform"),
    row(0.3, observations=1),
    row(0.2, dataset="rules", method="rs", way=5),
    row(0.1, score="episode"),
]


def panels(rows=ROWS, score="pooled", sampler=None):
    return {axes.get_title(): axes for axes in draw_comparison(rows, score, sampler).axes}


def heights(axes) -> list[float]:
    return [bar.get_height() for box in axes.containers if isinstance(box, BarContainer) for bar in box]


def test_bars_are_means_over_seeds_of_the_scores_asked_for_in_the_order_of_methods():
    axes = panels()["Glyphs, 5 observations"]
    assert heights(axes) == pytest.approx([50, 70])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["K-means", "RS", "MP"]
    assert heights(panels(score="episode")["Glyphs, 5 observations"]) == pytest.approx([10])


def test_a_panel_has_one_number_of_classes_and_the_caption_names_the_other():
    rows = [*ROWS, row(0.05, way=40), row(0.05, way=40, seed=1)]
    assert heights(panels(rows)["Glyphs, 5 observations"]) == pytest.approx([50, 70])
    assert "glyphs 40-way" in " ".join(draw_comparison(rows, "pooled").get_supxlabel().split())


def error_bar(rows) -> list[float] | None:
    (axes,) = draw_comparison(rows, "pooled").axes
    errors = [box for box in axes.containers if isinstance(box, ErrorbarContainer)]
    return errors[0].lines[2][0].get_segments()[0][:, 1].tolist() if errors else None


def test_error_bars_are_the_deviation_over_seeds_or_the_interval_of_one_seed():
    assert error_bar([row(0.4), row(0.6, seed=1)]) == pytest.approx([50 - 10 * 2**0.5, 50 + 10 * 2**0.5])
    assert error_bar([row(0.4) | {"acc_ci95": 0.01}]) == pytest.approx([39, 41])
    assert error_bar([row(0.4)]) is None


def test_chance_and_the_oracle_are_lines():
    axes = panels()["Glyphs, 5 observations"]
    levels = [line.get_ydata()[0] for line in axes.lines if len(set(line.get_ydata())) == 1]
    assert 15 in [pytest.approx(level) for level in levels]
    assert 90 in [pytest.approx(level) for level in levels]


def test_one_sampler_leaves_one_bar_a_method():
    rows = [*ROWS, row(0.8, method="mp", sampler="cata"), row(0.75, method="mm", sampler="cata")]
    labels = {
        sampler: [
            label.get_text() for label in panels(rows, sampler=sampler)["Glyphs, 5 observations"].get_xticklabels()
        ]
        for sampler in (None, "uniform", "cata")
    }
    assert labels == {
        None: ["K-means", "RS", "MM cata", "MP cata", "MP"],
        "uniform": ["K-means", "RS", "MP"],
        "cata": ["K-means", "RS", "MM cata", "MP cata"],
    }
    assert heights(panels(rows, sampler="uniform")["Glyphs, 5 observations"]) == pytest.approx([50, 70])
    with pytest.raises(InputError, match="unknown sampler in these results 'catta'"):
        panels(rows, sampler="catta")


def test_pools_are_never_a_bar_among_methods_by_themselves():
    cells = [
        row(0.5, score="episode", grouping=grouping, classes=classes, pool=pool)
        for grouping in ("posterior", "own.py:Own") for classes in ("given", "auto") for pool in ("pure", "mixed")
    ]  # fmt: skip
    with pytest.raises(InputError, match="medi bench table"):
        draw_comparison(cells, "episode")
    both = draw_comparison([*ROWS, *cells], "episode")
    assert heights(both.axes[0]) == pytest.approx([10])
    assert "pools" in both.get_supxlabel()
    assert "pools" not in draw_comparison(ROWS, "episode").get_supxlabel()


def test_a_picture_is_written_whole_or_refused(tmp_path):
    figure = draw_comparison(ROWS, "pooled")
    save_figure(figure, tmp_path / "new" / "figure.png")
    assert (tmp_path / "new" / "figure.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match=r"let it end in \.png"):
        save_figure(figure, tmp_path / "figure.txt")
    with pytest.raises(InputError, match="no honest result with --score episode"):
        draw_comparison(ROWS[:3], "episode")


def test_methods_that_assume_equal_sizes_are_marked_and_stand_behind_those_of_the_paper():
    assuming = {"assumes_equal_sizes": True}
    rows = [row(0.4, method="medi"), row(0.5, method="simgcd") | assuming, row(0.5, method="uno") | assuming, *ROWS]
    figure = draw_comparison([one for one in rows if one["dataset"] == "glyphs"], "pooled")
    labels = [label.get_text() for label in figure.axes[-1].get_xticklabels()]
    assert labels == ["K-means", "MP", "UNO ≈", "SimGCD ≈", "medi"]
    assert "≈" in figure.get_supxlabel()
    assert "≈" not in draw_comparison(ROWS, "pooled").get_supxlabel()


def test_methods_with_and_without_the_sizes_are_drawn_apart_and_the_caption_says_which():
    rows = [row(0.8, balance=True), row(0.5)]
    figures = [draw_comparison(rows, "pooled", balance=told) for told in (True, False, None)]
    assert [heights(figure.axes[0]) for figure in figures] == [[80], [50], [50, 80]]
    assert len({figure.get_supxlabel() for figure in figures}) == 3
    with pytest.raises(InputError, match="--sizes unequal --balance on"):
        draw_comparison(rows, "pooled", balance=True, sizes="unequal")
