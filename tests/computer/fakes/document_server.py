"""An MCP stdio server with documents, on the kit, in both eras. Its tools `put` and `remove` change what it has.

A process takes a second to import mcp: the fakes that tests start by the dozen are on the standard library instead.
"""

from a2c_smcp.mcp_server import ContextServer, Page, PagedDocument
from a2c_smcp.mcp_server import elements as e

PAGES = [
    Page(
        "Overview",
        [
            e.Heading("Overview", 2, element_id="h1"),
            e.Text("Sales went up.", element_id="x1", summary="What it is about"),
            e.List(["north", "south"], element_id="l1", summary="Two points"),
            e.Image("map", "https://example.com/map.png", element_id="i1", summary="A map"),
            e.Annotation("see below", element_id="a/1", summary="A remark"),
        ],
    ),
    Page(
        "Figures",
        [
            e.Table(["quarter", "sales"], [["Q1", 10], ["Q2", 12]], element_id="t1", summary="Sales by quarter"),
            e.Chart("Sales", "rising", element_id="c1"),
            e.Formula("g = 1.2", element_id="f1", summary="Growth"),
            e.Code("select 1", "sql", element_id="k1", summary="A query"),
            e.Link("more", "https://example.com", element_id="u1"),
        ],
    ),
]


def document(doc_ref: str, title: str, modified: str) -> PagedDocument:
    return PagedDocument(
        title,
        PAGES,
        file_type="xlsx" if doc_ref == "sales" else "pdf",
        file_uri=f"file:///{doc_ref}.xlsx",
        keywords=[doc_ref, "figures"],
        summary=f"All about {title}",
        last_modified=modified,
    )


server = ContextServer("documents", host="com.example.docs")
server.documents["sales"] = document("sales", "Sales 2026", "2026-02-01T00:00:00Z")
server.documents["plan"] = document("plan", "The plan", "2026-01-01T00:00:00Z")


@server.tool
async def put(doc_ref: str, title: str) -> str:
    server.documents[doc_ref] = document(doc_ref, title, "2026-03-01T00:00:00Z")
    return "done"


@server.tool
async def remove(doc_ref: str) -> str:
    del server.documents[doc_ref]
    return "done"


if __name__ == "__main__":
    server.run()
