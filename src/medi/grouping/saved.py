"""What a saved model must keep to before anything is made of it: its file may be damaged, or made by somebody."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medi.grouping.representation import TOO_LARGE
from medi.schemas import fault

Rule = dict[str, Any]
MOST_NUMBERS = 2**26
"""Of one item."""


def _object(**properties: Rule) -> Rule:
    return {"type": "object", "required": [*properties], "properties": properties}


def _number(low: float, high: float) -> Rule:
    return {"type": "number", "minimum": low, "maximum": high}


_COUNT, _YES, _NAMES = (
    {"type": "integer", "minimum": 0},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "string"}},
)
_SHARE = _number(0, 1)
_WEIGHTS = {"type": "array", "items": _number(-TOO_LARGE, TOO_LARGE), "minItems": 3, "maxItems": 5}
_MODEL = _object(share=_number(0, 0.999), dimensions=_number(0, TOO_LARGE), evenness=_number(1e-9, 1e9))
_ODDS = _number(-1e9, 1e9)
_RECOGNITION = _object(power=_number(0, 1e9), none=_ODDS, most=_SHARE)
_RECOGNITION["properties"] |= {"trust": _ODDS, "known": _ODDS}  # not in files of version 0.2.0
_TRUST = _object(temperature=_number(1e-9, 1e9), weights=_WEIGHTS, most=_SHARE)
_SIDES = {"type": "array", "items": _COUNT, "minItems": 1}

GROUPING_RULE = _object(
    k={"type": ["integer", "null"], "minimum": 1},
    only_novel=_YES,
    model=_MODEL,
    trust=_TRUST,
    recognition=_RECOGNITION,
    purity=_object(weights=_WEIGHTS | {"maxItems": 3}, most=_SHARE),
    odds=_object(known=_ODDS, alone=_ODDS),
    naming=_object(own=_SHARE, lead=_ODDS),
    elsewhere=_object(weights=_WEIGHTS | {"maxItems": 3}),
    kinship=_object(weights=_WEIGHTS | {"maxItems": 3}, most=_SHARE),
    shift=_number(-1e3, 1e3),
    shrink=_number(0, 1e3),
    spread=_number(0, 1e3),
    calibrated=_YES,
)
POOL_RULE = _object(grouping=GROUPING_RULE, names=_NAMES)
RECOGNISER_RULE = _object(
    representation=_object(name={"type": "string"}, shape=_SIDES, unit=_YES, root=_YES, scale=_number(0, TOO_LARGE)),
    groups=_COUNT,
    names=_NAMES,
    model=_MODEL,
    recognition=_RECOGNITION,
    calibrated=_YES,
)


def check_facts(facts: Mapping[str, Any], rule: Rule) -> None:
    """ValueError where facts are not as a rule has them.

    >>> check_facts({"most": 1.5}, _object(most=_SHARE))
    Traceback (most recent call last):
    ValueError: most cannot be
    """
    if (place := fault(rule, facts)) is not None:
        raise ValueError(f"{place or 'the facts'} cannot be")
    if prod(facts.get("representation", {}).get("shape", ())) > MOST_NUMBERS:
        raise ValueError("items are too large")


def check_arrays(arrays: Mapping[str, NDArray[Any]], shapes: Mapping[str, str]) -> None:
    """ValueError where numbers are not finite, or arrays do not fit together.

    Args:
        arrays: All of a file.
        shapes: A letter for each dimension of some arrays, the same for what has the same length; a capital letter for
            arrays of whole numbers.

    >>> check_arrays({"points": np.zeros((3, 2)), "labels": np.zeros(4, int)}, {"points": "nd", "labels": "N"})
    Traceback (most recent call last):
    ValueError: labels does not fit the others
    """
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not (np.abs(array) <= TOO_LARGE).all():
            raise ValueError(f"{name} holds NaN, or numbers that are too large")
    sides: dict[str, int] = {}
    for name, letters in shapes.items():
        array = arrays[name]
        if array.ndim != len(letters) or array.dtype.kind not in ("iu" if letters.isupper() else "fiu"):
            raise ValueError(f"{name} is {array.dtype} of shape {array.shape}")
        if any(
            sides.setdefault(letter.lower(), side) != side for letter, side in zip(letters, array.shape, strict=True)
        ):
            raise ValueError(f"{name} does not fit the others")
