"""The demo's documents answer at every level as the contract says."""

import json
from typing import Any

import pytest

from a2c_smcp.computer.utils.dpe_uri import element_uri, page_uri, with_params
from a2c_smcp.demo.documents import HOST, answer, catalogue
from a2c_smcp.errors import SMCPError

REPORT = catalogue()[0][0]


def read(uri: str) -> Any:
    mime_type, text = answer(uri)
    assert mime_type == "application/json"
    return json.loads(text)


def test_level_0_lists_what_is_there() -> None:
    listing = read(f"dpe://{HOST}")
    assert listing["total_count"] == len(listing["documents"]) == len(catalogue())


def test_level_1_is_the_document_and_with_depth_its_pages() -> None:
    assert read(REPORT)["doc_ref"] == "年度报告"
    assert "pages" not in read(REPORT)
    index = read(with_params(REPORT, {"depth": "pages", "offset": "1", "limit": "1"}))
    assert [page["title"] for page in index["pages"]] == ["Quarters"]
    assert (index["page_offset"], index["page_limit"], index["page_total"]) == (1, 1, 2)


def test_level_2_is_a_page_as_data_or_markdown() -> None:
    assert read(page_uri(REPORT, 1))["element_count"] == 3
    mime_type, text = answer(with_params(page_uri(REPORT, 1), {"format": "markdown"}))
    assert mime_type == "text/markdown"
    assert "| Q4 | 160 | 83 |" in text
    assert "[图表: Revenue]" in text


def test_level_3_is_an_element() -> None:
    assert read(element_uri(REPORT, "table-1"))["content"]["headers"] == ["quarter", "revenue", "cost"]


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        (f"dpe://{HOST}/nothing", 4201),
        (page_uri(REPORT, 2), 4202),
        (element_uri(REPORT, "nothing"), 4203),
        ("dpe://", 4204),
    ],
)
def test_what_is_not_there_has_its_code(uri: str, code: int) -> None:
    with pytest.raises(SMCPError) as caught:
        answer(uri)
    assert caught.value.code == code
