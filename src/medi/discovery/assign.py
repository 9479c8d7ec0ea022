"""`medi assign`: recognise discovered groups and known classes in new photos, however many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from medi.discovery.accepted import group_names
from medi.discovery.model_folder import load_model, with_features
from medi.discovery.output import write_csv
from medi.discovery.parallel_encoding import encode_together, on_ray, warn_of_lost
from medi.discovery.recogniser import Guess
from medi.discovery.recognition import NONE_RATE
from medi.errors import InputError
from medi.photos.cache import PhotoCache
from medi.photos.encode_folder import EncodedPhotos, read_shards
from medi.photos.encoders import Encoder
from medi.photos.features_file import Features, read_features
from medi.photos.folders import Found, Skipped, find_photos
from medi.runtime import ranks
from medi.runtime.devices import choose_device
from medi.runtime.files import input_errors, make_folder, remove_leftovers
from medi.runtime.progress import Reporter

COLUMNS = (
    "path", "kind", "label", "confidence", "second_kind", "second_label", "second_confidence", "confidence_means"
)  # fmt: skip
MEANING = {
    "novel": "how probable it is that it belongs to this group",
    "known": "how probable it is that it belongs to this class",
    "none": "how probable it is that it belongs to none; the second guess is what it is nearest to",
}


@dataclass(frozen=True)
class Assigned:
    """How many photos are of each kind, and what could not be read."""

    kinds: Counter[str]
    skipped: Sequence[Skipped]


def run_assign(
    model: Path,
    images: Path,
    out: Path,
    reporter: Reporter,
    *,
    none_rate: float = NONE_RATE,
    force: bool = False,
    ray: str | None = None,
    features: Sequence[Path] = (),
    verbose: bool = False,
) -> Assigned | None:
    """Write one row a photo: path, kind (`novel`, `known` or `none`), label, confidence, and the second guess.

    Memory holds one shard of photos at a time. Under torchrun all ranks encode, and all but the first get None.
    A model whose features were made elsewhere needs `features`, files with those of the new photos. `verbose` says
    what runs the encoder, where it comes from, and its licence.
    """
    found = find_photos(images, "--images")
    if not found.paths:
        raise InputError(f"--images {images} has no photos: give a folder that has some.")
    with input_errors(out, "write"):
        if out.is_dir():
            raise InputError(f"--out {out} is a folder: give the name of a CSV file.")
        if out.exists() and not force:
            raise InputError(f"--out {out} exists: choose another name, or replace it with --force.")
    make_folder(out.parent)
    given = read_features(features, ray) if features else None
    device = choose_device("auto")
    workers = None if ray is None else on_ray(ray, "auto")
    with ranks.joined(device):
        recogniser, made_with = load_model(model, device)
        encoder = with_features(model, made_with, given)
        if isinstance(encoder, Features):
            encoder.check(found)
        if verbose:
            reporter.say(f"Features: {encoder.describe()}.")
        together = encode_together([found], encoder, "auto", workers, reporter)
        first = ranks.is_first()
    if not first:
        return None
    remove_leftovers(out.parent, escape(out.name))
    kinds, skipped, computed = Counter[str](), list(found.skipped), 0
    names = group_names(model)

    def rows() -> Iterator[tuple[str, ...]]:
        nonlocal computed
        for shard in _shards(found, encoder, reporter):
            skipped.extend(shard.skipped)
            computed += shard.computed
            for path, answer in zip(shard.paths, recogniser.recognise(shard.arrays, none_rate), strict=True):
                guesses = _named(answer, names), _named(answer.second, names)
                kinds[guesses[0].kind] += 1
                cells = [cell for guess in guesses for cell in (guess.kind, guess.label, f"{guess.confidence:.4f}")]
                yield path, *cells, MEANING[guesses[0].kind]
        if not kinds:
            bad = skipped[len(found.skipped)]
            raise InputError(
                f"none of the {len(skipped)} files in --images {images} can be read "
                f"({bad.path}: {bad.reason}): replace them."
            )

    write_csv(out, COLUMNS, rows())
    if together:
        warn_of_lost(computed, reporter)
    return Assigned(kinds, skipped)


def _named(guess: Guess, names: Mapping[int, str]) -> Guess:
    """A group that a person accepted is a known class by its name."""
    if guess.kind == "novel" and int(guess.label) in names:
        return Guess("known", names[int(guess.label)], guess.confidence)
    return guess


def _shards(found: Found, encoder: Encoder, reporter: Reporter) -> Iterator[EncodedPhotos]:
    if isinstance(encoder, Features):
        return encoder.shards(found.root, found.paths, reporter, title="reading photos")
    return read_shards(found.root, found.paths, encoder, PhotoCache(encoder.identity, reporter), reporter)
