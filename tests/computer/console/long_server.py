"""An MCP server whose every name is as long as it may be, and has no place where a line may break."""

from a2c_smcp.mcp_server import ContextServer, DocumentShelf, Window
from a2c_smcp.mcp_server.documents import Page, PagedDocument
from a2c_smcp.mcp_server.elements import Code, Heading, Table, Text

LONG = "unbroken" * 38  # 304 characters
RTL = "مستند" * 60
EMOJI = "🏴‍☠️" * 75

server = ContextServer(
    "long",
    host="long.test",
    documents=DocumentShelf(
        {
            f"{name[:20]}-{number}": PagedDocument(
                name,
                [
                    Page(
                        name,
                        [
                            Heading(name, 2),
                            Text(name),
                            Table([name, "b"], [[name, 1], ["x", name]], element_id="table", summary=name),
                            Code(name, "html"),
                        ],
                    ),
                    Page(LONG, [Text(LONG)]),
                ],
                file_type=LONG[:60],
                file_uri=f"file:///{LONG}/{LONG}{number}.md",
                keywords=[LONG, RTL],
                summary=name,
            )
            for number, name in enumerate((LONG, RTL, EMOJI))
        }
    ),
)
for number, name in enumerate((LONG, RTL, EMOJI)):
    server.windows[f"{LONG[:150]}{number}"] = Window(name, priority=50)


async def tool(trip: dict[str, str], flag: bool = False) -> str:
    return LONG


tool.__name__ = f"{LONG[:120]}"
tool.__doc__ = f"{LONG} {RTL} {EMOJI}"
server.tool(tool)


if __name__ == "__main__":
    import sys

    print(LONG, file=sys.stderr, flush=True)
    server.run()
