from __future__ import annotations

import pytest
import torch
from torch.nn.functional import avg_pool2d, normalize

from medi.core.errors import InputError
from medi.data.imageset import ImageSet
from medi.data.rules import RULES, rules


@pytest.fixture(scope="module")
def sets() -> tuple[ImageSet, ImageSet]:
    return rules()


@pytest.fixture(params=[0, 1], ids=["known", "novel"])
def part(request: pytest.FixtureRequest, sets: tuple[ImageSet, ImageSet]) -> ImageSet:
    return sets[request.param]


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
    few, many = (rules(known_images=known, novel_images=2)[1] for known in (1, 4))
    assert torch.equal(few.images, many.images)


def colours(images: torch.Tensor) -> torch.Tensor:
    """The mean colour of the object: paper and frame are grey."""
    pixels = images.flatten(2)  # (n, 3, 1024)
    strong = (pixels.amax(dim=1, keepdim=True) - pixels.amin(dim=1, keepdim=True) > 50).float()
    return (pixels * strong).sum(dim=2) / strong.sum(dim=2)


def margins(images: torch.Tensor) -> torch.Tensor:
    margin = torch.ones(32, 32, dtype=torch.bool)
    margin[7:-7, 7:-7] = False
    return avg_pool2d(images, 5, stride=1, padding=2).mean(dim=1)[:, margin]


def silhouettes(images: torch.Tensor) -> torch.Tensor:
    silhouette = (images.amax(dim=1) - images.amin(dim=1) > 50).float()
    return normalize(avg_pool2d(silhouette[:, None], 3, stride=1, padding=1).flatten(1))


@pytest.mark.parametrize(("rule", "look"), [("colour", colours), ("frame", margins), ("shape", silhouettes)])
def test_what_the_attributes_say_can_be_read_off_the_pixels(part: ImageSet, rule: str, look) -> None:
    accuracy = _accuracy_of_nearest_mean(look(part.images.float()), part.attributes[rule])
    assert accuracy > (0.8 if rule == "shape" else 0.9)


def _accuracy_of_nearest_mean(features: torch.Tensor, values: torch.Tensor) -> float:
    """Fit on even items, score on odd ones: features (n, d), values (n,)."""
    kinds = torch.tensor(sorted(set(values.tolist())))
    means = torch.stack([features[::2][values[::2] == kind].mean(dim=0) for kind in kinds])
    nearest = kinds[torch.cdist(features[1::2], means).argmin(dim=1)]
    return float((nearest == values[1::2]).float().mean())


@pytest.mark.parametrize("name", ["known_images", "novel_images"])
def test_impossible_numbers_are_refused_by_name(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is 0.*at least one"):
        rules(**{name: 0})
