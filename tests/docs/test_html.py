"""HTML: every word of the page once, and nothing that is not for readers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.docs.formats.html import decoded, flattened, html_elements
from a2c_smcp.mcp_server.elements import Code, Element, Heading, Image, Link, List, Table, Text
from a2c_smcp.mcp_server.rendering import elements_text


def test_scripts_styles_and_templates_are_not_shown_wherever_they_stand() -> None:
    hidden = "".join(f"<{tag}>no()</{tag}>" for tag in ("script", "style", "template", "noscript", "iframe"))
    page = (
        f"<p>one {hidden}two<ul><li>{hidden}three</ul><table><tr><td>{hidden}four<td>five</table><h1>{hidden}six</h1>"
    )
    assert elements_text(html_elements(page)) == "one two\n\nthree\n\nfour\tfive\n\nsix"


def test_nested_lists_are_shown_once() -> None:
    page = "<ul><li>one<ul><li>two<ol><li>three</ol></ul><li>four<ul></ul></ul>"
    assert html_elements(page) == [List(["one\n  two\n    three", "four"])]
    beside = "<ol><li>one</li><ul><li>two</li></ul></ol>"
    assert html_elements(beside) == [List(["one\n  two"], ordered=True)]


@pytest.mark.parametrize(("start", "end"), [("<div>", "</div>"), ("<SECTION x>", "</section>"), ("<ul></li>", "</ul>")])
def test_blocks_that_are_nested_without_end_keep_their_words(start: str, end: str) -> None:
    page = f"<p>before{start * 5000}deep{end * 5000}<p>after<nav>last</nav>"
    flat = flattened(page)
    assert flat.count(start) == flat.count(end) == 1000  # the parser needs a time that grows with their square
    assert flat.endswith("<p>after<nav>last</nav>")
    assert elements_text(html_elements(page)).split() == ["before", "deep", "after", "last"]


def test_blocks_without_an_end_are_not_taken_for_nested_ones() -> None:
    page = "<ul>" + "<li>one<p>two" * 5000 + "</ul>" + "<div>three</div>" * 5000
    assert flattened(page) == page


def test_terms_stand_above_what_they_mean() -> None:
    assert html_elements("<dl><dt>pH<dd>acid<dd>or not<dt>N<dd>nitrogen</dl>") == [
        List(["pH\n  acid\n  or not", "N\n  nitrogen"])
    ]


def test_cells_that_span_keep_the_others_in_their_columns() -> None:
    page = """<table><caption>Beds</caption><tr><th>bed<th>may<th>june<tr><td rowspan=2>1<td>2<td>3<tr><td>4<td>5
        <tr><td colspan=2>6<td>7</table>"""
    assert html_elements(page) == [
        Text("Beds"),
        Table(["bed", "may", "june"], [["1", "2", "3"], ["", "4", "5"], ["6", "", "7"]]),
    ]


def test_a_table_that_places_the_parts_of_a_page_is_no_table() -> None:
    page = "<table><tr><td><h2>Left</h2><p>words</p><td><table><tr><td>a<td>b</table></table>"
    assert html_elements(page) == [Heading("Left", 2), Text("words"), Table([], [["a", "b"]])]


def test_links_and_pictures_of_a_section_follow_its_words() -> None:
    page = '<p>See <a href="/p">the <b>pump</b></a> <img src=a.png alt="a pump">now.<p>Later.<h2>Next</h2>'
    page += "<a href=x><p>all</p></a>"
    assert html_elements(page) == [
        *(Text("See the pump now."), Text("Later."), Link("the pump", "/p"), Image("a pump", "a.png")),
        *(Heading("Next", 2), Text("all"), Link("", "x")),
    ]


def test_code_keeps_its_lines_and_its_language() -> None:
    page = '<pre class="highlight"><code class="language-python">a\n  b &lt; c\n</code></pre><p>one<br>two'
    assert html_elements(page) == [Code("a\n  b < c", "python"), Text("one\ntwo")]


@pytest.mark.parametrize(
    ("declared", "encoding", "text"),
    [
        ("gb2312", "gb18030", "年度报告"),
        ("Shift_JIS", "cp932", "日本語"),
        ("iso-2022-jp", "iso-2022-jp", "日本語"),
        ("windows-1251", "cp1251", "отчёт"),
        ("iso-8859-1", "cp1252", "“Äpfel”"),
        ("iso-8859-1", "utf-8", "Äpfel, wrongly declared"),
        ("utf-8", "utf-16", "marked"),
    ],
)
def test_a_page_is_read_in_the_encoding_that_it_declares_unless_it_is_wrong(
    declared: str, encoding: str, text: str
) -> None:
    page = f'<meta http-equiv="Content-Type" content="text/html; charset={declared}"><p>{text}'
    assert html_elements(decoded(page.encode(encoding))) == [Text(text)]


FRAGMENTS = (
    *(
        "<ul><li>",
        "</ul>",
        "<li>",
        "<ol>",
        "<dl><dt>",
        "<dd>",
        "<table>",
        "<tr>",
        "<td colspan=999>",
        "<td rowspan=999>",
    ),
    *("<p>", "<div>", "<h2>", "</h2>", "<a href=u>", "</a>", "<b>", "<pre>", "</pre>", "<blockquote>", "words "),
)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=60), st.integers(1, 40))
def test_what_is_shown_grows_with_the_page_and_every_word_is_there(fragments: list[str], times: int) -> None:
    page = "".join(fragments) * times
    elements = html_elements(page)
    shown = elements_text([each for each in elements if not isinstance(each, Link)])
    assert shown.count("words") == page.count("words ")
    assert len(elements_text(elements)) <= 8 * len(page) + 100
    assert _cells(elements) <= 5 * page.count("<td") + 100


def _cells(elements: list[Element]) -> int:
    return sum(len(row) for each in elements if isinstance(each, Table) for row in each.rows)


def test_lists_in_lists_do_not_multiply() -> None:
    page = "<ul><li>item" * 2000
    assert len(elements_text(html_elements(page))) < len(page)
