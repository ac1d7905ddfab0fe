"""A dict that forgets its oldest entries."""

from a2c_smcp.utils.bounded import BoundedDict


def test_of_too_many_the_oldest_is_forgotten_and_handed_back() -> None:
    kept: BoundedDict[str, int] = BoundedDict(2)
    assert kept.put("a", 1) == []
    kept.put("b", 2)
    kept.put("a", 3)  # the newest again
    assert kept.put("c", 4) == [("b", 2)]
    assert (list(kept), kept.values()) == (["a", "c"], [3, 4])
    kept.touch("a")
    assert kept.put("d", 5) == [("c", 4)]


def test_what_weighs_too_much_goes_oldest_first_and_the_weight_is_kept_right() -> None:
    kept: BoundedDict[str, str] = BoundedDict(heaviest=10, weigh=len)
    kept.put("a", "four")
    kept.put("b", "four")
    kept.put("a", "more")
    assert kept.weight == 8
    assert kept.put("c", "abc") == [("b", "four")]
    assert kept.pop("a") == "more" and kept.pop("a") is None
    assert kept.weight == 3
    assert kept.put("d", "far too heavy") == [("c", "abc"), ("d", "far too heavy")]
    assert (len(kept), kept.weight) == (0, 0)


def test_what_is_too_old_is_forgotten_and_a_repeat_is_as_young_as_its_last() -> None:
    kept: BoundedDict[str, None] = BoundedDict()
    kept.put("a", None, 1.0)
    kept.put("b", None, 2.0)
    kept.put("a", None, 3.0)
    assert kept.forget_before(2.0) == []
    assert kept.forget_before(3.0) == [("b", None)]
    assert "a" in kept and "b" not in kept
    kept.clear()
    assert kept.get("a") is None
