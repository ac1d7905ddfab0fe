"""The two small documents of the tour."""

from collections.abc import Mapping
from typing import Final

from a2c_smcp.mcp_server.documents import Page, PagedDocument
from a2c_smcp.mcp_server.elements import Cell, Chart, Heading, Table, Text

__all__ = ["DOCUMENTS"]

_QUARTERS: list[list[Cell]] = [["Q1", 120, 80], ["Q2", 135, 82], ["Q3", 150, 81], ["Q4", 160, 83]]

DOCUMENTS: Final[Mapping[str, PagedDocument]] = {
    "年度报告": PagedDocument(
        "年度报告 2025",
        [
            Page("Summary", [Heading("The year in one page", 2), Text("Revenue grew by a third; costs did not.")]),
            Page(
                "Quarters",
                [
                    Heading("Revenue by quarter", 2),
                    Table(
                        ["quarter", "revenue", "cost"],
                        _QUARTERS,
                        element_id="table-1",
                        summary="Revenue and cost by quarter",
                    ),
                    Chart("Revenue", "120 → 160, steadily", summary="A rising line"),
                ],
            ),
        ],
        file_type="xlsx",
        file_uri="file:///demo/年度报告.xlsx",
        keywords=["finance", "财务"],
        summary="Revenue by quarter, and what became of the costs.",
        last_modified="2026-02-14T10:30:01+08:00",
    ),
    "handbook": PagedDocument(
        "Operator's handbook",
        [Page("Red lights", [Text("Look at it. Then call someone.", summary="Do not panic")])],
        file_type="md",
        file_uri="file:///demo/handbook.md",
        keywords=["help"],
        summary="What to do when a light turns red.",
        last_modified="2025-11-02T08:00:00Z",
    ),
}
