import pytest

from medi.core.errors import unknown_name


def test_an_unknown_name_suggests_the_nearest_of_a_few_that_are_all_listed():
    message = str(unknown_name("dataset", "omniglo", ["omniglot", "svhn"]))
    assert "did you mean 'omniglot'?" in message
    assert "svhn" in message
    assert "did you mean" not in str(unknown_name("dataset", "zzz", ["omniglot", "svhn"]))


@pytest.mark.parametrize(("name", "near"), [("candidate-199x", "candidate-199"), ("zzz", "candidate")])
def test_of_many_names_only_five_are_listed(name, near):
    message = str(unknown_name("config", name, [f"candidate-{i:03}" for i in range(200)]))
    listed = message.partition("there is ")[2].partition(", …")[0].split(", ")
    assert len(listed) == 5
    assert listed[0].startswith(near)
