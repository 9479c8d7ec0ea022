"""Features computed by several processes: `torchrun … -m medi discover`, or `--ray`.

Each takes whole shards and puts their features into the cache, where the process that goes on finds them: it reads the
photos again as if they had been encoded by an earlier run. So nothing depends on who did what, a shard that is lost is
encoded by whoever needs it, and a job that was stopped continues on any number of processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from medi.discovery.model_folder import choose_encoder
from medi.errors import InputError
from medi.photos.cache import FeatureCache
from medi.photos.encode_folder import SHARD, read_shards
from medi.photos.encoders import Encoder
from medi.photos.folders import Found
from medi.runtime import ranks
from medi.runtime.devices import choose_device
from medi.runtime.progress import Reporter, Silent
from medi.runtime.ray_workers import RayWorkers


@dataclass(frozen=True)
class Order:
    """A shard to be encoded elsewhere.

    Attributes:
        root: The folder, absolute.
        paths: Photos in it.
        encoder: Its name, from which it is made there.
        identity: What it must be there as well.
        device: Where to work: auto, cpu or cuda.
    """

    root: str
    paths: tuple[str, ...]
    encoder: str
    identity: str
    device: str

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
        encoded = _encode(Path(wanted.root), wanted.paths, encoder, _kept(encoder.identity), Silent())
        return json.dumps({"rows": [{"encoded": encoded}]})
    except InputError as error:
        return json.dumps({"error": str(error)})


@cache
def _encoder(name: str, device: str) -> Encoder:
    return choose_encoder(name, choose_device(device))


@cache
def _kept(identity: str) -> FeatureCache:
    """Opened once by a worker, not for every shard: that takes as long as there are shards."""
    return FeatureCache(identity, Silent())


def on_ray(address: str, device: str) -> RayWorkers:
    """A Ray cluster that encodes shards, each on a GPU where this machine has one too."""
    if ranks.asked_for() > 1:
        raise InputError("torchrun and --ray are two ways to share the work: use one of them.")
    gpus = float(choose_device(device).type == "cuda")
    return RayWorkers(address, 1, gpus, do, what="shards of photos", again="start again")


def share(
    folders: Sequence[Found], encoder: Encoder, device: str, spread: RayWorkers | None, reporter: Reporter
) -> bool:
    """Have the features of all photos computed by all processes there are; returns whether there are others."""
    if spread is not None:
        name = str(Path(encoder.name).resolve()) if encoder.folder else encoder.name
        orders = [
            Order(str(found.root.resolve()), tuple(shard), name, encoder.identity, device)
            for found in folders
            for shard in shards(found.paths)
        ]
        for _ in spread(orders, reporter):
            pass
    elif ranks.count() > 1:
        for found in folders:
            mine = [path for shard in list(shards(found.paths))[ranks.rank() :: ranks.count()] for path in shard]
            _encode(found.root, mine, encoder, FeatureCache(encoder.identity, reporter), reporter)
        ranks.wait()
    return spread is not None or ranks.count() > 1


def shards(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    """The paths, as many at a time as are kept together."""
    for start in range(0, len(paths), SHARD):
        yield paths[start : start + SHARD]


def _encode(root: Path, paths: Sequence[str], encoder: Encoder, kept: FeatureCache, reporter: Reporter) -> int:
    """Put the features of photos into the cache; returns how many were not there."""
    return sum(shard.encoded for shard in read_shards(root, paths, encoder, kept, reporter, title="encoding photos"))


def complain(encoded: int, reporter: Reporter) -> None:
    """Say that photos had to be encoded although others had done it."""
    if encoded:
        reporter.say(
            f"{encoded} photos were encoded again here: features of the other processes did not arrive. "
            "Let MEDI_CACHE name a folder that all of them share."
        )
