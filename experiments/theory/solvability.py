"""Theorems 1 and 2 on `rules`: known classes help where they share the rule of the novel classes, and hurt otherwise.

    python experiments/theory/solvability.py --out results/theory [--seeds 3]

The same novel pictures can be grouped by colour, by shape or by frame. Known classes of one rule train the
transformation pi; novel classes are then asked for under each of the three rules. Writes solvability.jsonl and
solvability.png; prints ACC in percent (honest regime, mean ± standard deviation over seeds) with the mean overlap,
which conditions of the theorems hold, and what they conclude of the transformation that minimises their criterion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any

import torch
from embeddings import OBSERVATIONS, Recipe, learn
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from study import COLOURS, Parser, Row, Table, mean_of, measure, of_rule, run, save_figure, show, spread

from medi.bench.grid import Run
from medi.bench.questions import draw_questions
from medi.bench.score import Conditions, answer_tasks
from medi.core.progress import Reporter, Silent
from medi.data.benchmarks import Benchmark
from medi.data.facts import facts_of
from medi.data.imageset import ImageSet
from medi.data.rules import RULES, rules
from medi.methods.embedding import EmbeddingLearner
from medi.nn.context import Context
from medi.theory import overlap

TEACHERS = ("pixels", "random", *RULES)
"""What made pi: raw pixels, a random network, or MP on the known classes of a rule."""
IMAGES = 50
"""Of each class."""
EPISODES = 200
FRESH = 500_000
"""Added to a seed for pictures that no training saw."""


def study_solvability(
    out: Path,
    *,
    seeds: int,
    reporter: Reporter,
    recipe: Recipe | None = None,
    images: int = IMAGES,
    episodes: int = EPISODES,
) -> list[Row]:
    """A row of `solvability.jsonl` for each teacher and seed, and a figure."""
    recipe = recipe or Recipe()
    jobs = [
        {"teacher": teacher, "seed": seed, "images": images, "episodes": episodes, **asdict(recipe)}
        for seed in range(seeds)
        for teacher in TEACHERS
    ]
    rows = measure(out / "solvability.jsonl", jobs, _try_teacher, "solvability", reporter)
    save_figure(draw_solvability(rows), out / "solvability.png")
    return rows


def _try_teacher(job: Row) -> Row:
    """Overlaps and accuracies under the transformation that one teacher made."""
    known, novel, fresh = draw_pictures(job["seed"], job["images"])
    teacher, facts = job["teacher"], facts_of("rules")
    taught = of_rule(known, teacher) if teacher in RULES else known
    learner = learn(
        "meta" if teacher in RULES else teacher,
        taught,
        Recipe(**{field.name: job[field.name] for field in fields(Recipe)}),
        Context(seed=job["seed"]),
        way=facts.way,
        augmentation=facts.augmentation,
    )
    return {
        "known": {rule: _overlap(learner, of_rule(fresh, rule), job["seed"]) for rule in RULES},
        "novel": {
            rule: _overlap(learner, of_rule(novel, rule), job["seed"])
            | _accuracy(learner, Benchmark(facts, taught, of_rule(novel, rule)), job)
            for rule in RULES
        },
    }


@cache
def draw_pictures(seed: int, images: int) -> tuple[ImageSet, ImageSet, ImageSet]:
    """Known and novel pictures, so many of each class, and further known ones that no training sees."""
    known, novel = rules(seed, known_images=images, novel_images=images)
    return known, novel, rules(FRESH + seed, known_images=images, novel_images=1)[0]


def _overlap(learner: EmbeddingLearner, images: ImageSet, seed: int) -> Row:
    found = overlap(learner.encode(images.images), images.labels, seed=seed)
    return {"tau": found.tau, "low": found.low, "high": found.high}


def _accuracy(learner: EmbeddingLearner, benchmark: Benchmark, job: Row) -> Row:
    run = Run("rules", "mp", "default", "uniform", benchmark.facts.way, OBSERVATIONS, "honest", "episode", job["seed"])
    questions = draw_questions(benchmark, run, job["episodes"])
    scores = answer_tasks(learner, [questions], Conditions(["honest"], balance=True, seed=job["seed"]), Silent())
    score = scores["honest"]
    return {"acc": score.acc, "acc_ci95": score.acc_ci95, "chance": questions.chance()}


def check_conditions(rows: Sequence[Mapping[str, Any]], known_rule: str, novel_rule: str) -> Row:
    """Assumptions (B) to (D) and Theorem 2's conditions over the finite family of measured transformations.

    A set Pi is taken to be the transformations whose interval of tau reaches down to the smallest tau measured: those
    not told from the best. (A) holds by construction, known and novel pictures share no value of any rule.

    Args:
        rows: Of `study_solvability`; each is a transformation.
        known_rule: Rule of the known classes.
        novel_rule: Rule of the novel ones.

    Returns:
        epsilon_known, epsilon_novel: smallest tau of each.
        separable: (B), both below 1.
        shared: (D), the two sets Pi meet.
        gap: Theorem 2's max over Pi_known of tau_novel < min over the others of tau_known.
        easier: Theorem 2's epsilon_known <= epsilon_novel.
        impossible: All conditions of Theorem 2 hold.
    """
    known, novel = ([row[side][rule] for row in rows] for side, rule in (("known", known_rule), ("novel", novel_rule)))
    epsilon_known, epsilon_novel = (min(one["tau"] for one in side) for side in (known, novel))
    suits_known, suits_novel = (
        {place for place, one in enumerate(side) if one["low"] <= least}
        for side, least in ((known, epsilon_known), (novel, epsilon_novel))
    )
    others = [one["tau"] for place, one in enumerate(known) if place not in suits_known]
    shared = bool(suits_known & suits_novel)
    gap = max(novel[place]["tau"] for place in suits_known) < min(others, default=torch.inf)
    easier = epsilon_known <= epsilon_novel
    return {
        "epsilon_known": epsilon_known,
        "epsilon_novel": epsilon_novel,
        "separable": epsilon_known < 1 and epsilon_novel < 1,
        "shared": shared,
        "gap": gap,
        "easier": easier,
        "impossible": gap and easier and not shared,
    }


def minimise_criterion(rows: Sequence[Mapping[str, Any]], known_rule: str, novel_rule: str) -> Row:
    """The measured transformation with the least J(pi) = tau of the known classes + tau of the novel ones.

    Theorem 1 concludes that it separates the novel classes as well as any does (its tau is epsilon_novel), Theorem 2
    that it does not.

    Returns:
        Its teacher and seed; criterion, J; tau, low and acc of the novel classes; of all transformations epsilon_novel,
        the smallest tau, and best_acc.
    """
    criteria = [row["known"][known_rule]["tau"] + row["novel"][novel_rule]["tau"] for row in rows]
    least = min(range(len(rows)), key=criteria.__getitem__)
    job, novel = rows[least]["job"], [row["novel"][novel_rule] for row in rows]
    return {
        "teacher": job["teacher"],
        "seed": job["seed"],
        "criterion": criteria[least],
        **{name: novel[least][name] for name in ("tau", "low", "acc")},
        "epsilon_novel": min(one["tau"] for one in novel),
        "best_acc": max(one["acc"] for one in novel),
    }


def draw_solvability(rows: Sequence[Row]) -> Figure:
    """Accuracy and overlap of novel classes, by their rule and by what made pi."""
    figure = Figure(figsize=(11, 3.6))
    left, right = figure.subplots(1, 2)
    names = {"pixels": "no known classes: pixels", "random": "no known classes: random network"}
    names |= {rule: f"known classes by {rule}" for rule in RULES}
    colours = dict(zip(TEACHERS, ("#999999", "#cccccc", *COLOURS), strict=False))
    width = 0.8 / len(TEACHERS)
    for panel, measured in ((left, "acc"), (right, "tau")):
        for turn, (teacher, colour) in enumerate(colours.items()):
            mine = [row["novel"] for row in rows if row["job"]["teacher"] == teacher]
            points = [spread([novel[rule][measured] for novel in mine]) for rule in RULES]
            means, deviations = zip(*points, strict=True)
            places = [place + (turn - (len(TEACHERS) - 1) / 2) * width for place in range(len(RULES))]
            edges = ["black" if rule == teacher else "none" for rule in RULES]
            panel.bar(places, means, width, yerr=deviations, color=colour, edgecolor=edges, capsize=2)
        panel.set_xticks(range(len(RULES)), [f"novel by {rule}" for rule in RULES])
    left.axhline(rows[0]["novel"]["shape"]["chance"], color="black", linestyle="--", linewidth=1, label="chance")
    left.set(title="discovery: ACC of novel classes", ylim=(0, 1))
    right.set(title="overlap τ of novel classes", ylim=(0, 1))
    handles: list[Artist] = [Patch(color=colour, label=names[teacher]) for teacher, colour in colours.items()]
    handles.append(Patch(facecolor="none", edgecolor="black", label="known and novel share the rule"))
    handles += left.get_legend_handles_labels()[0]
    figure.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.04), ncol=4, frameon=False, fontsize=9)
    return figure


def solvability_table(rows: Sequence[Row]) -> Table:
    """ACC of novel classes in percent and their tau, by what taught pi and by the rule of the novel classes."""
    lines = [["pi learnt from", *(f"novel by {rule}" for rule in RULES)]]
    for teacher in TEACHERS:
        mine = [row["novel"] for row in rows if row["job"]["teacher"] == teacher]
        cells = [f"known classes by {teacher}" if teacher in RULES else f"nothing: {teacher}"]
        for rule in RULES:
            accuracy = mean_of([100 * one[rule]["acc"] for one in mine], digits=1)
            cells.append(f"{accuracy}, τ {spread([one[rule]['tau'] for one in mine])[0]:.2f}")
        lines.append(cells)
    return lines


def conditions_table(rows: Sequence[Row]) -> Table:
    """The conditions of Theorems 1 and 2 for every pair of rules."""
    lines = [
        ["known by", "novel by", "ε known", "ε novel", "(D) holds", "gap", "ε known ≤ ε novel", "Theorem 2 applies"]
    ]
    for known in RULES:
        for novel in RULES:
            found = check_conditions(rows, known, novel)
            numbers = [f"{found[name]:.2f}" for name in ("epsilon_known", "epsilon_novel")]
            truths = ["yes" if found[name] else "no" for name in ("shared", "gap", "easier", "impossible")]
            lines.append([known, novel, *numbers, *truths])
    return lines


def minimisers_table(rows: Sequence[Row]) -> Table:
    """For every pair of rules the transformation of least J and whether it separates novel classes best."""
    columns = ["τ novel (low end)", "ε novel", "attained", "in each seed alone", "ACC", "best ACC"]
    lines = [["known by", "novel by", "arg min of J", "J", *columns]]
    seeds = sorted({row["job"]["seed"] for row in rows})
    for known in RULES:
        for novel in RULES:
            found = minimise_criterion(rows, known, novel)
            least, tau, low = found["epsilon_novel"], found["tau"], found["low"]
            attained = "yes" if tau == least else "no" if low > least else "not told"
            taus = [f"{found['criterion']:.2f}", f"{tau:.2f} ({low:.2f})", f"{least:.2f}"]
            alone = [
                minimise_criterion([row for row in rows if row["job"]["seed"] == seed], known, novel) for seed in seeds
            ]
            times = f"{sum(one['tau'] == one['epsilon_novel'] for one in alone)} of {len(seeds)}"
            accuracies = [f"{100 * found[name]:.1f}" for name in ("acc", "best_acc")]
            chosen = f"{found['teacher']}, seed {found['seed']}"
            lines.append([known, novel, chosen, *taus, attained, times, *accuracies])
    return lines


def main(parser: Parser) -> None:
    """Measure and print."""
    show(parser, study_solvability, solvability_table, conditions_table, minimisers_table, seeds=3)


if __name__ == "__main__":
    run(main, __doc__)
