"""Which server a resource is read from, and what agents are told when it cannot be."""

import logging

import pytest

from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.resources.routing import Readable, Target, find_target, refusal
from a2c_smcp.computer.watching.announcements import Listed, Watch
from a2c_smcp.errors import SMCPError


def readable(**listed: list[str]) -> Readable:
    watch = Watch()
    for server, uris in listed.items():
        watch, _ = watch.relist(server, Listed(uris))
    return Readable(watch)


WATCH = readable(
    a=["window://w/1", "dpe://h/1", "file:///etc/passwd"],
    b=["window://w/1", "window://w/2", "dpe://h/2", "dpe://i/a%2Fb?lang=en"],
)
ORDER = ["a", "b"]


@pytest.mark.parametrize(
    ("uri", "server"),
    [
        ("window://w/1", "a"),
        ("window://w/2", "b"),
        ("dpe://h/1", "a"),
        ("dpe://h/2/pages/3?format=text", "b"),
        ("dpe://h/2/elements/e", "b"),
        ("dpe://i/a%2Fb", "b"),
        ("dpe://i", "b"),
        ("dpe://h", "a"),
        ("dpe://h/unlisted", "a"),
    ],
)
def test_the_server_that_lists_it_is_asked_or_else_the_first_of_its_host(uri: str, server: str) -> None:
    assert find_target(uri, WATCH, ORDER).server == server


def test_the_order_decides_between_several() -> None:
    assert find_target("window://w/1", WATCH, ["b", "a"]).server == "b"


def test_two_servers_with_documents_of_one_host_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        find_target("dpe://h/2", WATCH, ORDER)
        find_target("dpe://i", WATCH, ORDER)
        assert "is asked" not in caplog.text
        find_target("dpe://h", WATCH, ORDER)
    assert "a is asked" in caplog.text


@pytest.mark.parametrize(
    ("uri", "code", "details"),
    [
        ("window://w/3", 404, {"uri": "window://w/3"}),
        ("window://w/1?priority=1", 404, {"uri": "window://w/1?priority=1"}),
        ("window://w/1?priority=200", 400, {"uri": "window://w/1?priority=200"}),
        ("window:w", 400, {"uri": "window:w"}),
        ("dpe://h/1/chapters/1", 4204, {"uri": "dpe://h/1/chapters/1"}),
        ("dpe:h", 4204, {"uri": "dpe:h"}),
        ("dpe://nobody/d", 4201, {"doc_ref": "d"}),
        ("dpe://nobody", 4201, {"doc_ref": "nobody"}),
        ("file:///etc/passwd", 403, {}),
        ("invalid://x", 4204, {"uri": "invalid://x"}),
        ("file:///unlisted", 4204, {"uri": "file:///unlisted"}),
        ("", 4204, {"uri": ""}),
    ],
)
def test_what_nobody_is_asked_for(uri: str, code: int, details: dict[str, str]) -> None:
    with pytest.raises(SMCPError) as caught:
        find_target(uri, WATCH, ORDER)
    assert (caught.value.code, caught.value.details) == (code, details)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("invalid://x", "Invalid DPE URI: "),
        ("dpe://h/1/chapters/1", "Invalid DPE URI: "),
        ("dpe://nobody/d", "No MCP Server found for host: nobody"),
        ("dpe://nobody", "No MCP Server found for host: nobody"),
    ],
)
def test_the_messages_are_those_of_the_seed(uri: str, message: str) -> None:
    with pytest.raises(SMCPError, match=message):
        find_target(uri, WATCH, ORDER)


UNLISTED = readable(
    a=["dpe://pages/d/pages/0", "dpe://pages/d/elements/e", "dpe://both/d/pages/0", "dpe://h/1"],
    b=["dpe://catalogue", "dpe://both/d", "dpe://both/other", "dpe://h", "dpe://h/1/pages/7"],
)


