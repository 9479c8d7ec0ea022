"""Photos encoded by several processes: `torchrun … -m medi discover`, or `--ray`.

Each process takes whole shards and puts their features into the cache. The process that goes on then reads the photos
as if an earlier run had encoded them. So the result does not depend on who encoded what, a shard that was lost is
encoded by whoever needs it, and a job that was stopped continues on any number of processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from medi.core.errors import InputError
from medi.core.progress import Reporter, Silent
from medi.discover.model_folder import choose_encoder
from medi.jobs import ranks
from medi.jobs.ray_workers import RayWorkers
from medi.photos.cache import THUMBNAILS, PhotoCache
from medi.photos.encode_folder import SHARD, read_shards
from medi.photos.encoders import Encoder
from medi.photos.folders import Found


@dataclass(frozen=True)
class Order:
    """A shard to be encoded elsewhere.

    Attributes:
        root: The folder, absolute.
        paths: Photos in it.
        encoder: Its name, from which it is made there.
        identity: What it must be there as well.
        device: Where to work: auto, cpu or cuda.
        thumbnails: Whether thumbnails are made too.
    """

    root: str
    paths: tuple[str, ...]
    encoder: str
    identity: str
    device: str
    thumbnails: bool = False

    def as_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    def describe(self) -> str:
        """The shard in a few words."""
        return f"{len(self.paths)} photos from {self.root}/{self.paths[0]} on"


def do(order: str) -> str:
    """Do an order; the answer has `rows`, or `error` where the input is at fault."""
    wanted = Order(**json.loads(order))
    try:
        encoder = _encoder(wanted.encoder, wanted.device)
        if encoder.identity != wanted.identity:
            raise InputError(
                f"a Ray worker has the encoder {encoder.identity}, not {wanted.identity}: "
                "install the same versions on every machine."
            )
        computed = _encode(
            Found(Path(wanted.root), list(wanted.paths)),
            encoder,
            _cache(encoder.identity),
            Silent(),
            thumbnails=_cache(THUMBNAILS) if wanted.thumbnails else None,
        )
        return json.dumps({"rows": [{"encoded": computed}]})
    except InputError as error:
        return json.dumps({"error": str(error)})


@cache
def _encoder(name: str, device: str) -> Encoder:
    return choose_encoder(name, device)


@cache
def _cache(name: str) -> PhotoCache:
    """Opened once by a worker, not for every shard: opening takes longer the more shards there are."""
    return PhotoCache(name, Silent())


def check_ways(ray: str | None) -> None:
    """Refuse two ways to share the work, before other processes are waited for."""
    if ray is not None and ranks.asked_for() > 1:
        raise InputError("torchrun and --ray are two ways to share the work: use one of them.")


def encode_together(
    folders: Sequence[Found],
    encoder: Encoder,
    device: str,
    ray: str | None,
    reporter: Reporter,
    *,
    shown: Found | None = None,
) -> bool:
    """Have all photos encoded by all processes there are; whether there are others than this one.

    They are those of a Ray cluster at an address, or those that torchrun started. `shown` is the one of the folders
    whose thumbnails will be needed.
    """
    if ray is not None:
        gpus = float(not encoder.in_threads)  # the encoder uses one there where it uses one here
        workers = RayWorkers(ray, 1, gpus, do, what="shards of photos", again="start again")
        name = str(Path(encoder.name).resolve()) if encoder.folder else encoder.name
        orders = [
            Order(str(found.root.resolve()), tuple(shard), name, encoder.identity, device, found is shown)
            for found in folders
            for shard in shards(found.paths)
        ]
        for _ in workers(orders, reporter):
            pass
    elif ranks.count() > 1:
        for found in folders:
            mine = [path for shard in list(shards(found.paths))[ranks.rank() :: ranks.count()] for path in shard]
            thumbnails = PhotoCache(THUMBNAILS, Silent()) if found is shown else None
            _encode(
                Found(found.root, mine),
                encoder,
                PhotoCache(encoder.identity, reporter),
                reporter,
                thumbnails=thumbnails,
            )
        ranks.wait()
    return ray is not None or ranks.count() > 1


def shards(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    """The paths, as many at a time as are kept together."""
    for start in range(0, len(paths), SHARD):
        yield paths[start : start + SHARD]


def _encode(
    found: Found,
    encoder: Encoder,
    cache: PhotoCache,
    reporter: Reporter,
    *,
    thumbnails: PhotoCache | None,
) -> int:
    """Put the features of photos into the cache; returns how many were not there."""
    encoded = read_shards(found, encoder, cache, reporter, title="encoding photos", thumbnails=thumbnails)
    return sum(shard.computed for shard in encoded)


def warn_of_lost(computed: int, reporter: Reporter) -> None:
    """Say that photos had to be encoded although other processes had done it."""
    if computed:
        reporter.say(
            f"{computed} photos were encoded again here: features of the other processes did not arrive. "
            "Let MEDI_CACHE name a folder that all of them share."
        )
