"""Documents at every level: a shelf, and a source of one's own, answered as the contract says."""

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import BlobResourceContents, TextResourceContents

from a2c_smcp.errors import InternalError, InvalidDPEURIError, SMCPError
from a2c_smcp.mcp_server import elements as e
from a2c_smcp.mcp_server.answers import DocumentRoom
from a2c_smcp.mcp_server.changes import Changes
from a2c_smcp.mcp_server.documents import Document, DocumentShelf, DocumentSource, Page, PagedDocument
from a2c_smcp.utils.dpe_uri import CATEGORIES, build_dpe_uri, element_uri, page_uri, with_image, with_params
from tests.mcp_server.test_rendering import CODES, HEADINGS, INLINE, LISTS, TABLES, TEXTS
from tests.mcp_server.test_windows import Said

HOST = "com.example.library"
CATALOGUE = f"dpe://{HOST}"
WALDEN = f"{CATALOGUE}/walden"

PAGES = [
    Page("Economy", [e.Heading("Economy"), e.Text("When I wrote…", element_id="first"), e.Table(["a", "b"], [[1, 2]])]),
    Page("Reading", [e.Chart("Books", "rising", element_id="a/1", metadata={"sheet": 3})]),
]


def shelf() -> DocumentShelf:
    walden = PagedDocument(
        "Walden",
        PAGES,
        file_type="pdf",
        file_uri="file:///walden.pdf",
        keywords=["woods"],
        summary="Life in the woods.",
        last_modified=datetime(1854, 8, 9, tzinfo=UTC),
    )
    return DocumentShelf({"walden": walden, "年度": PagedDocument("Report")})


class Folder:
    """A source with the four methods and nothing else; its pages are made when they are asked for."""

    def __init__(self) -> None:
        self.read: list[int] = []

    async def catalogue(self, offset: int, limit: int) -> tuple[Sequence[Document], int]:
        return [Document(str(number), f"Document {number}", 3) for number in range(250)][offset : offset + limit], 250

    async def document(self, doc_ref: str) -> Document | None:
        return Document(doc_ref, f"Document {doc_ref}", 3) if doc_ref.isdigit() and int(doc_ref) < 250 else None

    async def page(self, doc_ref: str, page_index: int) -> Page:
        self.read.append(page_index)
        return Page(f"Page {page_index}", [e.Text(f"{doc_ref} {page_index}"), e.Text("own", element_id="own")])

    async def element(self, doc_ref: str, element_id: str) -> tuple[int, e.Element] | None:
        return (1, e.Text("own", element_id="own")) if element_id == "own" else None


def room(source: DocumentSource | None = None) -> DocumentRoom:
    return DocumentRoom(HOST, shelf() if source is None else source, Changes(1, 1))


async def read(uri: str, source: DocumentSource | None = None) -> tuple[str | None, str]:
    [content] = await room(source).read(uri)
    assert isinstance(content, TextResourceContents) and content.uri == uri
    return content.mime_type, content.text


async def data(uri: str, source: DocumentSource | None = None) -> Any:
    kind, text = await read(uri, source)
    assert kind == "application/json"
    return json.loads(text)


WALDEN_FACTS = {
    "doc_ref": "walden",
    "uri": WALDEN,
    "file_uri": "file:///walden.pdf",
    "file_type": "pdf",
    "title": "Walden",
    "page_count": 2,
    "keywords": ["woods"],
    "summary": "Life in the woods.",
    "last_modified": "1854-08-09T00:00:00+00:00",
}


async def test_level_0_is_the_catalogue_in_pages() -> None:
    found = await data(CATALOGUE)
    assert found == {"documents": [WALDEN_FACTS, found["documents"][1]], "total_count": 2}
    assert found["documents"][1]["uri"] == build_dpe_uri(HOST, "年度")
    assert found["documents"][1]["last_modified"] is None
    later = await data(f"{CATALOGUE}?offset=1&limit=1")
    assert [each["doc_ref"] for each in later["documents"]] == ["年度"] and later["total_count"] == 2
    many = await data(CATALOGUE, Folder())
    assert len(many["documents"]) == 20 and many["total_count"] == 250


async def test_level_1_is_the_document_and_with_depth_its_pages() -> None:
    assert await data(WALDEN) == WALDEN_FACTS
    assert await data(f"{WALDEN}?depth=metadata") == WALDEN_FACTS
    pages = await data(f"{WALDEN}?depth=pages&offset=1&limit=5")
    second = {"page_index": 1, "title": "Reading", "element_count": 1, "uri": page_uri(WALDEN, 1), "doc_ref": "walden"}
    assert pages == WALDEN_FACTS | {"pages": [second], "page_offset": 1, "page_limit": 5, "page_total": 2}
    assert (await data(f"{WALDEN}?depth=pages&offset=7"))["pages"] == []


