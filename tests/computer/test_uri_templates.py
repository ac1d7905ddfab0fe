"""Which URIs fit a template, and that no template and no URI takes long."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2c_smcp.computer.resources.uri_templates import LONGEST_TEMPLATE, LONGEST_URI, MatchedUri, parse_template


def fits(template: str, uri: str) -> bool:
    parsed = parse_template(template)
    assert parsed is not None
    return parsed.fits(MatchedUri(uri))


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("note://all", "note://all"),
        ("note://{id}", "note://7"),
        ("note://{id}", "note://%E4%BD%A0"),
        ("note://{id}", "note://你好 there"),
        ("test://template/{id}/data", "test://template/123/data"),
        ("a:{x}-{y}z", "a:1-2-3z"),
        ("a:{x,y}", "a:1,2"),
        ("file:///{+path}", "file:///a/b.txt?x#y"),
        ("file:///{path*}", "file:///a/b.txt"),
        ("a:{+x}{+y}", "a:12"),
        ("web://x{/path}", "web://x/a/b"),
        ("web://x{/path}", "web://x"),
        ("web://x{#place}", "web://x#here/or/there"),
        ("web://x{.kind}", "web://x.html"),
        ("db://{table}/rows{?limit,offset}", "db://t/rows"),
        ("db://{table}/rows{?limit,offset}", "db://t/rows?limit=1&offset=2"),
        ("db://t?fixed=1{&more}", "db://t?fixed=1&more=2"),
        ("m:x{;a,b}", "m:x;a=1;b=2"),
        ("n:{id:3}", "n:abc"),
    ],
)
def test_a_uri_fits(template: str, uri: str) -> None:
    assert fits(template, uri)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("note://all", "note://all/"),
        ("note://{id}", "note://"),
        ("note://{id}", "note://a/b"),
        ("note://{id}", "Note://a"),
        ("note://{id}/part", "note://a/part/"),
        ("db://{table}/rows{?limit}", "db://t/rowsx"),
        ("db://{table}/rows{?limit}", "db://t/rows?limit=1#f"),
        ("web://x{.kind}", "web://xhtml"),
        ("a:{+x}", "a:" + "x" * LONGEST_URI),
    ],
)
def test_a_uri_does_not_fit(template: str, uri: str) -> None:
    assert not fits(template, uri)


@pytest.mark.parametrize(
    "text", ["", "x", "{+a}", "{+a}{+b}", "{s}://x", "a:{", "a:}", "a:{}", "a:{{x}}", "a:{=x}{", "a:" + "x" * 1000]
)
def test_what_is_no_template_or_fits_everything_fits_nothing(text: str) -> None:
    assert parse_template(text) is None


@given(st.lists(st.text("ab/", min_size=1, max_size=4), min_size=1, max_size=5), st.data())
@settings(deadline=None, derandomize=True)
def test_what_a_template_expands_to_fits_it(values: list[str], data: st.DataObject) -> None:
    between = [data.draw(st.text("ab", max_size=2)) for _ in values]
    template = "t:" + "".join(f"{{+v}}{text}" for text in between)
    assert fits(template, "t:" + "".join(map("".join, zip(values, between, strict=True))))


@given(st.text("ab{}+/?*,x:", max_size=60), st.text("abx/?:", max_size=60))
@settings(deadline=None, derandomize=True)
def test_any_text_is_a_template_or_not(template: str, uri: str) -> None:
    parsed = parse_template("t:" + template)
    if parsed is not None:
        parsed.fits(MatchedUri("t:" + uri))


def test_the_worst_template_and_the_worst_uri_take_no_longer_than_their_size() -> None:
    """A matcher that goes back and tries again would need longer than the universe is old."""
    template = ("t:" + "{+a}x" * 200)[:LONGEST_TEMPLATE].rpartition("{")[0]
    began = time.perf_counter()
    assert not fits(template + "y", "t:" + "x" * (LONGEST_URI - 2))
    assert time.perf_counter() - began < 5
