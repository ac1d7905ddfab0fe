"""Pages of documents as HTML: what looks like markup stays text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from a2c_smcp.computer.console.markdown import to_html

ELEMENTS = {
    *(
        "html",
        "head",
        "body",
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "em",
        "strong",
        "s",
        "code",
        "pre",
        "blockquote",
    ),
    *("ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "hr", "br", "a", "img"),
}
ATTRIBUTES = {"href", "src", "alt", "title", "class", "target", "rel", "start"}
PIECES = [
    *("<script>", "</p>", "<img src=x onerror=a()>", "<", "&#106;", '"', "`", "|", "\n", "-", "a", " "),
    *("[a](", "javascript:x)", "![", "](data:text/html,x)", '](http://e.x "\' onclick=a()")'),
]


def harmless(html: str) -> None:
    for node in LexborHTMLParser(html).css("*"):
        assert node.tag in ELEMENTS, html
        assert set(node.attributes) <= ATTRIBUTES, html
        href, src = node.attributes.get("href"), node.attributes.get("src")
        assert href is None or href.lower().startswith(("http://", "https://", "mailto:")), html
        assert src is None or src.startswith("data:image/"), html


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_no_text_becomes_an_element_that_runs_something(text: str) -> None:
    harmless(to_html(text))


def test_tables_lists_and_code_are_rendered() -> None:
    html = to_html("| a | b |\n| --: | --- |\n| 1 | <b> |\n\n- x\n\n```py\n1 < 2\n```")
    assert '<td class="align-right">1</td>' in html and "<td>&lt;b&gt;</td>" in html
    assert "<li>x</li>" in html and "1 &lt; 2" in html


@pytest.mark.parametrize("target", ["javascript:alert(1)", "file:///etc/passwd", "dpe://h/d", "/api/tools", "#/tools"])
def test_only_addresses_of_the_web_are_followed(target: str) -> None:
    assert "href" not in to_html(f"[here]({target})")


def test_a_link_opens_elsewhere_and_tells_nobody_where_it_was() -> None:
    assert 'href="https://e.x" target="_blank" rel="noopener noreferrer"' in to_html("[here](https://e.x)")
