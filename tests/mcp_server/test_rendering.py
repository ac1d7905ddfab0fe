"""Markdown and plain text of elements: what each kind looks like, and that nothing breaks out of what holds it."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from a2c_smcp.mcp_server import elements as e
from a2c_smcp.mcp_server.rendering import elements_markdown, elements_text, markdown, plain

GFM = MarkdownIt("commonmark").enable("table")

SHOWN: list[tuple[e.Element, tuple[str, str]]] = [
    (e.Text("Hello *you*"), ("Hello *you*", "Hello *you*")),
    (e.Heading("Two\nlines", 2), ("## Two lines", "Two lines")),
    (e.Heading("C #"), ("# C \\#", "C #")),
    (e.List(["one", "two\nlines", ""]), ("- one\n- two\n  lines\n-", "one\ntwo lines\n")),
    (e.List(["a", "b"], ordered=True), ("1. a\n2. b", "1. a\n2. b")),
    (
        e.List(["# no", "1. no", "[x]: no", "**bold**", "[a](b)"]),
        ("- \\# no\n- 1\\. no\n- \\[x]: no\n- **bold**\n- [a](b)", "# no\n1. no\n[x]: no\n**bold**\n[a](b)"),
    ),
    (e.List([]), ("[list]", "")),
    (e.Code("select 1", "sql"), ("```sql\nselect 1\n```", "select 1")),
    (e.Code("```", "a b`"), ("````ab\n```\n````", "```")),
    (
        e.Table(["a", "b|c"], [[1, None], ["x\ny", True, "more"]]),
        (
            "| a | b\\|c |  |\n| --- | --- | --- |\n| 1 |  |  |\n| x<br>y | true | more |",
            "a\tb|c\n1\t\nx y\ttrue\tmore",
        ),
    ),
    (e.Table(["path"], [["C:\\dir\\|<b>"]]), ("| path |\n| --- |\n| C:\\dir\\\\\\|\\<b> |", "path\nC:\\dir\\|<b>")),
    (e.Table([]), ("[table]", "")),
    (e.PivotTable(["x"]), ("[pivot_table: x]", "[pivot_table: x]")),
    (e.Chart("Sales", "rising"), ("[图表: Sales] rising", "[图表: Sales] rising")),
    (e.Chart("a](b"), ("[图表: a\\](b]", "[图表: a](b]")),
    (
        e.Image("map", "https://example.com/a b.png"),
        ("![map](https://example.com/a%20b.png)", "[图片: map] https://example.com/a b.png"),
    ),
    (e.Image(description="A map"), ("[图片: A map]", "[图片: A map]")),
    (e.Formula("g = \\$1 + $2"), ("$ g = \\$1 + \\$2 $", "g = \\$1 + $2")),
    (
        e.Link("more", "https://example.com/(x)"),
        ("[more](https://example.com/%28x%29)", "more (https://example.com/(x))"),
    ),
    (e.Annotation("see below"), ("[annotation: see below]", "[annotation: see below]")),
    (e.Annotation("word " * 100), (f"[annotation: {'word ' * 99}word]", f"[annotation: {'word ' * 99}word]")),
    (e.Footer("long " * 40), (f"[footer: {('long ' * 40).strip()}]",) * 2),
    (e.List(["x", "y"], labels=["a)", ""]), ("- a) x\n- y", "a) x\ny")),
    (e.Diagram("flow", summary="A flow"), ("[diagram: A flow]", "[diagram: A flow]")),
    (e.Separator(), ("[separator]", "[separator]")),
]


@pytest.mark.parametrize(("element", "shown"), SHOWN, ids=lambda value: repr(value)[:40])
def test_each_kind_has_its_markdown_and_its_text(element: e.Element, shown: tuple[str, str]) -> None:
    assert (markdown(element), plain(element)) == shown


def test_a_page_is_its_elements_with_blank_lines_between() -> None:
    page = [e.Heading("Title"), e.Text("words")]
    assert elements_markdown(page) == "# Title\n\nwords"
    assert elements_text(page) == "Title\n\nwords"


@pytest.mark.parametrize("text", ["```\ncode", "~~~~\ncode", "<!-- note", "<script>", "<?php", "> ```\n\n- ```\n  x"])
def test_a_text_does_not_swallow_what_follows(text: str) -> None:
    tokens = GFM.parse(elements_markdown([e.Text(text), e.Text("after")]))
    assert tokens[-2].content == "after" and tokens[-1].level == 0


def test_a_text_that_closes_its_fence_itself_stays_as_it_is() -> None:
    text = "- ```\n  code\n  ```\n\nafter <b>all</b>"
    assert markdown(e.Text(text)) == text


# --- nothing breaks out: random content, dense in markup, read back by a Markdown parser

FRAGMENTS = (
    *(
        "|",
        "\\",
        "`",
        "```",
        "~~~",
        "#",
        "-",
        "---",
        "*",
        "_",
        "=",
        "+",
        "<",
        ">",
        "[",
        "]",
        "(",
        ")",
        "](x)",
        "[x]:",
        "!",
    ),
    *(
        "<b>",
        "</table>",
        "</ul>",
        "<!--",
        "<script>",
        "<br>",
        ":",
        "&",
        "$",
        " ",
        "    ",
        "\n",
        "\n\n",
        "\r",
        "\t",
        "1.",
        "a",
    ),
)
NASTY = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.text(st.characters(exclude_categories=["Cs"]), max_size=5)), max_size=12
).map("".join)
CELLS = st.one_of(NASTY, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none())
TABLES = st.builds(e.Table, st.lists(NASTY, max_size=4), st.lists(st.lists(CELLS, max_size=5), max_size=4))
CODES = st.builds(e.Code, NASTY, NASTY)
LISTS = st.builds(e.List, st.lists(NASTY, min_size=1, max_size=4), st.booleans())
HEADINGS = st.builds(e.Heading, NASTY, st.integers(1, 6))
TEXTS = st.builds(e.Text, NASTY)
INLINE = st.one_of(
    st.builds(e.Chart, NASTY, NASTY),
    st.builds(e.Image, NASTY, NASTY, NASTY),
    st.builds(e.Link, NASTY, NASTY.map(lambda url: f"https://example.com/{url}")),
    st.builds(e.Annotation, NASTY),
    st.builds(e.Diagram, NASTY),
    st.builds(e.Widget, NASTY),
    st.builds(e.Formula, NASTY),
)


def blocks(text: str) -> list[Token]:
    return [token for token in GFM.parse(text) if token.level == 0 and token.nesting >= 0]


def shown_columns(table: e.Table) -> int:
    return max([len(table.headers), *map(len, table.rows)])


@given(TABLES)
@example(e.Table(["a"], [["\\"], ["\\\\|"], ["`|`"], ["|---|"]]))
@example(e.Table([""], [["\n"]]))
def test_a_cell_stays_in_its_table(table: e.Table) -> None:
    if not shown_columns(table):
        return
    tokens = GFM.parse(markdown(table) + "\n\nafter")
    assert [token.type for token in tokens if token.level == 0][:2] == ["table_open", "table_close"]
    assert tokens[-2].content == "after"
    rows = sum(token.type == "tr_open" for token in tokens)
    cells = sum(token.type in ("th_open", "td_open") for token in tokens)
    assert (rows, cells) == (len(table.rows) + 1, (len(table.rows) + 1) * shown_columns(table))
    html = {child.content for token in tokens for child in token.children or () if child.type == "html_inline"}
    assert html <= {"<br>"}  # ours
    for line in markdown(table).split("\n"):
        assert len(cells_by_github(line)) == shown_columns(table)


def cells_by_github(line: str) -> list[str]:
    """How GitHub's parser splits a row: there a backslash and what follows it are taken together."""
    return re.findall(r" (?:\\.|[^|\\])* (?=\|)|  (?=\|)", line)


