"""What a review is worth: a simulated person who knows the true classes answers, or checks groups page by page.

    python benchmarks/review.py [--only answers,clicks] [--draws 10] [--flowers FOLDER] [--out FILE.json]

answers  50 CIFAR-100 photos of 10 novel classes, 20 other classes x 30 known: ACC of the groups after 0, 10, 20 and 30
         answers to the question that the page asks.
clicks   a mixed pool of photos in FOLDER (one subfolder a class): 10 novel classes x 10, 50 photos of 20 known
         classes, 10 one-offs. The person names every group by its commonest class and checks it page by page (1, 2,
         4, … until the first "no", then half as many). A click is a confirmed page or a photo marked as "not this";
         what is labelled is what was confirmed, and its precision is stated.

Each draw runs `medi discover` (with --only-novel and the number of classes for answers) and then the review itself, as
the page does. Needs CIFAR-100 (`medi data fetch cifar100`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from command import run_medi
from PIL import Image
from script import Parser, positive, run, some_of, write_json

from medi.data.benchmarks import load
from medi.errors import InputError
from medi.metrics import acc
from medi.review.session import Review, opened

PARTS = ("answers", "clicks")
ANSWERS = (0, 10, 20, 30)
KNOWN, KNOWN_PHOTOS, NOVEL, NOVEL_PHOTOS = 20, 30, 10, 5
LARGEST_PAGE = 32


def accuracy(review: Review, truth: Sequence[int]) -> float:
    """ACC of the groups; photos in none count as groups of their own."""
    groups = review.history.state.groups
    shown = [group if group >= 0 else -1 - item for item, group in enumerate(groups)]
    _, labels = np.unique(shown, return_inverse=True)
    return acc(np.asarray(truth), labels)


def answer_questions(review: Review, truth: Sequence[int], after: Sequence[int] = ANSWERS) -> dict[int, float]:
    """ACC after so many answers to what the page asks; where it has no question left, the last figure stays."""
    found, given = {}, 0
    for wanted in after:
        while given < wanted:
            question = review.state()["question"]
            if question is None:
                break
            same = truth[question["a"]] == truth[question["b"]]
            request = {"action": "answer", "a": question["a"], "b": question["b"], "same": same}
            review.act({"seq": review.history.seq, **request})
            given += 1
        found[wanted] = accuracy(review, truth)
    return found


def check_groups(review: Review, truth: Sequence[str]) -> dict[str, float]:
    """Photos labelled for each click, and the share of them that is right, when all groups are named and checked."""
    clicks, labelled = 0, dict[int, str]()
    groups = sorted(review.state()["groups"], key=lambda group: -len(group["items"]))
    for group in (group["id"] for group in groups):
        if group not in review.history.state.members:
            continue
        own = [truth[item] for item in review.history.state.members[group]]
        name = Counter(own).most_common(1)[0][0]
        review.act({"seq": review.history.seq, "action": "name", "group": group, "name": name})
        clicks += 1
        size, doubling = 1, True
        while group in review.history.state.members and (waiting := review.candidates(group)):
            page = waiting[:size]
            yes, no = ([i for i in page if (truth[i] == name) == right] for right in (True, False))
            review.act({"seq": review.history.seq, "action": "check", "group": group, "yes": yes, "no": no})
            clicks += 1 + len(no)
            labelled |= dict.fromkeys(yes, name)
            doubling = doubling and not no
            size = max(1, min(LARGEST_PAGE, 2 * size if doubling else size // 2 if no else size))
            if not yes and len(page) < 2:
                break
    right = sum(truth[item] == name for item, name in labelled.items())
    count = len(labelled)
    return {"photos": count, "clicks": clicks, "per_click": count / clicks, "right": right / max(count, 1)}


def draw_cifar(folder: Path, seed: int) -> dict[str, int]:
    """Write known/ and novel/ as PNG; the class of each novel photo by its path."""
    benchmark, generator = load("cifar100"), torch.Generator().manual_seed(seed)
    chosen = ((benchmark.known, "known", KNOWN, KNOWN_PHOTOS), (benchmark.novel, "novel", NOVEL, NOVEL_PHOTOS))
    truth: dict[str, int] = {}
    for images, kind, classes, photos in chosen:
        for label in torch.randperm(images.n_classes, generator=generator)[:classes].tolist():
            items = torch.nonzero(images.labels == label).flatten()
            for item in items[torch.randperm(len(items), generator=generator)[:photos]].tolist():
                name = f"{item:06}.png"
                path = folder / kind / (f"class {label:03}" if kind == "known" else "") / name
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(images.images[item].permute(1, 2, 0).numpy()).save(path)
                if kind == "novel":
                    truth[name] = label
    return truth


def draw_folder(source: Path, folder: Path, seed: int) -> dict[str, str]:
    """Links known/ and a mixed pool; the class of each photo of the pool by its path."""
    classes = sorted(path for path in source.iterdir() if path.is_dir())
    if len(classes) < KNOWN + NOVEL + 10:
        raise InputError(f"--flowers {source} has {len(classes)} classes: give a folder with {KNOWN + NOVEL + 10}.")
    generator = np.random.default_rng(seed)
    order = [classes[i] for i in generator.permutation(len(classes))]
    known, novel, single = order[:KNOWN], order[KNOWN : KNOWN + NOVEL], order[KNOWN + NOVEL :][:10]
    truth: dict[str, str] = {}

    def link(photo: Path, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(photo.resolve())

    for name in [*known, *novel, *single]:
        photos = sorted(path for path in name.iterdir() if path.is_file())
        photos = [photos[i] for i in generator.permutation(len(photos))]
        pool = photos[:10] if name in novel else photos[:1] if name in single else photos[: 2 + (known.index(name) % 2)]
        for photo in pool:
            path = f"{len(truth):04}{photo.suffix}"
            link(photo, folder / "novel" / path)
            truth[path] = name.name
        for photo in photos[5:] if name in known else ():
            link(photo, folder / "known" / name.name / photo.name)
    return truth


def review_of(folder: Path, seed: int, *, only_novel: bool) -> Any:
    """Discover, and open the review."""
    out = folder / "out"
    folders = "--known", folder / "known", "--novel", folder / "novel", "--out", out
    more = ["--only-novel", "--classes", NOVEL] if only_novel else []
    run_medi("discover", *folders, "--seed", seed, *more, environment={})
    return opened(out)


def in_order(review: Review, truth: Mapping[str, Any]) -> list[Any]:
    """The class of each item."""
    return [truth[path] for path in review.folder.start.paths]


def main(parser: Parser) -> None:
    """Run the parts that are asked for."""
    parser.add_argument("--only", type=some_of(PARTS), default=list(PARTS))
    parser.add_argument("--draws", type=positive, default=10)
    parser.add_argument("--flowers", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if "clicks" in options.only and options.flowers is None:
        raise InputError("clicks needs photos: give --flowers FOLDER with one subfolder a class, or --only answers.")
    results: dict[str, list[Any]] = {}
    for part in options.only:
        for seed in range(options.draws):
            with TemporaryDirectory() as temporary:
                folder = Path(temporary)
                truth: Mapping[str, Any] = (
                    draw_cifar(folder, seed) if part == "answers" else draw_folder(options.flowers, folder, seed)
                )
                with review_of(folder, seed, only_novel=part == "answers") as review:
                    simulate = answer_questions if part == "answers" else check_groups
                    found = simulate(review, in_order(review, truth))  # type: ignore[operator]
            print(part, seed, found, flush=True)
            results.setdefault(part, []).append(found)
    for part, rows in results.items():
        means = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        print(f"{part}, mean of {len(rows)} draws:", {key: round(value, 3) for key, value in means.items()})
    write_json(options.out, results)


if __name__ == "__main__":
    run(main, __doc__)
