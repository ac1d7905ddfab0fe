"""Elements: their JSON, their summaries, and what they refuse."""

import json
from typing import Any

import pytest

from a2c_smcp.mcp_server import elements as e
from a2c_smcp.utils.dpe_uri import CATEGORIES


def test_there_is_one_class_for_each_category() -> None:
    assert set(e.ELEMENT_TYPES) == CATEGORIES
    assert all(cls.category == category for category, cls in e.ELEMENT_TYPES.items())


def test_the_content_is_json_without_what_was_left_empty() -> None:
    made: list[tuple[e.Element, dict[str, Any]]] = [
        (e.Text(""), {"text": ""}),
        (e.Table(("a",), ((1, None),)), {"headers": ["a"], "rows": [[1, None]]}),
        (e.List(["x"]), {"items": ["x"], "ordered": False}),
        (e.Image("map", width=3), {"alt": "map", "width": 3}),
        (e.Chart("t", data={"a": (1, 2)}), {"title": "t", "data": {"a": [1, 2]}}),
        (e.Form("f", {"name": None}), {"title": "f", "values": {"name": None}}),
        (e.Separator(), {}),
    ]
    for element, content in made:
        assert element.content == content
        assert json.loads(json.dumps(element.content, allow_nan=False)) == content


def test_a_summary_is_given_or_made_of_the_content() -> None:
    assert e.Text("a\n b", summary="mine").brief == "mine"
    assert e.Text("a\n b").brief == "a b"
    assert len(e.Text("word " * 100).brief) == 120
    assert e.Table(["a", "b"]).brief == "a, b"
    assert e.Separator().brief == ""
    assert (e.Image("alt").brief, e.Image("alt", description="words").brief) == ("alt", "words")
    assert (e.Link("", "url").brief, e.Link("text", "url").brief) == ("url", "text")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: e.Element(), "one of its nineteen kinds"),
        (lambda: e.Heading("x", 7), "an integer from 1 to 6, not 7"),
        (lambda: e.Heading("x", True), "an integer from 1 to 6, not True"),
        (lambda: e.Text(b"x"), "the text of a text is text, not bytes"),  # type: ignore[arg-type]
        (lambda: e.Text("x", element_id=3), "the element_id of a text is text, not int"),  # type: ignore[arg-type]
        (lambda: e.List("abc"), "the items of a list are a list, not str"),
        (lambda: e.List([1]), "a list of str, not of int"),  # type: ignore[list-item]
        (lambda: e.Table(["a"], ["row"]), "the rows of a table are lists of cells, not str"),
        (lambda: e.Table(["a"], [[[]]]), "are plain values, not list"),  # type: ignore[list-item]
        (lambda: e.Table(["a"], [[float("nan")]]), "JSON, which has no nan"),
        (lambda: e.Chart("x", data={"y": object()}), "the data of a chart must be JSON, which has no object"),
        (lambda: e.Widget("x", {1: 2}), "the state of a widget must be JSON"),  # type: ignore[dict-item]
        (lambda: e.Image(3), "the alt of an image is text, not int"),  # type: ignore[arg-type]
        (lambda: e.Image(width=-1), "a number of pixels, not -1"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        make()
