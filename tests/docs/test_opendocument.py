"""OpenDocument files part by part."""

import pytest

from a2c_smcp.docs.limits import Unreadable
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import (
    Annotation,
    Chart,
    Code,
    Element,
    Footer,
    Header,
    Heading,
    Image,
    Link,
    List,
    Table,
    Text,
)
from tests.docs.office_files import ODF_NAMESPACES, archive, odf_file
from tests.docs.test_formats import opened, pages


def read(body: str, **more: str) -> list[Element]:
    return [element for page in pages(opened("a.odt", odf_file("text", body, **more))) for element in page.elements]


def slides(body: str, **more: str) -> list[Page]:
    return pages(opened("a.odp", odf_file("presentation", body, **more)))


def test_blanks_tabs_and_breaks_are_those_that_are_shown() -> None:
    body = "<text:p>a\n   b<text:s text:c='2'/>c<text:tab/>d<text:line-break/><text:span>e</text:span>f</text:p>"
    assert read(body) == [Text("a b  c\td\nef")]


def test_headings_titles_and_code() -> None:
    automatic = "<style:style style:name='P1' style:parent-style-name='Title'/>"
    body = (
        "<text:p text:style-name='P1'>Lease</text:p><text:h text:outline-level='2'>Rent</text:h>"
        "<text:p text:style-name='Preformatted_20_Text'>x = 1</text:p>"
    )
    assert read(body, automatic=automatic) == [Heading("Lease", 1), Heading("Rent", 2), Code("x = 1")]


def test_deleted_text_is_not_read_and_notes_comments_and_links_stand_at_the_end() -> None:
    body = (
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>old</text:p></text:deletion>"
        "</text:changed-region></text:tracked-changes>"
        "<text:p>one<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>see</text:p>"
        "</text:note-body></text:note><office:annotation><dc:creator>Ann</dc:creator><text:p>why</text:p>"
        "</office:annotation> <text:a xlink:href='https://example.com/'>two</text:a></text:p><text:p>three</text:p>"
    )
    assert read(body) == [
        Text("one[^1] two"),
        Text("three"),
        Text("[^1]: see"),
        Annotation("why", "Ann"),
        Link("two", "https://example.com/"),
    ]


def test_lists_have_their_numbers() -> None:
    automatic = (
        "<text:list-style style:name='L'>"
        "<text:list-level-style-number text:level='1' style:num-format='1' style:num-suffix='.'/>"
        "<text:list-level-style-number text:level='2' style:num-format='a' style:num-suffix=')'/></text:list-style>"
    )
    inner = "<text:list><text:list-item><text:p>x</text:p></text:list-item></text:list>"
    body = (
        f"<text:list text:style-name='L'><text:list-item><text:p>a</text:p>{inner}</text:list-item>"
        "<text:list-item><text:p>b</text:p></text:list-item></text:list><text:p>then</text:p>"
        "<text:list text:style-name='L' text:continue-numbering='true'>"
        "<text:list-item><text:p>c</text:p></text:list-item></text:list>"
    )
    assert read(body, automatic=automatic) == [
        List(["a", "  x", "b"], labels=["1.", "a)", "2."]),
        Text("then"),
        List(["c"], labels=["3."]),
    ]


def test_tables_with_merged_and_repeated_cells() -> None:
    wide = "<table:table-cell><text:p>wide</text:p></table:table-cell><table:covered-table-cell/>"
    many = "<table:table-cell table:number-columns-repeated='99999999'><text:p>x</text:p></table:table-cell>"
    [table] = read(
        f"<table:table><table:table-row>{wide}</table:table-row><table:table-row>{many}</table:table-row></table:table>"
    )
    assert isinstance(table, Table)
    assert list(table.headers) == ["wide", ""] and list(table.rows[0]) == ["x"] * 256


