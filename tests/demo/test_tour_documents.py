"""What the tour says of its documents is there."""

import json
from typing import Any

import mcp_types as types
from mcp.client import Client

from a2c_smcp.demo.mcp_server import server
from a2c_smcp.utils.dpe_uri import build_dpe_uri, element_uri, page_uri, with_params

REPORT = build_dpe_uri("demo.board", "年度报告")


async def read(client: Client, uri: str) -> Any:
    [content] = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return json.loads(content.text) if content.mime_type == "application/json" else content.text


async def test_the_report_has_a_summary_a_table_and_a_chart() -> None:
    async with Client(server.mcp) as client:
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        assert listed[:2] == ["window://demo.board/notes?priority=50", "window://demo.board/status"]
        assert REPORT in listed
        assert "财务" in (await read(client, REPORT))["keywords"]
        assert (await read(client, page_uri(REPORT, 1)))["element_count"] == 3
        text = await read(client, with_params(page_uri(REPORT, 1), {"format": "markdown"}))
        assert "| Q4 | 160 | 83 |" in text and "[图表: Revenue] 120 → 160, steadily" in text
        table = await read(client, element_uri(REPORT, "table-1"))
        assert table["content"]["headers"] == ["quarter", "revenue", "cost"]