@given(TABLES)
def test_a_cell_stays_in_its_line_of_text(table: e.Table) -> None:
    lines = plain(table).split("\n")
    rows = [table.headers, *table.rows] if any(table.headers) else list(table.rows)
    assert [line.count("\t") + 1 for line in lines] == [max(1, len(row)) for row in rows] or not rows


@given(CODES)
@example(e.Code("`" * 10))
@example(e.Code("\n```\n"))
def test_code_stays_in_its_fence(code: e.Code) -> None:
    [fence] = blocks(markdown(code))
    assert fence.type == "fence"
    assert fence.content == re.sub(r"\r\n?", "\n", code.text + "\n").replace("\0", "\ufffd")


@given(LISTS)
@example(e.List(["", "\n\nfoo"]))
@example(e.List(["a\n---", "a|b\n-|-", "a\n==="]))
@example(e.List(["- - - a", "* * *", "1) a", "\t    code"]))
def test_an_item_stays_in_its_list_and_is_one(made: e.List) -> None:
    tokens = GFM.parse(markdown(made) + "\n\nafter")
    top = [token.type for token in tokens if token.level == 0]
    kind = "ordered_list" if made.ordered else "bullet_list"
    assert top == [f"{kind}_open", f"{kind}_close", "paragraph_open", "inline", "paragraph_close"][:2] + top[2:]
    assert tokens[-2].content == "after"
    assert sum(token.type == "list_item_open" for token in tokens) == len(made.items)
    inside = {token.type for token in tokens if token.level > 1}
    assert inside <= {"paragraph_open", "paragraph_close", "inline"}


@given(HEADINGS)
def test_a_heading_is_one_line(heading: e.Heading) -> None:
    [opened, *_] = blocks(markdown(heading))
    assert (opened.type, opened.tag) == ("heading_open", f"h{heading.level}")
    assert len(blocks(markdown(heading))) == 1


@given(INLINE)
def test_a_label_is_one_paragraph_without_html(element: e.Element) -> None:
    text = markdown(element)
    assert "\n" not in text
    tokens = GFM.parse(f"before {text}")
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    if element.category != "formula":
        assert not [child for child in tokens[1].children or () if child.type == "html_inline"]
    if isinstance(element, e.Link):
        [link] = [child for child in tokens[1].children or () if child.type == "link_open"]
        assert str(link.attrGet("href")).startswith("https://example.com/")
    if isinstance(element, e.Image) and element.url.strip():
        assert [child.type for child in tokens[1].children or ()].count("image") == 1


@settings(max_examples=300)
@given(st.lists(st.one_of(TABLES, CODES, LISTS, HEADINGS, INLINE, TEXTS), max_size=6))
def test_elements_of_a_page_do_not_run_into_each_other(page: list[e.Element]) -> None:
    tokens = blocks(elements_markdown([*page, e.Code("the end")]))
    assert tokens[-1].type == "fence" and tokens[-1].content == "the end\n"
    fences = iter(token.content for token in tokens if token.type == "fence")
    for code in page:
        if isinstance(code, e.Code):
            wanted = markdown(code)
            assert any(content == blocks(wanted)[0].content for content in fences), wanted
    headings = iter(token.map for token in tokens if token.type == "heading_open")
    assert sum(1 for _ in headings) >= sum(isinstance(element, e.Heading) for element in page)
    tables = sum(token.type == "table_open" for token in tokens)
    assert tables >= sum(isinstance(element, e.Table) and bool(shown_columns(element)) for element in page)
