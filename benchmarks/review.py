"""What a review is worth: a simulated person who knows the true classes answers, or sorts a pool.

    python benchmarks/review.py [--only answers,gestures] [--draws 10] [--flowers FOLDER] [--out FILE.json]

answers   50 CIFAR-100 photos of 10 novel classes, 20 other classes x 30 known: ACC of the groups after 0, 10, 20 and 30
          answers to the questions that pay most; and how many of 30 were expected to correct a fifth of a photo or
          more, as those do that the page shows. The person compares a photo with what stands for groups.
gestures  a mixed pool of photos in FOLDER (one subfolder a class): 10 novel classes x 10, 50 photos of 20 known
          classes, 10 one-offs. The person takes wrong photos out of groups and known classes, names each group that is
          of one class for the most part, takes what is rightly offered, and says "all right" to the known classes. A
          gesture is a photo selected, or one action; photos labelled by one, and the share of labels that is right.

Each draw runs `medi discover` (with --only-novel and the number of classes for answers) and then the review itself, as
the page does. Needs CIFAR-100 (`medi data fetch cifar100`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import command
import numpy as np
import torch
from PIL import Image
from script import Parser, positive, run, some_of, write_json

from medi.core.errors import InputError
from medi.data.benchmarks import load
from medi.metrics import acc
from medi.review.session import Review, opened

PARTS = ("answers", "gestures")
ANSWERS = (0, 10, 20, 30)
KNOWN, KNOWN_PHOTOS, NOVEL, NOVEL_PHOTOS = 20, 30, 10, 5
SHOWN_FROM = 0.2
"""Photos that an answer must be expected to correct for the page to ask."""


def accuracy(review: Review, truth: Sequence[int]) -> float:
    """ACC of the groups; photos in none count as groups of their own."""
    groups = review.history.state.groups
    shown = [group if group >= 0 else -1 - item for item, group in enumerate(groups)]
    _, labels = np.unique(shown, return_inverse=True)
    return acc(np.asarray(truth), labels)


def answer_questions(review: Review, truth: Sequence[Any], after: Sequence[int] = ANSWERS) -> dict[str, float]:
    """ACC after so many answers, and how many were asked on the page; without a question the last figure stays."""
    found, shown, given = dict[str, float](), 0, 0
    for wanted in after:
        while given < wanted and (question := review.state()["question"]):
            shown += question["worth"] >= SHOWN_FROM
            review.act({"seq": review.history.seq, **reply(question, review, truth)})
            given += 1
        found[str(wanted)] = accuracy(review, truth)
    return found | {"shown": shown}


def reply(question: Mapping[str, Any], review: Review, truth: Sequence[Any]) -> dict[str, Any]:
    """What the page does when a person answers truthfully."""
    kind, a, b, items = (question[key] for key in ("kind", "a", "b", "items"))
    if kind == "which":
        fits = [item for item in items if truth[item] == truth[a]]
        if fits:
            return {"action": "answer", "a": fits[0], "b": a, "same": True}
        return {"action": "answer", "a": a, "b": items[0], "same": False, "others": list(items[1:])}
    if kind == "half" and truth[a] != truth[b]:
        group = review.history.state.groups[b]
        rest = [item for item in review.history.state.members[group] if item not in items]
        return {"action": "split", "group": group, "parts": [list(items), rest]}
    return {"action": "answer", "a": a, "b": b, "same": truth[a] == truth[b]}


def sort_pool(review: Review, truth: Sequence[str]) -> dict[str, float]:
    """Photos labelled by a gesture, and the share of labels that is right, when a person has sorted a pool."""
    gestures = 0

    def act(action: str, selected: int = 0, **arguments: Any) -> None:
        nonlocal gestures
        review.act({"seq": review.history.seq, "action": action, **arguments})
        gestures += selected + 1

    done = set[int]()
    while todo := [group for group in review.state()["groups"] if group["id"] not in done and not group["name"]]:
        group = max(todo, key=lambda group: len(group["items"]))
        done.add(group["id"])
        name, count = Counter(truth[item] for item in group["items"]).most_common(1)[0]
        if count < max(2, len(group["items"]) / 2):
            continue
        if wrong := [item for item in group["items"] if truth[item] != name]:
            act("reject", len(wrong), items=wrong)
        if not (right := [item for item in review.history.state.members.get(group["id"], ()) if truth[item] == name]):
            continue
        twin = next((one["id"] for one in review.state()["groups"] if one["name"] == name), None)
        if twin is not None:
            act("merge", groups=[twin, group["id"]])
        elif name in review.setting.class_names:
            act("known", items=right, name=name)
        else:
            act("name", group=group["id"], name=name, items=right)
        take_offers(review, truth, act)
    known = [item["id"] for item in review.state()["items"] if item["kind"] == "known" and not item.get("held")]
    if wrong := [item for item in known if truth[item] != review.history.state.known[item]]:
        act("reject", len(wrong), items=wrong)
    known = [item for item in known if review.history.state.known[item]]
    if known:
        act("confirm", items=known)
    take_offers(review, truth, act)
    state = review.history.state
    names = {item: state.names.get(state.groups[item]) or state.known[item] for item in state.held}
    labelled = {item: name for item, name in names.items() if name}
    right = [item for item, name in labelled.items() if truth[item] == name]
    count = len(labelled)
    return {
        "photos": count,
        "gestures": gestures,
        "per_gesture": count / gestures,
        "right": len(right) / max(count, 1),
        "pool": len(truth),
    }


def take_offers(review: Review, truth: Sequence[str], act: Callable[..., None]) -> None:
    """Take what is offered beside groups, as far as it is right; the others are left alone."""
    for group in review.state()["groups"]:
        for offer in group.get("offers", ()):
            names = review.history.state.names
            name = offer.get("known") or names.get(offer["group"])
            right = [item for item in offer["items"] if truth[item] == name]
            selected = 0 if len(right) == len(offer["items"]) else len(right)
            if right and "known" in offer:
                act("known", selected, items=right, name=name)
            elif right and offer["group"] in names:
                act("move", selected, items=right, group=offer["group"])


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
    """Links in known/ and a mixed pool; the class of each photo of the pool by its path."""
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
    more = ["--only-novel", "--classes", NOVEL] if only_novel else []
    command.discover(folder / "known", folder / "novel", out, "--seed", seed, *more, environment={})
    return opened(out, "the benchmark")


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
    if "gestures" in options.only and options.flowers is None:
        raise InputError("gestures needs photos: give --flowers FOLDER with one subfolder a class, or --only answers.")
    results: dict[str, list[Any]] = {}
    for part in options.only:
        for seed in range(options.draws):
            with TemporaryDirectory() as temporary:
                folder = Path(temporary)
                truth: Mapping[str, Any] = (
                    draw_cifar(folder, seed) if part == "answers" else draw_folder(options.flowers, folder, seed)
                )
                with review_of(folder, seed, only_novel=part == "answers") as review:
                    simulate = answer_questions if part == "answers" else sort_pool
                    found = simulate(review, in_order(review, truth))  # type: ignore[operator]
            print(part, seed, found, flush=True)
            results.setdefault(part, []).append(found)
    for part, rows in results.items():
        means = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        print(f"{part}, mean of {len(rows)} draws:", {key: round(value, 3) for key, value in means.items()})
    write_json(options.out, results)


if __name__ == "__main__":
    run(main, __doc__)
