import pytest
import torch

from medi.core.errors import InputError
from medi.data.imageset import ImageSet


def some(n: int = 12, classes: int = 3) -> ImageSet:
    images = torch.arange(n * 16, dtype=torch.uint8).reshape(n, 1, 4, 4)
    return ImageSet(images, torch.arange(n) % classes, tuple("abcdef"[:classes]), {"size": torch.arange(n)})


def test_classes_are_picked_and_renumbered_in_the_order_given():
    picked = some().of_classes([2, 0])
    assert picked.class_names == ("c", "a")
    assert picked.labels.tolist() == [1, 0, 1, 0, 1, 0, 1, 0]
    assert picked.attributes["size"].tolist() == [0, 2, 3, 5, 6, 8, 9, 11]


def test_rotations_make_four_times_the_classes_each_turned_a_quarter_further():
    plain = some()
    turned = plain.with_rotations()
    assert turned.n_classes == 12
    assert len(turned) == 48
    for quarter in range(4):
        part = slice(12 * quarter, 12 * (quarter + 1))
        assert torch.equal(turned.images[part], torch.rot90(plain.images, quarter, (2, 3)))
        assert torch.equal(turned.labels[part], plain.labels + 3 * quarter)
    assert len(set(turned.class_names)) == 12


def test_items_of_no_known_class_stay_so():
    plain = some()
    plain.labels[:2] = -1
    assert plain.of_classes([2]).labels.tolist() == [0, 0, 0, 0]
    assert (plain.with_rotations().labels == -1).sum() == 8


def test_sets_that_do_not_add_up_are_refused():
    with pytest.raises(InputError, match="3 items but 2 labels"):
        ImageSet(torch.zeros(3, 1, 2, 2), torch.tensor([0, 0]), ("a",))
    with pytest.raises(InputError, match="label 1 but only 1 class names"):
        ImageSet(torch.zeros(2, 1, 2, 2), torch.tensor([0, 1]), ("a",))


@pytest.mark.parametrize("kind", [torch.uint8, torch.float32, torch.float64])
def test_a_fingerprint_is_of_every_pixel_in_its_place_however_many_items_there_are(kind):
    images = torch.randint(0, 256, (3000, 3, 4, 4), generator=torch.Generator().manual_seed(0)).to(kind)
    labels = torch.arange(3000) % 2

    def fingerprint(images, labels=labels, names=("a", "b")):
        return ImageSet(images, labels, names).fingerprint()

    one = images.clone()
    one[2999, 2, 3, 3] += 1
    others = [images.flip(-1), images.flip(1), images.flip(0), images.transpose(2, 3), one]
    found = {fingerprint(images), *map(fingerprint, others), fingerprint(images, 1 - labels)}
    found.add(fingerprint(images, names=("a", "c")))
    assert len(found) == 8
    assert fingerprint(images.clone()) == fingerprint(images)


def test_all_classes_in_their_order_are_the_set_itself():
    known = ImageSet(torch.zeros(4, 1, 2, 2, dtype=torch.uint8), torch.tensor([1, 0, 1, 0]), ("a", "b"))
    assert known.of_classes([0, 1]) is known
    assert known.of_classes([1, 0]).labels.tolist() == [0, 1, 0, 1]
    unlabelled = ImageSet(known.images, torch.tensor([1, -1, 0, 0]), ("a", "b"))
    assert len(unlabelled.of_classes([0, 1])) == 3
