"""`medi assign`: recognise discovered groups and known classes in new photos, however many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from glob import escape
from pathlib import Path

from medi.core.errors import InputError
from medi.core.files import make_folder, remove_leftovers, write_atomically
from medi.core.progress import Reporter
from medi.core.reading import input_errors
from medi.discover.accepted import group_names
from medi.discover.arguments import AssignArguments, Manner
from medi.discover.model_folder import load_model, with_features
from medi.discover.output import read_csv, write_csv
from medi.discover.parallel_encoding import check_ways, encode_together, warn_of_lost
from medi.grouping.recogniser import Guess
from medi.jobs import ranks
from medi.photos.cache import PhotoCache
from medi.photos.encode_folder import EncodedPhotos, make_thumbnails, read_shards
from medi.photos.encoders import Encoder
from medi.photos.features_file import Features, read_features
from medi.photos.folders import Found, Skipped, find_photos

ASSIGNED_COLUMNS = (
    "path", "kind", "label", "confidence", "second_kind", "second_label", "second_confidence", "confidence_means",
    "likeliest", "likeliest_confidence",
)  # fmt: skip
MEANING = {
    "novel": "how probable it is that it belongs to this group",
    "known": "how probable it is that it belongs to this class",
    "none": "how probable it is that it belongs to none; the second guess is what it is nearest to",
}
UNSURE = "how probable it is that the likeliest answer is wrong, which is less sure than asked"
RenderPage = Callable[..., str]
"""Makes a page of the rows of the table, thumbnails by path, skipped files, whether answers are calibrated, and how
sure they had to be."""


@dataclass(frozen=True)
class Assigned:
    """How many photos are of each kind, and what could not be read."""

    kinds: Counter[str]
    skipped: Sequence[Skipped]


def run_assign(arguments: AssignArguments, render: RenderPage, reporter: Reporter, manner: Manner) -> Assigned | None:
    """Write one row a photo: path, kind (`novel`, `known` or `none`), label, confidence, and the second guess.

    With `page` also a page that `render` makes of them.
    Memory holds one shard of photos at a time. Under torchrun all ranks encode, and all but the first get None.
    """
    check_ways(manner.ray)
    model, images, out = arguments.model, arguments.images, arguments.out
    found = find_photos(images, "--images")
    if not found.paths:
        raise InputError(f"--images {images} has no photos: give a folder that has some.")
    page = arguments.page
    _check_free(out, "--out", "a CSV file", force=manner.force)
    if page is not None:
        _check_free(page, "--page", "an HTML file", force=manner.force)
        if page.resolve() == out.resolve():
            raise InputError(f"--page {page} is --out too: give it another name.")
        make_folder(page.parent)
    make_folder(out.parent)
    given = read_features(arguments.features, manner.ray) if arguments.features else None
    with ranks.joined("auto"):
        recogniser, made_with = load_model(model, "auto")
        encoder = with_features(model, made_with, given)
        if isinstance(encoder, Features):
            encoder.check(found)
        if manner.verbose:
            reporter.say(f"Features: {encoder.describe()}.")
        together = encode_together([found], encoder, "auto", manner.ray, reporter)
        first = ranks.is_first()
    if not first:
        return None
    remove_leftovers(out.parent, escape(out.name))
    answers = partial(recogniser.recognise, none_rate=arguments.none_rate, sure=arguments.sure)
    kinds, skipped, computed = Counter[str](), list(found.skipped), 0
    names = group_names(model)
    rate = "" if arguments.none_rate is None else f"; where {arguments.none_rate:g} of those that belong may be none"

    def rows() -> Iterator[tuple[str, ...]]:
        nonlocal computed
        for shard in _shards(found, encoder, reporter):
            skipped.extend(shard.skipped)
            computed += shard.computed
            for path, answer in zip(shard.paths, answers(shard.arrays), strict=True):
                guesses = _named(answer, names), _named(answer.second, names)
                kinds[guesses[0].kind] += 1
                cells = [cell for guess in guesses for cell in (guess.kind, guess.label, f"{guess.confidence:.4f}")]
                likeliest = _named(answer.unsure or answer, names)
                meaning = (UNSURE if answer.unsure else MEANING[guesses[0].kind]) + rate
                yield path, *cells, meaning, likeliest.label, f"{likeliest.confidence:.4f}"
        if not kinds:
            bad = skipped[len(found.skipped)]
            raise InputError(
                f"none of the {len(skipped)} files in --images {images} can be read "
                f"({bad.path}: {bad.reason}): replace them."
            )

    write_csv(out, ASSIGNED_COLUMNS, rows())
    if page is not None:
        remove_leftovers(page.parent, escape(page.name))
        html = render(
            partial(read_csv, out),
            partial(make_thumbnails, images),
            skipped,
            calibrated=recogniser.calibrated,
            sure=arguments.sure,
        )
        write_atomically(page, html.encode(errors="replace"))
    if together:
        warn_of_lost(computed, reporter)
    return Assigned(kinds, skipped)


def _check_free(path: Path, flag: str, what: str, *, force: bool) -> None:
    with input_errors(path, "write"):
        if path.is_dir():
            raise InputError(f"{flag} {path} is a folder: give the name of {what}.")
        if path.exists() and not force:
            raise InputError(f"{flag} {path} exists: choose another name, or replace it with --force.")


def _named(guess: Guess, names: Mapping[int, str]) -> Guess:
    """A group that a person accepted is a known class by its name."""
    if guess.kind == "novel" and int(guess.label) in names:
        return Guess("known", names[int(guess.label)], guess.confidence)
    return guess


def _shards(found: Found, encoder: Encoder, reporter: Reporter) -> Iterator[EncodedPhotos]:
    if isinstance(encoder, Features):
        return encoder.shards(found, reporter, title="reading photos")
    return read_shards(found, encoder, PhotoCache(encoder.identity, reporter), reporter)
