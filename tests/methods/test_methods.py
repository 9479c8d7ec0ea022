"""What every method and every embedding owes to the others: points of items, one by one, that can be saved."""

import json
from dataclasses import dataclass

import pytest
import torch
from small_sets import KNOWN, NOVEL, generator, patterns

from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods import METHODS, Plan, method_of, unpack_embedding
from medi.methods.dtc import DTC
from medi.methods.embedding import PixelEmbedding
from medi.methods.inner_steps import InnerSteps
from medi.methods.kcl import KCL
from medi.methods.kmeans import KMeans
from medi.methods.mcl import MCL
from medi.methods.medi import Medi, Member
from medi.methods.mm import MM
from medi.methods.mm_learner import ReferenceEmbedding
from medi.methods.mp import MP
from medi.methods.pretraining import Pretraining
from medi.methods.readout import Readout, ReadoutEmbedding
from medi.methods.rs import RS
from medi.methods.simgcd import SimGCD
from medi.methods.similarity import Similarity
from medi.methods.uno import UNO
from medi.nets import Network, build
from medi.nets.embed import Embedding, NetworkEmbedding
from medi.train.schedule import Schedule

IMAGES = patterns()
STEP = Schedule(steps=2)
CLASSES = Pretraining(network="mlp", batch=16, schedule=STEP)
PAIRS = Similarity("mlp", classes=3, each=2, schedule=STEP)
TINY = {
    method.name: method
    for method in (
        DTC(CLASSES),
        KCL(PAIRS),
        KMeans(CLASSES),
        MCL(PAIRS),
        Medi((Member((CLASSES,), "none"),)),
        MM(network="mlp", inner=InnerSteps(steps=1), tasks=2, schedule=STEP),
        MP(network="mlp", queries=2, schedule=STEP),
        RS(CLASSES, None),
        SimGCD(CLASSES),
        UNO(CLASSES),
    )
}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_ends_in_points_of_single_items_that_can_be_saved(name):
    learner = TINY[name].fit(KNOWN, Plan(way=3, observations=2, queries=3))
    points = learner.embedding(NOVEL.images)
    assert points.shape == (30, 256)
    assert points.isfinite().all()
    assert torch.allclose(learner.embedding(NOVEL.images[4:5]), points[4:5], atol=1e-4)
    assert learner.network == learner.embedding.network_name == "mlp"
    again = unpack_embedding(learner.embedding.kind, *learner.embedding.pack())
    assert torch.allclose(again(NOVEL.images).float(), points, atol=1e-5)


def network(known: ImageSet, name: str, seed: int = 0, **options: object) -> Network:
    """A network that has seen a batch: its norm layers have averages of their own."""
    made = build(name, tuple(known.images.shape[1:]), seed=seed, **options)
    made(torch.randn(known.images[:9].shape, generator=generator(seed)))
    return made


def embedding_of(kind: str, known: ImageSet) -> Embedding:
    name = "conv4" if known is IMAGES else "mlp"
    if kind == "network":
        return NetworkEmbedding(network(known, name, embedding=5))
    if kind == "pixels":
        return PixelEmbedding()
    if kind == "reference":
        return ReferenceEmbedding.of(network(known, name, norm="batch"), known)
    readout = Readout(levels=2, flip=True, turned=True) if known is IMAGES else Readout(weigh=0.1)
    return ReadoutEmbedding.fit([network(known, name, seed) for seed in (0, 1)], known, readout)


KINDS = ("network", "pixels", "readout", "reference")


@pytest.mark.parametrize("known", [IMAGES, KNOWN], ids=["images", "vectors"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_unpacked_embedding_gives_the_same_points(kind, known):
    embedding, items = embedding_of(kind, known), known.images[:6]
    points = embedding(items)
    for packed in (embedding, embedding.exact()):
        tensors, facts = packed.pack()
        again = unpack_embedding(kind, tensors, json.loads(json.dumps(facts)))
        assert torch.allclose(again(items).float(), points, atol=1e-5)
        assert again.network_name == embedding.network_name
    assert torch.equal(again(items), packed(items))
    assert torch.equal(embedding(items), points), "what was packed stays as it was"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pixels"])
def test_exact_points_of_vectors_are_float64_and_do_not_depend_on_the_batch(kind):
    exact = embedding_of(kind, KNOWN).exact()
    points = exact(KNOWN.images)
    assert points.dtype == torch.float64
    for batch in (slice(0, 1), slice(3, 20)):
        assert torch.allclose(exact(KNOWN.images[batch]), points[batch], rtol=1e-12, atol=1e-13)


def without(mapping: dict, name: str) -> dict:
    return {key: value for key, value in mapping.items() if key != name}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pixels"])
def test_a_damaged_pack_is_refused(kind):
    tensors, facts = embedding_of(kind, KNOWN).pack()
    damaged = [(without(tensors, name), facts) for name in tensors if "num_batches" not in name]
    damaged += [(tensors, without(facts, name)) for name in facts]
    damaged += [(tensors, {**facts, name: None}) for name in facts]
    weight = next(name for name, tensor in tensors.items() if tensor.ndim == 2)
    damaged += [({**tensors, weight: tensors[weight][:, 1:]}, facts)]
    for some, others in damaged:
        with pytest.raises((KeyError, TypeError, ValueError, RuntimeError)):
            unpack_embedding(kind, some, others)
    with pytest.raises(KeyError):
        unpack_embedding("pixel", tensors, facts)


def test_unknown_methods_suggest_the_nearest():
    with pytest.raises(InputError, match="did you mean 'kmeans'"):
        method_of("kmean")


OWN = """
from medi.methods.kmeans import KMeans

class Own(KMeans):
    pass

def helper():
    pass
"""


def test_a_method_may_come_from_a_file_of_the_users_own(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    method = method_of(f"{tmp_path / 'own.py'}:Own")
    assert issubclass(method, KMeans)
    assert method is method_of(f"{tmp_path / 'own.py'}:Own")
    assert method.name == "own"
    assert KMeans.version != method.version, "the method it is made of stays as it was"
    learner = method().fit(KNOWN, Plan(3, 2))
    assert torch.equal(learner.encode(NOVEL.images), NOVEL.images)


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (OWN, "Owm", r"own\.py 'Owm'.*Own"),
        (OWN, "KMeans", r"own\.py 'KMeans'"),
        (OWN, "helper", "no subclass of medi.methods.Method"),
        ("1 / 0", "Own", r"own\.py cannot be imported \(ZeroDivisionError: division by zero\)"),
        (None, "Own", r"there is no file .*own\.py"),
    ],
)
def test_a_file_without_the_method_is_refused_by_name(content, name, message, tmp_path):
    if content is not None:
        (tmp_path / "own.py").write_text(content)
    with pytest.raises(InputError, match=message):
        method_of(f"{tmp_path / 'own.py'}:{name}")


def test_a_subclass_of_a_method_has_its_presets_but_is_itself():
    @dataclass(frozen=True)
    class Mine(METHODS["mp"]):
        more: int = 3

    mine = Mine.preset("default", "glyphs")
    assert type(mine) is Mine
    assert (mine.more, mine.images) == (3, METHODS["mp"].preset("cpu").images)