async def test_a_source_that_has_no_summaries_is_asked_for_the_pages_that_are_wanted() -> None:
    folder = Folder()
    found = await data(f"{CATALOGUE}/7?depth=pages&offset=1&limit=1", folder)
    assert [(page["page_index"], page["title"], page["element_count"]) for page in found["pages"]] == [(1, "Page 1", 2)]
    assert folder.read == [1]


async def test_level_2_is_a_page_and_categories_choose_from_it() -> None:
    page = await data(page_uri(WALDEN, 0))
    assert {key: page[key] for key in ("page_index", "title", "doc_ref", "uri", "element_count")} == {
        "page_index": 0,
        "title": "Economy",
        "doc_ref": "walden",
        "uri": page_uri(WALDEN, 0),
        "element_count": 3,
    }
    assert [each["element_id"] for each in page["elements"]] == ["p0-0", "first", "p0-2"]
    assert page["elements"][2] == {
        "element_id": "p0-2",
        "category": "table",
        "summary": "a, b",
        "content": {"headers": ["a", "b"], "rows": [[1, 2]]},
    }
    chosen = await data(f"{page_uri(WALDEN, 0)}?categories=table,chart")
    assert [each["category"] for each in chosen["elements"]] == ["table"] and chosen["element_count"] == 1


async def test_level_3_is_an_element_by_its_id_or_by_its_place() -> None:
    chart = await data(element_uri(WALDEN, "a/1"))
    assert chart == {
        "element_id": "a/1",
        "category": "chart",
        "summary": "Books",
        "content": {"title": "Books", "data_summary": "rising"},
        "doc_ref": "walden",
        "page_index": 1,
        "uri": element_uri(WALDEN, "a/1"),
        "metadata": {"sheet": 3},
    }
    assert (await data(element_uri(WALDEN, "p0-2")))["category"] == "table"
    folder = f"{CATALOGUE}/7"
    assert (await data(element_uri(folder, "own"), Folder()))["page_index"] == 1
    assert (await data(element_uri(folder, "p2-0"), Folder()))["content"] == {"text": "7 2"}


async def test_markdown_and_text_at_every_level() -> None:
    shown = {
        CATALOGUE: (
            f"- [Walden]({WALDEN}): Life in the woods.\n- [Report]({build_dpe_uri(HOST, '年度')})",
            f"Walden ({WALDEN}): Life in the woods.\nReport ({build_dpe_uri(HOST, '年度')})",
        ),
        f"{CATALOGUE}?offset=1&limit=1": (
            f"- [Report]({build_dpe_uri(HOST, '年度')})\n\ndocuments 1 to 1 of 2; go on with ?offset=2",
            f"Report ({build_dpe_uri(HOST, '年度')})\n\ndocuments 1 to 1 of 2; go on with ?offset=2",
        ),
        f"{WALDEN}?depth=pages": (
            "# Walden\n\nLife in the woods.\n\n"
            "type: pdf · pages: 2 · keywords: woods · modified: 1854-08-09T00:00:00+00:00\n\n"
            f"- [Economy]({WALDEN}/pages/0): 3 elements\n- [Reading]({WALDEN}/pages/1): 1 elements",
            "Walden\n\nLife in the woods.\n\n"
            "type: pdf · pages: 2 · keywords: woods · modified: 1854-08-09T00:00:00+00:00\n\n"
            f"Economy ({WALDEN}/pages/0): 3 elements\nReading ({WALDEN}/pages/1): 1 elements",
        ),
        f"{WALDEN}/pages/0?categories=heading,table": (
            "# Economy\n\n| a | b |\n| --- | --- |\n| 1 | 2 |",
            "Economy\n\na\tb\n1\t2",
        ),
        f"{WALDEN}/elements/a%2F1": ("[图表: Books] rising", "[图表: Books] rising"),
    }
    for uri, (markdown, text) in shown.items():
        assert await read(with_params(uri, {"format": "markdown"})) == ("text/markdown", markdown)
        assert await read(with_params(uri, {"format": "text"})) == ("text/plain", text)
    assert await read(f"{CATALOGUE}?offset=9&format=text") == ("text/plain", "none from 9 on: there are 2 documents")


