from __future__ import annotations

import pytest
import torch

from medi.core.errors import InputError
from medi.data.imageset import ImageSet
from medi.data.rules import COLOURS, FRAMES, RULES, SHAPES, rules


@pytest.fixture(scope="module")
def sets() -> tuple[ImageSet, ImageSet]:
    return rules()


@pytest.fixture(params=[0, 1], ids=["known", "novel"])
def part(request: pytest.FixtureRequest, sets: tuple[ImageSet, ImageSet]) -> ImageSet:
    return sets[request.param]


def test_attributes_are_indices_into_the_named_values(part: ImageSet) -> None:
    assert set(part.attributes) == {"colour", "shape", "frame", "rule"}
    for name, values in {"colour": COLOURS, "shape": SHAPES, "frame": FRAMES, "rule": tuple(RULES)}.items():
        assert part.attributes[name].shape == (len(part),)
        assert part.attributes[name].dtype == torch.int64
        assert 0 <= part.attributes[name].min() <= part.attributes[name].max() < len(values)


def test_there_are_five_classes_of_every_rule_and_as_many_images_as_asked_for() -> None:
    known, novel = rules(known_images=3, novel_images=2)
    assert known.labels.bincount().tolist() == [3] * 15
    assert novel.labels.bincount().tolist() == [2] * 15


def test_a_class_is_one_value_of_its_rule_and_anything_else(part: ImageSet) -> None:
    for label, class_name in enumerate(part.class_names):
        own, value = class_name.split(": ")
        items = part.of_classes([label])
        assert set(items.attributes["rule"].tolist()) == {list(RULES).index(own)}
        assert set(items.attributes[own].tolist()) == {RULES[own].index(value)}
        for other in set(RULES) - {own}:
            assert len(set(items.attributes[other].tolist())) == 5


def test_known_and_novel_share_no_value(sets: tuple[ImageSet, ImageSet]) -> None:
    known, novel = sets
    assert not set(known.class_names) & set(novel.class_names)
    for rule in RULES:
        assert not set(known.attributes[rule].tolist()) & set(novel.attributes[rule].tolist())


def test_the_same_seed_gives_the_same_images_and_another_seed_others(sets: tuple[ImageSet, ImageSet]) -> None:
    for first, again, other in zip(sets, rules(), rules(seed=1), strict=True):
        assert torch.equal(first.images, again.images)
        assert not torch.equal(first.images, other.images)


def test_novel_images_do_not_depend_on_the_number_of_known_ones() -> None:
    _, few = rules(known_images=1, novel_images=2)
    _, many = rules(known_images=4, novel_images=2)
    assert torch.equal(few.images, many.images)


def test_colour_can_be_read_off_the_pixels(part: ImageSet) -> None:
    pixels = part.images.float().flatten(2)  # (n, 3, 1024)
    saturation = pixels.amax(dim=1, keepdim=True) - pixels.amin(dim=1, keepdim=True)
    strong = (saturation > 50).float()  # the object: paper and frame are grey
    colour = (pixels * strong).sum(dim=2) / strong.sum(dim=2)
    assert _accuracy_of_nearest_mean(colour, part.attributes["colour"]) > 0.9


def test_frame_can_be_read_off_the_margin(part: ImageSet) -> None:
    margin = torch.ones(32, 32, dtype=torch.bool)
    margin[7:-7, 7:-7] = False
    blurred = torch.nn.functional.avg_pool2d(part.images.float(), 5, stride=1, padding=2).mean(dim=1)
    assert _accuracy_of_nearest_mean(blurred[:, margin], part.attributes["frame"]) > 0.9


def test_shape_can_be_read_off_the_silhouette(part: ImageSet) -> None:
    images = part.images.float()
    silhouette = (images.amax(dim=1) - images.amin(dim=1) > 50).float()
    blurred = torch.nn.functional.avg_pool2d(silhouette[:, None], 3, stride=1, padding=1).flatten(1)
    assert _accuracy_of_nearest_mean(torch.nn.functional.normalize(blurred), part.attributes["shape"]) > 0.8


def _accuracy_of_nearest_mean(features: torch.Tensor, values: torch.Tensor) -> float:
    """Fit on even items, score on odd ones: features (n, d), values (n,)."""
    kinds = torch.tensor(sorted(set(values.tolist())))
    means = torch.stack([features[::2][values[::2] == kind].mean(dim=0) for kind in kinds])
    nearest = kinds[torch.cdist(features[1::2], means).argmin(dim=1)]
    return float((nearest == values[1::2]).float().mean())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"known_images": 0}, "known_images is 0.*at least one"),
        ({"novel_images": -1}, "novel_images is -1.*at least one"),
    ],
)
def test_impossible_numbers_are_refused_by_name(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rules(**arguments)
