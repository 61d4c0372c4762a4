from __future__ import annotations

from streamlabel.experiments.opening import set_table


def lines(*names: str) -> list[str]:
    return [" ".join(line.split()) for line in set_table(names).splitlines()[2:]]


def test_a_set_is_listed_once_with_the_shape_of_the_catalogue():
    (line,) = lines("mediamill (stand-in mediamill_reduced)", "mediamill_reduced")
    assert line.startswith("| mediamill_reduced | 1,500 | 500 | 120 | 101 |")
    assert line.endswith("| mediamill |")


def test_what_is_made_up_says_so():
    twin, random, unknown = lines("wiki10-31k (stand-in twin)", "random problems", "mine")
    assert "| 101,938 | 30,938 | made up, of the shape of wiki10-31k | wiki10-31k |" in twin
    assert random == "| random problems | | | | | made up, small enough to solve whole | |"
    assert unknown == "| mine | | | | | | |"