@pytest.mark.parametrize(
    ("uri", "code", "details"),
    [
        (f"{CATALOGUE}/nothing", 4201, {"doc_ref": "nothing"}),
        (f"{CATALOGUE}/nothing/pages/0", 4201, {"doc_ref": "nothing"}),
        (f"{WALDEN}/pages/2", 4202, {"page_index": 2, "page_count": 2}),
        (f"{WALDEN}/elements/nothing", 4203, {"element_id": "nothing"}),
        (f"{WALDEN}/elements/p0-1", 4203, {"element_id": "p0-1"}),  # that one has an id of its own
        (f"{WALDEN}/elements/p0-9", 4203, {"element_id": "p0-9"}),
        (f"{WALDEN}/elements/p9-0", 4203, {"element_id": "p9-0"}),
        (f"{WALDEN}/elements/p00-0", 4203, {"element_id": "p00-0"}),
        (f"{WALDEN}/chapters/1", 4204, {"uri": f"{WALDEN}/chapters/1"}),
        (f"{WALDEN}?format=pdf", 4204, {"uri": f"{WALDEN}?format=pdf"}),
        ("dpe://elsewhere/walden", 404, {}),
    ],
)
async def test_what_is_not_there_has_its_code(uri: str, code: int, details: dict[str, Any]) -> None:
    with pytest.raises(SMCPError) as caught:
        await room().read(uri)
    assert (caught.value.code, caught.value.details) == (code, details)


async def test_completion_knows_documents_pages_and_elements() -> None:
    templates = [each.uri_template for each in await room().templates()]
    assert templates == [
        f"{CATALOGUE}/{{doc_ref}}{path}" for path in ("", "/pages/{page_index}", "/elements/{element_id}")
    ]

    async def values(
        name: str, typed: str, source: DocumentSource | None = None, **known: str
    ) -> tuple[list[str], bool]:
        found = await room(source).complete(templates[2], name, typed, known)
        return list(found.values), found.more

    assert await values("doc_ref", "w") == (["walden"], False)
    assert await values("doc_ref", "") == (["walden", "年度"], False)
    assert await values("page_index", "", doc_ref="walden") == (["0", "1"], False)
    assert await values("page_index", "") == ([], False)  # of which of the two?
    assert await values("page_index", "", doc_ref="nothing") == ([], False)
    assert await values("element_id", "p", doc_ref="walden") == (["p0-0", "p0-2"], False)
    assert await values("unknown", "", doc_ref="walden") == ([], False)
    many, more = await values("doc_ref", "", Folder())
    assert (len(many), more) == (100, True)
    assert await values("doc_ref", "24", Folder()) == (["24", *(f"24{number}" for number in range(10))], False)
    assert (await room().complete("file:///{x}", "doc_ref", "", {})).values == ()
    assert await room(DocumentShelf()).templates() == ()


async def test_a_document_that_is_alone_needs_no_naming_to_be_completed() -> None:
    one = room(DocumentShelf({"only": PagedDocument("Only", PAGES)}))
    found = await one.complete(f"{CATALOGUE}/{{doc_ref}}/pages/{{page_index}}", "page_index", "", {})
    assert list(found.values) == ["0", "1"]


