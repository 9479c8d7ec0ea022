"""What every embedding owes to the others: points of items, one by one, that can be saved; and methods from files."""

import json

import pytest
import torch
from small_sets import KNOWN, NOVEL, generator, patterns

from medi.core.errors import InputError
from medi.data.imageset import ImageSet
from medi.methods import Plan, method_of
from medi.methods.embedding import PixelEmbedding
from medi.methods.kmeans import KMeans
from medi.methods.mm_learner import ReferenceEmbedding
from medi.methods.readout import Readout, ReadoutEmbedding
from medi.methods.teacher import unpack_step
from medi.nn import Network, build
from medi.nn.embed import Embedding, NetworkEmbedding

IMAGES = patterns()


def unpacked(kind: str, tensors: dict[str, torch.Tensor], facts: dict) -> Embedding:
    return unpack_step(kind, {name: tensor.numpy() for name, tensor in tensors.items()}, facts).embedding


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
        again = unpacked(kind, tensors, json.loads(json.dumps(facts)))
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
            unpacked(kind, some, others)
    with pytest.raises(KeyError):
        unpacked("pixel", tensors, facts)


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
