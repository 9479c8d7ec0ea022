"""Values that damaged or hostile files hold."""

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

ODD: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 2**53 + 1, 10**400, 0.5, 1e308, -1e308, 5e-324, float("nan"), float("inf")),
    *("", "\ud800", "\0", "a\nb", "caf\udce9", "all", "honest", "posterior", "9" * 30),
    *([], [[]], {}, {"0": 1}, {"from": 5}, {"from": "default"}, {"grouping": {"unit": 3}}),
)


def odd_values() -> st.SearchStrategy[Any]:
    """JSON, what is no JSON, and numbers and texts beyond what others read."""
    single = st.sampled_from(ODD) | st.floats() | st.integers() | st.text(max_size=4)
    texts = st.text(max_size=3) | st.sampled_from(["a", "\ud800", "0"])
    return st.recursive(single, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3))


def places_in(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or object of a document, with each of its keys."""
    for key in range(len(document)) if isinstance(document, list) else list(document):
        yield document, key
        if isinstance(document[key], list | dict):
            yield from places_in(document[key])