def test_a_shelf_says_what_changes() -> None:
    changes, documents = Said(), shelf()
    made = DocumentRoom(HOST, documents, changes)
    documents["new"] = PagedDocument("New")
    assert changes.take() == ["list", CATALOGUE]
    documents["new"] = PagedDocument("New", PAGES)
    assert changes.take() == [f"{CATALOGUE}/new", CATALOGUE]
    documents["new"] = PagedDocument("New", PAGES)
    assert changes.take() == []
    documents["new"] = PagedDocument("Newer", PAGES)  # it is listed by its title
    assert changes.take() == ["list", CATALOGUE, f"{CATALOGUE}/new", CATALOGUE]
    del documents["new"]
    assert changes.take() == ["list", CATALOGUE]
    parts = (WALDEN, f"{WALDEN}/", f"{WALDEN}/pages/3?format=text", f"{WALDEN}/elements/x", f"{CATALOGUE}/w%61lden")
    assert {made.topic(part) for part in parts} == {WALDEN}
    assert (made.topic(f"{CATALOGUE}?limit=3"), made.topic("dpe://")) == (CATALOGUE, "dpe://")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Document("", "T", 1), "needs a doc_ref"),
        (lambda: Document("\ud800", "T", 1), "cannot be encoded"),
        (lambda: Document("年" * 500, "T", 1), "is too long"),
        (lambda: Document("d", "T", -1), "from 0 up, not -1"),
        (lambda: Document("d", None, 1), "title is a text, not NoneType"),  # type: ignore[arg-type]
        (lambda: Document("d", "T", 1, keywords="woods"), "a list of texts"),
        (lambda: Document("d", "T", 1, last_modified="yesterday"), "an ISO 8601 time with its offset from UTC"),
        (lambda: Document("d", "T", 1, last_modified="2026-01-01T00:00:00"), "with its offset from UTC"),
        (lambda: Document("d", "T", 1, last_modified=datetime(2026, 1, 1)), "with its offset from UTC"),
        (lambda: Page("T", ["text"]), "made of elements, not of str"),  # type: ignore[list-item]
        (lambda: PagedDocument("T", ["page"]), "made of pages, not of str"),  # type: ignore[list-item]
        (
            lambda: PagedDocument("T", [Page("1", [e.Text("x", element_id="a"), e.Text("y", element_id="a")])]),
            "two elements of 'T' have the id 'a'",
        ),
        (lambda: PagedDocument("T", [Page("1", [e.Text("x"), e.Text("y", element_id="p0-0")])]), "have the id 'p0-0'"),
        (lambda: DocumentShelf({"d": "text"}), "is a PagedDocument, not str"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_listed_is_said_when_it_is_made(make: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        make()


# --- random pages: JSON, Markdown and text of one description

ELEMENTS = st.one_of(TABLES, CODES, LISTS, HEADINGS, INLINE, TEXTS, st.just(e.Separator()))
RANDOM_PAGES = st.lists(st.builds(Page, st.text(max_size=10), st.lists(ELEMENTS, max_size=5)), max_size=3)


@given(RANDOM_PAGES, st.sets(st.sampled_from(sorted(CATEGORIES)), min_size=1), st.text(min_size=1, max_size=8))
def test_random_pages_are_read_in_every_form(pages: list[Page], categories: set[str], doc_ref: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in doc_ref):
        return
    source = DocumentShelf({doc_ref: PagedDocument("Any", pages)})
    document = build_dpe_uri(HOST, doc_ref)

    async def everything() -> None:
        assert (await data(f"{document}?depth=pages", source))["page_total"] == len(pages)
        for index, page in enumerate(pages):
            whole = await data(page_uri(document, index), source)
            assert [each["content"] for each in whole["elements"]] == [each.content for each in page.elements]
            chosen = await data(with_params(page_uri(document, index), {"categories": ",".join(categories)}), source)
            assert chosen["elements"] == [each for each in whole["elements"] if each["category"] in categories]
            for each in whole["elements"]:
                found = await data(element_uri(document, each["element_id"]), source)
                assert {key: found[key] for key in each} == each and found["page_index"] == index
            for form in ("markdown", "text"):
                await read(with_params(page_uri(document, index), {"format": form}), source)

    anyio.run(everything)


class Pictured(DocumentShelf):
    """A shelf whose pages can be looked at, and one element."""

    answer: bytes | None = b"\x89PNG\r\n\x1a\n"

    async def picture(self, doc_ref: str, page_index: int, element: e.Element | None, longest: int) -> bytes | None:
        if self.answer is None:
            raise InternalError("no light")
        name = element.category if element else "page"
        return self.answer + f"{doc_ref} {page_index} {name} {longest}".encode()


async def contents(source: DocumentSource, uri: str) -> list[bytes]:
    text, *blobs = await room(source).read(uri)
    assert isinstance(text, TextResourceContents)
    assert all(isinstance(blob, BlobResourceContents) and blob.mime_type == "image/png" for blob in blobs)
    return [base64.b64decode(blob.blob) for blob in blobs if isinstance(blob, BlobResourceContents)]


async def test_a_page_and_an_element_come_with_a_picture_where_it_is_asked_for() -> None:
    source = Pictured(shelf())
    page, element = page_uri(WALDEN, 1), element_uri(WALDEN, "a/1")
    assert await contents(source, with_image(page, 64)) == [b"\x89PNG\r\n\x1a\nwalden 1 page 64"]
    assert await contents(source, with_image(element, 4096)) == [b"\x89PNG\r\n\x1a\nwalden 1 chart 4096"]
    assert await contents(source, page) == []
    assert await contents(source, with_params(WALDEN, {"a2c_image": "200"})) == []


async def test_without_a_picture_the_text_is_the_whole_answer() -> None:
    uri = with_image(page_uri(WALDEN, 1), 200)
    assert await contents(shelf(), uri) == []
    for answer in (None, b"GIF89a", b"\x89PNG\r\n\x1a\n" + bytes(5 * 2**20)):
        source = Pictured(shelf())
        source.answer = answer
        assert await contents(source, uri) == []


@pytest.mark.parametrize("value", ["63", "4097", "1e3", "-100", ""])
async def test_a_picture_of_another_size_cannot_be_asked_for(value: str) -> None:
    with pytest.raises(InvalidDPEURIError):
        await contents(Pictured(shelf()), f"{WALDEN}/pages/1?a2c_image={value}")