@pytest.mark.parametrize(
    ("uri", "server"),
    [
        # Only the catalogue of the host, or only parts of one document, are listed.
        ("dpe://catalogue", "b"),
        ("dpe://catalogue/d", "b"),
        ("dpe://catalogue/d/pages/3?format=text", "b"),
        ("dpe://catalogue/d/elements/e", "b"),
        ("dpe://pages", "a"),
        ("dpe://pages/d", "a"),
        ("dpe://pages/d/pages/5", "a"),
        ("dpe://pages/x", "a"),
        # What is listed itself goes before its document, and that before its other parts.
        ("dpe://h", "b"),
        ("dpe://h/1/pages/7", "b"),
        ("dpe://h/1/pages/8", "a"),
        ("dpe://both/d/pages/0", "a"),
        ("dpe://both/d", "b"),
        ("dpe://both/d/pages/1", "b"),
    ],
)
def test_a_server_that_lists_a_catalogue_or_parts_is_asked_too(uri: str, server: str) -> None:
    assert find_target(uri, UNLISTED, ORDER).server == server


def test_a_page_that_is_not_there_of_a_document_of_which_parts_are_listed_is_4202() -> None:
    target = find_target("dpe://pages/d/pages/5", UNLISTED, ORDER)
    assert refusal(target, MCPError(-32002, "?"), 3).details == {"page_index": 5, "page_count": 3}
    assert refusal(find_target("dpe://pages/x/pages/5", UNLISTED, ORDER), MCPError(-32002, "?")).code == 4201


def told(uri: str, error: MCPError) -> tuple[int, dict[str, object]]:
    refused = refusal(find_target(uri, WATCH, ORDER), error, page_count=12)
    return refused.code, refused.details


@pytest.mark.parametrize("code", [4201, 4202, 4203])
def test_a_document_servers_own_errors_pass_through(code: int) -> None:
    assert told("dpe://h/1", MCPError(code, "no", {"x": 1}))[0] == code
    assert told("dpe://h/1", MCPError(code, "no", {"x": 1}))[1]["x"] == 1


@pytest.mark.parametrize(
    ("code", "uri", "details"),
    [
        (4201, "dpe://h/1", {"doc_ref": "1"}),
        (4202, "dpe://h/1/pages/9", {"page_index": 9}),
        (4203, "dpe://h/1/elements/e", {"element_id": "e"}),
    ],
)
def test_details_that_a_server_does_not_give_are_read_from_the_uri(code: int, uri: str, details: object) -> None:
    assert told(uri, MCPError(code, "no")) == (code, details)


@pytest.mark.parametrize(
    "error",
    [MCPError(-32002, "Resource not found"), MCPError(-32602, "?"), MCPError(0, "Unknown resource: dpe://…")],
)
@pytest.mark.parametrize(
    ("uri", "code", "details"),
    [
        ("dpe://h/1", 4201, {"doc_ref": "1"}),
        ("dpe://h/1/pages/9", 4202, {"page_index": 9, "page_count": 12}),
        ("dpe://h/1/elements/e", 4203, {"element_id": "e"}),
        ("dpe://h/x", 4201, {"doc_ref": "x"}),
        ("dpe://h/x/pages/0", 4201, {"doc_ref": "x"}),
        ("dpe://h/x/elements/e", 4201, {"doc_ref": "x"}),
        ("window://w/1", 404, {}),
    ],
)
def test_mcps_own_not_found_depends_on_the_level(error: MCPError, uri: str, code: int, details: object) -> None:
    assert told(uri, error) == (code, details)


@pytest.mark.parametrize("uri", ["dpe://h/1", "window://w/1"])
def test_any_other_error_is_a_500_with_what_the_server_said(uri: str) -> None:
    details = {"server_name": "a", "mcp_code": -32603, "mcp_message": "disk on fire"}
    assert told(uri, MCPError(-32603, "disk on fire")) == (500, details)


def test_a_windows_server_has_no_document_errors() -> None:
    assert refusal(Target("a"), MCPError(4201, "?")).code == 500
