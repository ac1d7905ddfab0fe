"""What is declared to servers, by whether somebody answers their questions."""

from typing import Any

import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY

from a2c_smcp.computer.mcp_clients.elicitation.asking import ALL_MODES, NO_MODES
from a2c_smcp.computer.mcp_clients.elicitation.declaring import declared

QUESTIONS: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
HANDSHAKE: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {**QUESTIONS, "roots": {}}}
REQUEST: dict[str, Any] = {"name": "x", "_meta": {CLIENT_CAPABILITIES_META_KEY: {**QUESTIONS, "roots": {}}, "token": 1}}


def test_the_handshake_declares_it_while_somebody_answers() -> None:
    assert declared("initialize", HANDSHAKE, ALL_MODES) == HANDSHAKE
    assert declared("initialize", HANDSHAKE, NO_MODES) == {**HANDSHAKE, "capabilities": {"roots": {}}}


def test_only_what_can_be_answered_is_declared() -> None:
    forms = declared("initialize", HANDSHAKE, frozenset({"form"}))
    assert forms == {**HANDSHAKE, "capabilities": {"roots": {}, "elicitation": {"form": {}}}}


def test_every_request_of_the_new_era_declares_it_while_somebody_answers() -> None:
    without = {"name": "x", "_meta": {CLIENT_CAPABILITIES_META_KEY: {"roots": {}}, "token": 1}}
    for method in ("tools/call", "tools/list", "server/discover"):
        assert declared(method, REQUEST, ALL_MODES) == REQUEST
        assert declared(method, REQUEST, NO_MODES) == without
    assert declared("resources/read", REQUEST, ALL_MODES) == without  # read in the background, where nobody is asked


@pytest.mark.parametrize("params", [None, {}, {"cursor": "1"}, {"_meta": {"progressToken": 1}}])
def test_other_requests_stay_as_they_are(params: dict[str, Any] | None) -> None:
    assert declared("tools/list", params, NO_MODES) == params
