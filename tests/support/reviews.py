"""Made-up discoveries to review: photos of plain colours, and a pool that groups points under links."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.cluster import AgglomerativeClustering

from medi.grouping.constraints import Links
from medi.grouping.engine import ALONE, Anchors, Ask, kind_of, known_label
from medi.grouping.grouper import PosteriorGrouper
from medi.grouping.saved_pool import Regrouped, SavedPool
from medi.review.discovery_folder import read_folder
from medi.review.session import Review

HEADER = ("path", "kind", "cluster", "known", "confidence", "nearest_known")


def told(
    labels: Sequence[int],
    samples: np.ndarray | None = None,
    *,
    known: Mapping[int, str] | None = None,
    names: tuple[str, ...] = (),
    sure: float = 0.9,
    chances: np.ndarray | None = None,
    pure: float = 0.9,
    kin: float = 0.01,
) -> Regrouped:
    """What the engine might say of items in groups; by default any other place of an item is as likely as the next."""
    known, n, k = known or {}, len(labels), max(labels, default=-1) + 1
    kinds = tuple("known" if i in known else kind_of(labels[i]) for i in range(n))
    if chances is None:
        own = [k + names.index(known[i]) if known.get(i) in names else labels[i] for i in range(n)]
        chances = np.full((n, k + len(names) + 1), (1 - sure) / (k + len(names) + 1))
        chances[np.arange(n), own] = sure
    if samples is None:
        samples = np.tile(np.where(np.array(labels) < 0, 100 + np.arange(n), labels), (10, 1))
    pairs = np.where(np.eye(k, dtype=bool), 1.0, kin)
    places = tuple(np.maximum(labels, -1).tolist()), tuple(known.get(i, "") for i in range(n))
    return Regrouped(kinds, *places, (sure,) * n, samples, chances, names, np.full(k, pure), pairs)


@dataclass
class ToyPool:
    """Points on a plane: the nearest anchor of what was said decides, and noise makes the samples."""

    points: np.ndarray
    labels: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    names: tuple[str, ...] = ("rose", "tulip")
    said: list[Links] = field(default_factory=list)
    draws: int = 20
    confidence: Sequence[float] = ()

    def __len__(self) -> int:
        return len(self.points)

    @property
    def certain(self) -> dict[int, str]:
        return {}

    def standing(self) -> Regrouped:
        return self.regroup(Links())

    def regroup(self, links: Links, start=None) -> Regrouped:
        """Every group at its mean; free points go to the nearest group that nothing keeps them out of."""
        self.said.append(links)
        labels = np.array(self.labels if start is None else start, dtype=np.int64)
        for item in (*links.aside, *links.known):
            labels[item] = -1
        together = {i for pair in links.together for i in pair}
        numbers = [g for g in np.unique(labels) if g >= 0]
        if numbers:
            means = np.array([self.points[labels == g].mean(0) for g in numbers])
            distances = ((self.points[:, None] - means[None]) ** 2).sum(-1)
            for a, b in links.apart:
                for one, other in ((a, b), (b, a)):
                    if labels[other] >= 0:
                        distances[one, numbers.index(labels[other])] = np.inf
            for item in range(len(labels)):
                if item not in together and item not in links.aside and item not in links.known:
                    best = int(np.argmin(distances[item]))
                    labels[item] = numbers[best] if distances[item, best] < 4 else -1
        generator = np.random.default_rng(0)
        samples = []
        for _ in range(self.draws):
            sample = np.where(labels < 0, 1000 + np.arange(len(labels)), labels)
            flips = generator.random(len(labels)) < 0.2
            sample[flips] = generator.choice(labels[labels >= 0], flips.sum()) if (labels >= 0).any() else 0
            samples.append(sample)
        return told(labels.tolist(), np.array(samples), known=links.known, names=self.names, sure=0.8)

    def split(self, items: Sequence[int], parts: int) -> np.ndarray:
        return AgglomerativeClustering(parts).fit_predict(self.points[list(items)])

    def order(self) -> np.ndarray:
        return np.argsort(self.points[:, 0] + 10 * self.points[:, 1], kind="stable")

    def positions(self) -> np.ndarray:
        low, high = self.points.min(0), self.points.max(0)
        return (self.points - low) / np.maximum(high - low, 1e-9)


def toy_pool(sizes: Sequence[int] = (6, 5, 4), known: int = 2, alone: int = 2, seed: int = 0) -> ToyPool:
    """Heaps of points, each a group; then points of known classes, and points far from everything."""
    generator = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    centres = 5 * np.column_stack([np.arange(len(sizes)), np.arange(len(sizes)) % 2])
    heaps = centres[labels] + generator.normal(0, 0.4, (len(labels), 2))
    others = 50 + 9 * generator.random((known + alone, 2))
    ends = np.repeat([known_label(0), ALONE], (known, alone))
    return ToyPool(np.concatenate([heaps, others]), np.concatenate([labels, ends]))


def write_discovery(
    folder: Path, pool: ToyPool, *, paths: Sequence[str] = (), photos: bool = True, size: int = 24
) -> Path:
    """The files that `medi discover` writes, and photos in one colour a group."""
    out, novel, classes = folder / "out", folder / "novel", folder / "known"
    names = list(paths) or [f"{number:03}.jpg" for number in range(len(pool))]
    out.mkdir(parents=True)
    novel.mkdir()
    for name in pool.names:
        (classes / name).mkdir(parents=True)
    generator = np.random.default_rng(1)
    with (out / "clusters.csv").open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for item, (name, label) in enumerate(zip(names, pool.labels.tolist(), strict=True)):
            kind, sure = kind_of(label), pool.confidence[item] if len(pool.confidence) else generator.uniform(0.5, 1)
            known = pool.names[known_label(0) - label] if kind == "known" else ""
            row = [name, kind, label if kind == "novel" else "", known, f"{sure:.4f}"]
            writer.writerow([*row, pool.names[item % len(pool.names)]])
            if photos:
                (novel / name).parent.mkdir(parents=True, exist_ok=True)
                colour = tuple(int(c) for c in np.random.default_rng(label + 2).integers(60, 200, 3))
                picture = Image.new("RGB", (size, size * 3 // 4), colour)
                picture.putpixel((item % size, 0), (item % 256, 255, 0))
                is_jpeg = name.endswith((".jpg", ".jpeg"))  # with a comment no two are the same
                picture.save(novel / name, "JPEG" if is_jpeg else None, comment=f"photo {item}")
    facts = {"arguments": {"known": str(classes), "novel": str(novel), "out": str(out)}, "groups": [], "n_classes": 0}
    (out / "discovery.json").write_text(json.dumps(facts))
    return out


def made_up_review(folder: Path, pool: ToyPool | None = None, *, learning: bool = True, **options) -> Review:
    pool = pool or toy_pool()
    return Review(read_folder(write_discovery(folder, pool, **options)), pool if learning else None)


def act(review: Review, action: str, **arguments) -> dict:
    review.act({"seq": review.history.seq, "action": action, **arguments})
    return review.state()


def engine_review(folder: Path, points: np.ndarray, ask: Ask, known: np.ndarray | None = None) -> Review:
    """Points (n, d) grouped by the engine that people have, beside known classes (classes, items, d)."""
    known = np.zeros((0, 1, points.shape[1])) if known is None else known
    classes, items, width = known.shape
    grouper = PosteriorGrouper((), known.reshape(-1, width), np.repeat(np.arange(classes), items))
    grouping = grouper.group(points, Anchors(known.mean(1), np.full(classes, float(items))), ask)
    drawn = ToyPool(points, grouping.labels, confidence=grouping.confidence)
    pool = SavedPool(grouping, np.arange(len(points)), drawn.positions(), drawn.names[:classes])
    return Review(read_folder(write_discovery(folder, drawn)), pool)


def review_with_a_known_one(folder: Path) -> Review:
    """Two new classes, and a photo between the first and a known class: where it belongs is a question."""
    generator, corners = np.random.default_rng(0), 4 * np.eye(8)
    known = corners[2:4, None] + generator.normal(size=(2, 20, 8))
    new = corners[:2, None] + generator.normal(size=(2, 12, 8))
    between = 0.35 * corners[0] + 0.65 * corners[2]
    middle = known.mean((0, 1))
    length = np.sqrt(np.square(known - middle).sum(-1).mean())
    points = (np.concatenate([*new, [between]]) - middle) / length
    return engine_review(folder, points, Ask(only_novel=False), (known - middle) / length)
