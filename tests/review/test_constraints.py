"""What was said, as pairs: closures, contradictions, and what gives way."""

from hypothesis import given
from hypothesis import strategies as st

from medi.review.constraints import Word, bundle, bundles, contradiction, cut, detached, overruled


def same(a: int, b: int, why: str = "answer") -> Word:
    return Word(True, a, b, why)


def apart(a: int, b: int, why: str = "answer") -> Word:
    return Word(False, a, b, why)


PAIRS = st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] != pair[1])
WORDS = st.lists(st.builds(lambda pair, is_same: Word(is_same, *pair, "answer"), PAIRS, st.booleans()), max_size=15)


def closure(words: list[Word]) -> set[frozenset[int]]:
    """By brute force."""
    sets = [{item} for item in range(10)]
    for word in words:
        if word.same:
            joined = [one for one in sets if word.a in one or word.b in one]
            sets = [one for one in sets if one not in joined] + [set().union(*joined)]
    return {frozenset(one) for one in sets}


@given(WORDS)
def test_bundles_are_the_transitive_closure(words):
    of = bundles(words)
    found = {frozenset(i for i in range(10) if of.get(i, i) == of.get(item, item)) for item in range(10)}
    assert found == closure(words)
    assert all(bundle(item, words) in closure(words) for item in range(10))


@given(WORDS, st.sets(st.integers(0, 9), max_size=4))
def test_who_is_detached_leaves_the_others_together(words, items):
    left = detached(items, words)
    assert not any(word.same and word.touches(items) for word in left)
    assert closure(left) == {one - items for one in closure(words) if one - items} | {
        frozenset({item}) for item in items
    }


@given(WORDS, st.lists(st.integers(0, 2), min_size=10, max_size=10))
def test_a_cut_leaves_each_part_of_a_bundle_together(words, parts):
    kept, lost = cut(dict(enumerate(parts)), words)
    pieces = {frozenset(i for i in one if parts[i] == part) for one in closure(words) for part in range(3)}
    assert closure(kept) == {piece for piece in pieces if piece}
    assert all(parts[word.a] != parts[word.b] for word in lost)


@given(WORDS, PAIRS, st.booleans())
def test_a_contradiction_is_found_where_there_is_one_and_room_can_be_made(words, pair, is_same):
    a, b = pair
    of = bundles(words)
    ends = {of.get(a, a), of.get(b, b)}
    if is_same:
        expected = len(ends) == 2 and any(
            not word.same and {of.get(word.a, word.a), of.get(word.b, word.b)} == ends for word in words
        )
    else:
        expected = len(ends) == 1
    chain = contradiction(a, b, is_same, words)
    assert bool(chain) == expected
    kept, lost = overruled(a, b, is_same, words)
    assert not contradiction(a, b, is_same, kept)
    assert bool(lost) == expected
    assert all(word.same != is_same for word in lost)


def test_the_chain_is_the_shortest_and_names_every_step():
    words = [same(0, 3), same(3, 1), same(0, 1), same(1, 2, "merge"), same(5, 6), apart(2, 5, "reject")]
    chain = contradiction(0, 6, True, words)
    assert chain == [same(0, 1), same(1, 2, "merge"), apart(2, 5, "reject"), same(5, 6)]
