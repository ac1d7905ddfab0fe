"""PowerPoint files part by part: a shape that is broken costs only itself."""

from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Annotation, Chart, Footer, Heading, Image, Link, List, Table, Text
from tests.docs.office_files import slides_file, text_shape
from tests.docs.test_formats import opened, pages


def slide(shapes: str, parts: dict[str, str] | None = None, links: dict[str, tuple[str, str]] | None = None) -> Page:
    [page] = pages(opened("a.pptx", slides_file([shapes], [parts or {}], links=links)))
    return page


def frame(inner: str) -> str:
    named = '<p:nvGraphicFramePr><p:cNvPr id="1" name="a frame"/></p:nvGraphicFramePr>'
    return f"<p:graphicFrame>{named}<a:graphic><a:graphicData>{inner}</a:graphicData></a:graphic></p:graphicFrame>"


def series(name: str, points: dict[str, float]) -> str:
    def cached(texts: list[str]) -> str:
        return "".join(f'<c:pt idx="{number}"><c:v>{text}</c:v></c:pt>' for number, text in enumerate(texts))

    values = cached([str(value) for value in points.values()])
    return (
        f"<c:ser><c:tx><c:strRef><c:strCache>{cached([name])}</c:strCache></c:strRef></c:tx>"
        f"<c:cat><c:strRef><c:strCache>{cached(list(points))}</c:strCache></c:strRef></c:cat>"
        f"<c:val><c:numRef><c:numCache>{values}</c:numCache></c:numRef></c:val></c:ser>"
    )


def chart(kind: str, *each: str) -> str:
    title = "<c:title><c:tx><c:rich><a:p><a:r><a:t>Rain</a:t></a:r></a:p></c:rich></c:tx></c:title>"
    plot = f"<c:plotArea><c:{kind}>{''.join(each)}</c:{kind}></c:plotArea>"
    return f"<c:chartSpace><c:chart>{title}{plot}</c:chart></c:chartSpace>"


def test_a_title_comes_first_and_the_rest_in_the_order_of_the_file() -> None:
    shapes = ("low", ""), ("The year", "title"), ("one\ntwo", ""), ("3", "sldNum")
    page = slide("".join(text_shape(text, kind) for text, kind in shapes))
    assert page.title == "The year"
    assert page.elements == [Heading("The year", 1), Text("low"), List(["one", "two"]), Footer("3")]


def test_shapes_that_point_at_nothing_cost_only_themselves() -> None:
    named = '<p:nvPicPr><p:cNvPr id="2" name="p" descr="A pump"/></p:nvPicPr>'
    linked = f'<p:pic>{named}<p:blipFill><a:blip r:link="no"/></p:blipFill></p:pic>'
    bare = "<p:pic/><p:sp/><p:graphicFrame/><p:cxnSp/><p:unknown/>"
    page = slide(linked + bare + frame('<c:chart r:id="no"/>') + frame('<dgm:relIds r:dm="no"/>') + text_shape("whole"))
    assert page.elements == [Text("whole"), Image(description="A pump"), Image()]


def test_charts_of_three_dimensions_and_unknown_kinds_have_their_figures() -> None:
    points = {"May": 7.5, "June": 3.0}
    parts = {
        "chart1": chart("bar3DChart", series("mm", points), series("days", {"May": 9, "June": 8})),
        "chart2": chart("novelChart", series("mm", points)),
    }
    page = slide(frame('<c:chart r:id="chart1"/>') + frame('<c:chart r:id="chart2"/>'), parts)
    first, second = page.elements
    assert isinstance(first, Chart) and isinstance(second, Chart)
    assert first.data == {"categories": ["May", "June"], "series": {"mm": [7.5, 3.0], "days": [9.0, 8.0]}}
    assert (first.title, first.data_summary) == ("Rain", "mm: May 7.5, June 3; days: May 9, June 8")
    assert second.data["series"] == {"mm": [7.5, 3.0]}


def test_groups_smart_art_and_alternatives_are_read_once() -> None:
    group = f"<p:grpSp>{text_shape('inside')}<p:grpSp>{text_shape('deeper')}</p:grpSp></p:grpSp>"
    both = (
        f'<mc:AlternateContent><mc:Choice Requires="p14">{text_shape("once")}</mc:Choice>'
        f"<mc:Fallback>{text_shape('once')}</mc:Fallback></mc:AlternateContent>"
    )
    points = "".join(
        f'<dgm:pt modelId="{each}"><dgm:t><a:p><a:r><a:t>{each}</a:t></a:r></a:p></dgm:t></dgm:pt>'
        for each in ("b", "a")
    )
    links = '<dgm:cxn srcId="a" destId="b" srcOrd="0"/>'
    data = f"<dgm:dataModel><dgm:ptLst>{points}</dgm:ptLst><dgm:cxnLst>{links}</dgm:cxnLst></dgm:dataModel>"
    page = slide(group + both + frame('<dgm:relIds r:dm="diagramData"/>'), {"diagramData": data})
    assert page.elements == [Text("inside"), Text("deeper"), Text("once"), List(["a", "b"])]


def test_merged_cells_of_a_table_have_their_text_once() -> None:
    def cell(text: str, settings: str = "") -> str:
        return f"<a:tc {settings}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"

    rows = (cell("wide", 'gridSpan="2"') + cell("wide", 'hMerge="1"'), cell("a") + cell("b"))
    shown = "".join(f"<a:tr>{row}</a:tr>" for row in rows)
    page = slide(frame(f"<a:tbl><a:tblPr firstRow='1'/>{shown}</a:tbl>"))
    assert page.elements == [Table(["wide", ""], [["a", "b"]])]


def test_notes_and_comments_are_annotations_and_shown_whole() -> None:
    long = "speak slowly " * 40
    shapes = text_shape(long, "body") + text_shape("7", "sldNum")
    notes = f"<p:notes><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:notes>"
    comments = '<p:cmLst><p:cm authorId="0"><p:text>really?</p:text></p:cm></p:cmLst>'
    page = slide(text_shape("x"), {"notesSlide": notes, "comments": comments})
    assert page.elements == [Text("x"), Annotation(long.strip()), Annotation("really?")]


def test_a_hidden_slide_says_so_and_a_slide_that_is_missing_costs_only_itself() -> None:
    first, second = pages(opened("a.pptx", slides_file([text_shape("One", "title"), ""], hidden=[0])))
    assert (first.title, second.title) == ("One (hidden slide)", "Slide 2")


def test_numbered_paragraphs_have_their_numbers() -> None:
    settings = '<a:pPr><a:buAutoNum type="alphaLcParenR"/></a:pPr>'
    assert slide(text_shape("x\ny", settings=settings)).elements == [List(["x", "y"], labels=["a)", "b)"])]
    settings = '<a:pPr><a:buAutoNum type="arabicPeriod"/></a:pPr>'
    assert slide(text_shape("x\ny", settings=settings)).elements == [List(["x", "y"], ordered=True)]


def test_links_and_equations_of_shapes_are_read() -> None:
    run = '<a:r><a:rPr><a:hlinkClick r:id="x"/></a:rPr><a:t>there</a:t></a:r>'
    math = "<a14:m><m:oMath><m:r><m:t>π</m:t></m:r></m:oMath></a14:m>"
    shape = f"<p:sp><p:txBody><a:p>{run}{math}</a:p></p:txBody></p:sp>"
    found = slide(shape, links={"x": ("hyperlink", "https://example.com/")}).elements
    assert found == [Text(r"there$\pi$"), Link("there", "https://example.com/")]
