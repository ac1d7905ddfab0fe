"""Word files part by part: what a reader of the printed document sees, once."""

import io
import zipfile

import pytest

from a2c_smcp.docs.describing import describe
from a2c_smcp.docs.limits import Unreadable
from a2c_smcp.mcp_server.elements import (
    Annotation,
    Chart,
    Element,
    Footer,
    Formula,
    Header,
    Heading,
    Image,
    Link,
    List,
    Table,
    Text,
)
from tests.docs.office_files import archive, word_file
from tests.docs.test_formats import opened, pages


def read(
    body: str, parts: dict[str, str] | None = None, links: dict[str, tuple[str, str]] | None = None
) -> list[Element]:
    document = opened("a.docx", word_file(body, parts, links=links))
    return [element for page in pages(document) for element in page.elements]


def p(inner: str, settings: str = "") -> str:
    return f"<w:p>{f'<w:pPr>{settings}</w:pPr>' if settings else ''}{inner}</w:p>"


def t(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def texts(body: str, parts: dict[str, str] | None = None) -> list[str]:
    return [element.text for element in read(body, parts) if isinstance(element, Text)]


def test_insertions_are_read_and_deletions_are_not_and_moved_text_is_read_once() -> None:
    body = p(
        t("The ")
        + f"<w:del><w:r><w:delText>old </w:delText></w:r></w:del><w:ins>{t('new ')}</w:ins>{t('rent ')}"
        + f"<w:moveFrom>{t('moved')}</w:moveFrom><w:moveTo>{t('moved')}</w:moveTo>"
    )
    assert texts(body) == ["The new rent moved"]


@pytest.mark.parametrize(
    "frame",
    [
        "<w:sdt><w:sdtPr/><w:sdtContent>{}</w:sdtContent></w:sdt>",
        '<w:smartTag w:element="x">{}</w:smartTag>',
        '<w:customXml w:element="x">{}</w:customXml>',
        '<w:fldSimple w:instr="PAGE">{}</w:fldSimple>',
        "<w:bdo>{}</w:bdo>",
    ],
)
def test_what_only_surrounds_text_hides_none_of_it(frame: str) -> None:
    assert texts(p(frame.format(t("inside")))) == ["inside"]
    assert texts(frame.format(p(t("block")))) == ["block"]


def test_a_table_in_a_content_control_and_a_table_in_a_cell_are_read() -> None:
    inner = f"<w:tbl><w:tr><w:tc>{p(t('x'))}</w:tc><w:tc>{p(t('y'))}</w:tc></w:tr></w:tbl>"
    framed = f"<w:sdt><w:sdtContent><w:tc>{p(t('b'))}</w:tc></w:sdtContent></w:sdt>"
    row = f"<w:tr><w:tc>{p(t('a'))}{inner}</w:tc>{framed}</w:tr>"
    [table] = read(f"<w:sdt><w:sdtContent><w:tbl>{row}</w:tbl></w:sdtContent></w:sdt>")
    assert table == Table([], [["a\nx | y", "b"]])


def test_the_text_of_merged_cells_is_there_once() -> None:
    wide = f'<w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>{p(t("wide"))}</w:tc>'
    top = f'<w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>{p(t("tall"))}</w:tc>'
    below = f"<w:tc><w:tcPr><w:vMerge/></w:tcPr>{p('')}</w:tc>"
    one = f"<w:tc>{p(t('1'))}</w:tc>"
    [table] = read(f"<w:tbl><w:tr>{wide}</w:tr><w:tr>{top}{one}</w:tr><w:tr>{below}{one}</w:tr></w:tbl>")
    assert table == Table(["wide", ""], [["tall", "1"], ["", "1"]])


def test_a_table_that_only_places_text_is_not_a_table() -> None:
    assert texts(f"<w:tbl><w:tr><w:tc>{p(t('one'))}{p(t('two'))}</w:tc></w:tr></w:tbl>") == ["one", "two"]
    long = "word " * 1000
    found = texts(f"<w:tbl><w:tr><w:tc>{p(t(long))}</w:tc><w:tc>{p(t('b'))}</w:tc></w:tr></w:tbl>")
    assert found == [long.strip(), "b"]


def test_a_text_box_that_is_there_for_new_and_old_programs_is_read_once() -> None:
    box = f"<w:txbxContent>{p(t('boxed'))}</w:txbxContent>"
    both = (
        f'<mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wps:txbx>{box}</wps:txbx></w:drawing></mc:Choice>'
        f"<mc:Fallback><w:pict><v:textbox>{box}</v:textbox></w:pict></mc:Fallback></mc:AlternateContent>"
    )
    assert texts(p(t("beside") + f"<w:r>{both}</w:r>")) == ["beside", "boxed"]
    assert texts(p(f"<w:r><w:pict><v:textbox>{box}</v:textbox></w:pict></w:r>")) == ["boxed"]


def test_notes_stand_at_the_end_of_the_section_that_refers_to_them() -> None:
    notes = (
        f'<w:footnotes><w:footnote w:type="separator" w:id="0">{p(t("no"))}</w:footnote>'
        f'<w:footnote w:id="2">{p(t("see there"))}</w:footnote></w:footnotes>'
    )
    ends = f'<w:endnotes><w:endnote w:id="2">{p(t("at last"))}</w:endnote></w:endnotes>'
    heading = p(t("Next"), '<w:pStyle w:val="Heading1"/>')
    body = p(
        t("One")
        + '<w:r><w:footnoteReference w:id="2"/></w:r>'
        + t(" two")
        + '<w:r><w:endnoteReference w:id="2"/></w:r>'
    )
    styles = '<w:styles><w:style w:styleId="Heading1"><w:name w:val="heading 1"/></w:style></w:styles>'
    found = read(body + p(t("Three")) + heading, {"footnotes": notes, "endnotes": ends, "styles": styles})
    assert found == [
        *map(Text, ("One[^1] two[^2]", "Three", "[^1]: see there", "[^2]: at last")),
        Heading("Next", 1),
    ]


def test_comments_are_annotations_with_their_author() -> None:
    comments = f'<w:comments><w:comment w:id="7" w:author="Ann">{p(t("why?"))}</w:comment></w:comments>'
    found = read(p(t("odd") + '<w:r><w:commentReference w:id="7"/></w:r>'), {"comments": comments})
    assert found == [Text("odd"), Annotation("why?", "Ann")]


LEVELS = "".join(
    f'<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{style}"/><w:lvlText w:val="{pattern}"/></w:lvl>'
    for level, (style, pattern) in enumerate([("decimal", "%1."), ("lowerLetter", "%2)"), ("lowerRoman", "%1.%2.%3")])
)
NUMBERING = (
    f'<w:numbering><w:abstractNum w:abstractNumId="0">{LEVELS}</w:abstractNum>'
    '<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="o"/></w:lvl>'
    "</w:abstractNum>"
    '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>'
    '<w:num w:numId="3"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/>'
    "</w:lvlOverride></w:num></w:numbering>"
)


def item(text: str, level: int = 0, number: int = 1) -> str:
    return p(t(text), f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


def test_numbers_of_lists_are_those_that_word_shows() -> None:
    body = (
        item("first")
        + item("second")
        + item("inner", 1)
        + item("deep", 2)
        + item("other", 1)
        + item("third")
        + item("new", 1)
    )
    [found] = read(body, {"numbering": NUMBERING})
    assert found == List(
        ["first", "second", "  inner", "    deep", "  other", "third", "  new"],
        labels=["1.", "2.", "a)", "2.a.i", "b)", "3.", "a)"],
    )


def test_a_list_goes_on_after_a_paragraph_and_another_one_starts_where_it_says() -> None:
    body = item("a") + p(t("between")) + item("b") + p(t("and")) + item("c", 0, 3) + p(t("or")) + item("x", 0, 2)
    found = [each for each in read(body, {"numbering": NUMBERING}) if isinstance(each, List)]
    assert found == [List(["a"], ordered=True), List(["b"], labels=["2."]), List(["c"], labels=["5."]), List(["x"])]


def test_headings_have_their_numbers_and_levels_by_style_by_parent_and_by_outline() -> None:
    styles = (
        '<w:styles><w:style w:styleId="H"><w:name w:val="heading 2"/><w:pPr><w:numPr><w:ilvl w:val="1"/>'
        '<w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
        '<w:style w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="H"/></w:style>'
        '<w:style w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style></w:styles>'
    )
    body = (
        p(t("One"), '<w:pStyle w:val="H"/>')
        + p(t("Two"), '<w:pStyle w:val="Own"/>')
        + p(t("Three"), '<w:outlineLvl w:val="2"/>')
        + p(t("text"), '<w:pStyle w:val="Loop"/>')
    )
    found = read(body, {"styles": styles, "numbering": NUMBERING})
    assert found == [Heading("a) One", 2), Heading("b) Two", 2), Heading("Three", 3), Text("text")]


def test_fields_show_their_results_and_not_their_codes() -> None:
    def sign(kind: str, inner: str = "") -> str:
        return f'<w:r><w:fldChar w:fldCharType="{kind}">{inner}</w:fldChar></w:r>'

    code = '<w:r><w:instrText> HYPERLINK "https://example.com/a" </w:instrText></w:r>'
    body = p(t("see ") + sign("begin") + code + sign("separate") + t("the page") + sign("end") + t("."))
    box = "<w:ffData><w:checkBox><w:checked/></w:checkBox></w:ffData>"
    entries = '<w:listEntry w:val="no"/><w:listEntry w:val="yes"/>'
    choice = f'<w:ffData><w:ddList><w:result w:val="1"/>{entries}</w:ddList></w:ffData>'
    forms = p(sign("begin", box) + sign("end") + t(" paid ") + sign("begin", choice) + sign("end"))
    broken = p(sign("begin") + code + t("lost")) + p(t("kept"))
    found = read(body + forms + broken)
    assert [each.text for each in found if isinstance(each, Text)] == ["see the page.", "☒ paid yes", "kept"]
    assert Link("the page", "https://example.com/a") in found


def test_links_have_their_targets() -> None:
    body = p(
        t("go ") + f'<w:hyperlink r:id="x">{t("there")}</w:hyperlink><w:hyperlink r:id="gone">{t("!")}</w:hyperlink>'
    )
    found = read(body, links={"x": ("hyperlink", "https://example.com/")})
    assert found == [Text("go there!"), Link("there", "https://example.com/")]


def test_signs_that_are_not_letters() -> None:
    symbols = (
        '<w:sym w:font="Wingdings" w:char="F0FC"/><w:sym w:font="Symbol" w:char="F061"/><w:sym w:font="x" w:char="zz"/>'
    )
    inner = "<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>co\u00adop</w:t><w:softHyphen/>"
    inner += "<w:t>er</w:t><w:noBreakHyphen/>"
    assert texts(p(f"{inner}{symbols}</w:r>")) == ["a\tb\ncooper-✓α"]


def test_equations_are_latex() -> None:
    fraction = (
        "<m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:sSup><m:e><m:r><m:t>β</m:t></m:r></m:e>"
        "<m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:den></m:f></m:oMath>"
    )
    found = read(p(t("so ") + fraction) + p(f"<m:oMathPara>{fraction}</m:oMathPara>"))
    assert found == [Text(r"so $\frac{a}{\beta^{2}}$"), Formula(r"\frac{a}{\beta^{2}}")]


def test_a_matrix_in_a_matrix_is_there_once() -> None:
    inner = "<m:m><m:mr><m:e><m:r><m:t>a</m:t></m:r></m:e></m:mr></m:m>"
    equation = f"<m:oMath><m:m><m:mr><m:e>{inner}</m:e></m:mr></m:m></m:oMath>"
    matrix = "\\begin{matrix}a\\end{matrix}"
    assert read(p(equation)) == [Formula(f"\\begin{{matrix}}{matrix}\\end{{matrix}}")]


def test_a_link_is_shown_once_a_section() -> None:
    links = {"x": ("hyperlink", "https://e.com/"), "y": ("hyperlink", "https://e.com/y")}
    here, there = (p(f'<w:hyperlink r:id="{each}">{t("here")}</w:hyperlink>') for each in "xy")
    heading = p(t("Next"), '<w:outlineLvl w:val="0"/>')
    found = read(here + there + here + heading + here, links=links)
    one, other = Link("here", "https://e.com/"), Link("here", "https://e.com/y")
    assert [each for each in found if isinstance(each, Link | Heading)] == [one, other, Heading("Next", 1), one]


def test_pictures_have_their_alternative_texts() -> None:
    blip = "<a:graphic><a:graphicData><pic:pic><a:blip/></pic:pic></a:graphicData></a:graphic>"
    inner = (
        f'<wp:inline><wp:extent cx="952500" cy="476250"/><wp:docPr id="1" name="x" descr="A pump"/>{blip}</wp:inline>'
    )
    assert read(p(f"<w:r><w:drawing>{inner}</w:drawing></w:r>")) == [Image(description="A pump", width=100, height=50)]


def test_a_picture_follows_the_text_of_its_page() -> None:
    picture = '<w:r><w:drawing><wp:docPr id="1" name="x" descr="A pump"/><a:blip/></w:drawing></w:r>'
    found = read(p(t("as shown") + picture) + p(t("and so on")))
    assert found == [Text("as shown"), Text("and so on"), Image(description="A pump")]


def test_a_header_stands_above_the_title_on_the_page_of_the_title() -> None:
    edges = '<w:sectPr><w:headerReference r:id="header1"/></w:sectPr>'
    body = p(t("Lease"), '<w:outlineLvl w:val="0"/>') + p(t("Body")) + edges
    [page] = pages(opened("a.docx", word_file(body, {"header1": f"<w:hdr>{p(t('Draft'))}</w:hdr>"})))
    assert page.title == "Lease"
    assert page.elements == [Header("Draft"), Heading("Lease", 1), Text("Body")]


def test_charts_and_smart_art_are_read_and_a_missing_part_costs_only_itself() -> None:
    def placed(inner: str) -> str:
        return f"<w:r><w:drawing><wp:inline><a:graphic>{inner}</a:graphic></wp:inline></w:drawing></w:r>"

    chart = (
        "<c:chartSpace><c:chart><c:title><a:t>Rain</a:t></c:title><c:plotArea><c:bar3DChart><c:ser>"
        "<c:tx><c:v>mm</c:v></c:tx><c:cat><c:strLit><c:pt idx='0'><c:v>May</c:v></c:pt></c:strLit></c:cat>"
        "<c:val><c:numLit><c:pt idx='0'><c:v>7.5</c:v></c:pt></c:numLit></c:val></c:ser></c:bar3DChart>"
        "</c:plotArea></c:chart></c:chartSpace>"
    )
    points = "".join(
        f'<dgm:pt modelId="{n}"><dgm:t><a:p><a:r><a:t>point {n}</a:t></a:r></a:p></dgm:t></dgm:pt>' for n in (1, 2)
    )
    body = p(
        placed('<c:chart r:id="chart"/>') + placed('<dgm:relIds r:dm="diagramData"/>') + placed('<c:chart r:id="no"/>')
    )
    found = read(
        body, {"chart": chart, "diagramData": f"<dgm:dataModel><dgm:ptLst>{points}</dgm:ptLst></dgm:dataModel>"}
    )
    data = {"categories": ["May"], "series": {"mm": [7.5]}}
    assert found == [Chart("Rain", "mm: May 7.5", "column", data), List(["point 1", "point 2"])]


def test_what_stands_above_and_below_every_page_is_there_once() -> None:
    above = '<w:headerReference r:id="header1"/><w:headerReference r:id="header2"/>'
    edges = f'<w:sectPr>{above}<w:footerReference r:id="footer1"/></w:sectPr>'
    parts = {"header1": f"<w:hdr>{p(t('Draft'))}</w:hdr>", "header2": f"<w:hdr>{p(t('Draft'))}</w:hdr>"}
    found = read(p(t("Body")) + edges, {**parts, "footer1": f"<w:ftr>{p(t('Page 1'))}</w:ftr>"})
    assert found == [Header("Draft"), Text("Body"), Footer("Page 1")]


def with_chunk(name: str, data: bytes) -> bytes:
    """A Word file with another file in the midst of its text."""
    body = f'{p(t("before"))}<w:altChunk r:id="chunk"/>{p(t("after"))}'
    with zipfile.ZipFile(io.BytesIO(word_file(body, links={"chunk": ("aFChunk", name)}))) as old:
        parts: dict[str, str | bytes] = {each: old.read(each) for each in old.namelist()}
    return archive({**parts, f"word/{name}": data})


@pytest.mark.parametrize(
    ("name", "data", "shown"),
    [
        ("a.html", b"<h3>Inner</h3><p>page", ["Inner", "page"]),
        ("a.txt", b"plain words", ["plain words"]),
        ("a.rtf", rb"{\rtf1 rich\par}", ["rich"]),
        ("a.docx", word_file("<w:p><w:r><w:t>word</w:t></w:r></w:p>"), ["word"]),
        ("a.docx", with_chunk("b.txt", b"too deep"), ["before", "after"]),
        (
            "a.docx",
            b"PK broken",
            ["Left out here: a.docx, a file within this one (the file is broken: File is not a zip file)."],
        ),
        ("a.bin", b"?", ["Left out here: a.bin, a file within this one (its kind is not known)."]),
    ],
)
def test_a_file_within_a_word_file_is_read_in_its_place(name: str, data: bytes, shown: list[str]) -> None:
    elements = [each for page in pages(opened("a.docx", with_chunk(name, data))) for each in page.elements]
    assert [getattr(element, "text", "") for element in elements] == ["before", *shown, "after"]


def test_strict_files_are_read_as_others() -> None:
    usual = word_file(
        p(t("strict") + f'<w:hyperlink r:id="x">{t("!")}</w:hyperlink>'), links={"x": ("hyperlink", "https://e.com/")}
    )
    parts: dict[str, str | bytes] = {}
    with zipfile.ZipFile(io.BytesIO(usual)) as old:
        for name in old.namelist():
            data = old.read(name).replace(
                b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
                b"http://purl.oclc.org/ooxml/wordprocessingml/main",
            )
            parts[name] = data.replace(
                b"http://schemas.openxmlformats.org/officeDocument/2006/relationships",
                b"http://purl.oclc.org/ooxml/officeDocument/relationships",
            )
    [page] = pages(opened("a.docx", archive(parts)))
    assert page.elements == [Text("strict!"), Link("!", "https://e.com/")]


def test_a_file_that_is_cut_is_read_up_to_there_and_says_so() -> None:
    data = archive({"word/document.xml": word_xml("<w:p><w:r><w:t>begins</w:t></w:r></w:p><w:p><w:r><w:t>and")})
    found = [element for page in pages(opened("a.docx", data)) for element in page.elements]
    assert found[0] == Text("begins")
    assert isinstance(found[-1], Annotation) and "broken" in found[-1].text


def word_xml(body: str) -> str:
    return f'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>{body}'


def test_a_document_type_is_refused_and_deep_xml_ends() -> None:
    entity = '<!DOCTYPE a [<!ENTITY x "y">]>' + word_xml("<w:p/></w:body></w:document>")
    with pytest.raises(Unreadable):
        opened("a.docx", archive({"word/document.xml": entity}))
    cells = "<w:tbl><w:tr><w:tc>" * 60 + p(t("deep")) + "</w:tc></w:tr></w:tbl>" * 60
    assert "deep" in describe(opened("a.docx", word_file(cells)), "a.docx").summary