def test_frames_hold_text_pictures_and_charts() -> None:
    chart = (
        f"<office:document-content {ODF_NAMESPACES}><office:body><office:chart><chart:chart chart:class='chart:bar'>"
        "<chart:title><text:p>Rain</text:p></chart:title><table:table><table:table-row><table:table-cell><text:p>May</text:p>"
        "</table:table-cell><table:table-cell><text:p>7</text:p></table:table-cell></table:table-row></table:table>"
        "</chart:chart></office:chart></office:body></office:document-content>"
    )
    body = (
        "<text:p>beside<draw:frame><draw:text-box><text:p>boxed</text:p></draw:text-box></draw:frame></text:p>"
        "<draw:frame><draw:image/><svg:desc>A pump</svg:desc></draw:frame>"
        "<draw:frame><draw:object xlink:href='./Object'/><draw:image/></draw:frame>"
    )
    assert read(body, Object__content=chart) == [
        Text("beside"),
        Text("boxed"),
        Image(description="A pump"),
        Chart("Rain", "May, 7", "bar", {"rows": [["May", "7"]]}),
    ]


def test_edges_of_the_page_and_facts_of_the_file() -> None:
    styles = (
        "<office:master-styles><style:master-page><style:header><text:p>Draft</text:p></style:header>"
        "<style:footer><text:p>Page</text:p></style:footer></style:master-page></office:master-styles>"
    )
    meta = "<dc:title>Lease</dc:title><meta:keyword>rent</meta:keyword>"
    document = opened("a.odt", odf_file("text", "<text:p>x</text:p>", styles=styles, meta=meta))
    assert [page.elements for page in pages(document)] == [[Header("Draft"), Text("x"), Footer("Page")]]
    assert (document.properties.title, document.properties.keywords) == ("Lease", ["rent"])


def test_slides_have_titles_notes_and_say_that_they_are_hidden() -> None:
    hidden = (
        "<style:style style:name='d'><style:drawing-page-properties presentation:visibility='hidden'/></style:style>"
    )
    box = "<draw:frame{}><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    notes = f"<presentation:notes>{box.format('', 'slowly')}</presentation:notes>"
    shape = "<draw:g><draw:custom-shape><text:p>drawn</text:p></draw:custom-shape></draw:g>"
    title = box.format(" presentation:class='title'", "The year")
    [page] = slides(f"<draw:page draw:style-name='d'>{shape}{title}{notes}</draw:page>", automatic=hidden)
    assert page.title == "The year (hidden slide)"
    assert page.elements == [Heading("The year", 1), Text("drawn"), Annotation("slowly")]


def test_a_flat_file_is_read_and_an_encrypted_one_says_so() -> None:
    body = "<office:body><office:text><text:p>flat</text:p></office:text></office:body>"
    [page] = pages(opened("a.fodt", f"<office:document {ODF_NAMESPACES}>{body}</office:document>".encode()))
    assert page.elements == [Text("flat")]
    named = f'<!DOCTYPE office:document PUBLIC "-//X//DTD" "office.dtd"><office:document {ODF_NAMESPACES}>{body}'
    [page] = pages(opened("a.fodt", f"{named}</office:document>".encode()))
    assert page.elements == [Text("flat")]
    locked = archive({"content.xml": b"\x01\x02", "META-INF/manifest.xml": "<manifest:encryption-data/>"})
    with pytest.raises(Unreadable, match="encrypted"):
        opened("a.odt", locked)
    with pytest.raises(Unreadable):
        opened("a.odt", b"PK nothing")


def test_deep_lists_tables_and_shapes_end_without_loss() -> None:
    deep = "<text:list><text:list-item>" * 60 + "<text:p>deep</text:p>" + "</text:list-item></text:list>" * 60
    assert "deep" in str(read(deep))
    rows = "<table:table><table:table-row><table:table-cell>"
    ends = "</table:table-cell></table:table-row></table:table>"
    assert "deep" in str(read(rows * 60 + "<text:p>deep</text:p>" + ends * 60))
