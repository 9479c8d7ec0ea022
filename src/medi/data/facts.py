"""One table of facts about the benchmarks: classes, splits, archives, checksums, augmentation.

Nothing here imports torch, so that `medi data list` and `--help` answer at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from medi.core.errors import refuse_unknown


@dataclass(frozen=True)
class Augmentation:
    """Which random changes an image may undergo without changing its class.

    Attributes:
        crop: Pixels of reflect padding before a random crop back to size; 0 for none.
        flip: Mirror left-right with probability one half.
        rotate: Largest rotation, in degrees either way.
        scale: Largest relative change of size, 0.1 for 0.9 to 1.1.
        shear: Largest shear, as a tangent.
        shift: Largest shift, as a share of the side.
        colour: Strength of brightness, contrast and saturation jitter, 0.4 for 0.6 to 1.4.
        grey: Probability of dropping colour.
        invert: Probability of inverting brightness (white digits on black are still digits).
        shuffle: Probability of putting the three colour channels into a random order.
        cutout: Side, in pixels, of a square at a random place that is painted mid-grey; it may reach over the border.
    """

    crop: int = 0
    flip: bool = False
    rotate: float = 0.0
    scale: float = 0.0
    shear: float = 0.0
    shift: float = 0.0
    colour: float = 0.0
    grey: float = 0.0
    invert: float = 0.0
    shuffle: float = 0.0
    cutout: int = 0


@dataclass(frozen=True)
class Archive:
    """A file to download."""

    url: str  # its official address
    md5: str  # its checksum
    megabytes: int  # its size, in millions of bytes
    extract: bool = False  # whether it is a tar archive to be unpacked; otherwise it is kept, and read, as it is

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Facts:
    """What is known of a benchmark before a byte of it is read."""

    name: str  # its name on the command line
    title: str  # its name in prose
    channels: int  # 1 (ink bright) or 3
    known: int  # number of known classes: labels 0 to known - 1
    novel: int  # number of novel classes: labels known to known + novel - 1
    way: int  # novel classes in a task, the paper's setting
    augmentation: Augmentation  # what leaves the class of an image alone
    folder: str = ""  # subfolder of the data folder; empty for generated sets
    archives: tuple[Archive, ...] = ()
    # number of records in each file of the whole set, by file name
    records: Mapping[str, int] = field(default_factory=dict)
    # the files of each split ("train": known and, where they exist, novel classes; "test": novel)
    splits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # class names are family/member (alphabet/character); where everything is observed, each family is a task of its own
    families: bool = False
    generator: str = ""  # "module:function" of a set that is made, not downloaded; it returns known and novel images
    small: bool = False  # made for two CPU cores: the preset `cpu` is its default on any device
    licence: str = ""  # terms or origin, one line

    @property
    def generated(self) -> bool:
        """Whether the set is made rather than downloaded."""
        return not self.archives


SIZE = 32
"""Every image is read at SIZE x SIZE."""

QUERIES = 15
"""Query items of each class in a task."""

PHOTO = Augmentation(crop=4, flip=True, colour=0.4)
CROPPED, FLIPPED = Augmentation(crop=4), Augmentation(crop=4, flip=True)
"""What published recipes of novel class discovery do to digits and to photos."""
_DIGIT = Augmentation(crop=2, rotate=10, scale=0.1, shear=0.1, colour=0.4, invert=0.5)
_CHARACTER = Augmentation(rotate=10, scale=0.1, shear=0.1, shift=0.06)

_CIFAR = "https://www.cs.toronto.edu/~kriz/"
_SVHN = "http://ufldl.stanford.edu/housenumbers/"
_OMNIGLOT = "https://github.com/brendenlake/omniglot/raw/master/python/"

BENCHMARKS: Mapping[str, Facts] = MappingProxyType(
    {
        facts.name: facts
        for facts in (
            Facts(
                name="glyphs",
                title="Glyphs",
                channels=1,
                known=0,  # counted when the set is built: it depends on the typefaces installed
                novel=0,
                way=20,
                augmentation=_CHARACTER,
                generator="medi.data.glyphs:glyphs",
                small=True,
                licence="generated from the typefaces that matplotlib ships (DejaVu, STIX)",
            ),
            Facts(
                name="rules",
                title="Rules",
                channels=3,
                known=0,
                novel=0,
                way=5,
                augmentation=Augmentation(crop=2),
                generator="medi.data.rules:rules",
                small=True,
                licence="generated",
            ),
            Facts(
                name="cifar10",
                title="CIFAR-10",
                channels=3,
                known=5,
                novel=5,
                way=5,
                augmentation=PHOTO,
                folder="cifar-10-batches-bin",
                archives=(
                    Archive(_CIFAR + "cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", 170, extract=True),
                ),
                records={**{f"data_batch_{i}.bin": 10_000 for i in range(1, 6)}, "test_batch.bin": 10_000},
                splits={"train": tuple(f"data_batch_{i}.bin" for i in range(1, 6)), "test": ("test_batch.bin",)},
                licence="Krizhevsky 2009",
            ),
            Facts(
                name="cifar100",
                title="CIFAR-100",
                channels=3,
                known=80,
                novel=20,
                way=20,
                augmentation=PHOTO,
                folder="cifar-100-binary",
                archives=(
                    Archive(_CIFAR + "cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8", 169, extract=True),
                ),
                records={"train.bin": 50_000, "test.bin": 10_000},
                splits={"train": ("train.bin",), "test": ("test.bin",)},
                licence="Krizhevsky 2009",
            ),
            Facts(
                name="svhn",
                title="SVHN",
                channels=3,
                known=5,
                novel=5,
                way=5,
                augmentation=_DIGIT,
                folder="svhn",
                archives=(
                    Archive(_SVHN + "train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", 182),
                    Archive(_SVHN + "test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", 64),
                ),
                records={"train_32x32.mat": 73_257, "test_32x32.mat": 26_032},
                splits={"train": ("train_32x32.mat",), "test": ("test_32x32.mat",)},
                licence="Netzer et al. 2011, non-commercial use",
            ),
            Facts(
                name="omniglot",
                title="Omniglot",
                channels=1,
                known=964,
                novel=659,
                way=20,
                augmentation=_CHARACTER,
                folder="omniglot",
                archives=(
                    Archive(_OMNIGLOT + "images_background.zip", "68d2efa1b9178cc56df9314c21c6e718", 9),
                    Archive(_OMNIGLOT + "images_evaluation.zip", "6b91aef0f799c5bb55b94e3f2daec811", 6),
                ),
                records={"images_background.zip": 19_280, "images_evaluation.zip": 13_180},
                splits={"train": ("images_background.zip",), "test": ("images_evaluation.zip",)},
                families=True,
                licence="Lake et al. 2015, MIT",
            ),
        )
    }
)


def facts_of(name: str) -> Facts:
    """The row of a benchmark; an unknown name is an error that suggests the nearest."""
    refuse_unknown("dataset", name, BENCHMARKS)
    return BENCHMARKS[name]
