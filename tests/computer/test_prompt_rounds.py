"""Prompts that ask: what goes to an agent, and what comes back from it."""

from typing import Any, cast

import pytest

from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.resources.prompt_rounds import PromptRound, asked_by, round_of
from a2c_smcp.errors import BadRequestError
from a2c_smcp.smcp import GetPromptReq

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
BOTH = PromptRound(frozenset({"form", "url"}))
SECRET = "hunter2-and-more"


def request(**fields: Any) -> GetPromptReq:
    needed = {"agent": "ada", "req_id": "r", "computer": "pc", "mcp_server": "s", "name": "p"}
    return cast("GetPromptReq", {**needed, **fields})


def veil(text: str) -> str:
    return text.replace(SECRET, "***")


def form(message: str = "Who?", schema: Any = FORM) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def url(address: str) -> dict[str, Any]:
    params = {"mode": "url", "message": "Look", "url": address, "elicitationId": "e"}
    return {"method": "elicitation/create", "params": params}


def test_questions_go_to_the_agent_under_the_servers_own_keys() -> None:
    said = {
        "inputRequests": {"who": form(f"Is it {SECRET}?"), "where": url("https://a.example/x")},
        "requestState": "s1",
    }
    questions, state = asked_by(said, BOTH, veil)
    assert state == "s1"
    assert questions == {
        "who": {"message": "Is it ***?", "mode": "form", "requestedSchema": FORM},
        "where": {"message": "Look", "mode": "url", "url": "https://a.example/x", "elicitationId": "e"},
    }


@pytest.mark.parametrize(
    "said",
    [
        {"inputRequests": {"a": {"method": "roots/list", "params": {}}}},
        {"inputRequests": {"a": form(schema={"type": "object", "properties": {"a": {"type": "object"}}})}},
        {"inputRequests": {"a": url("javascript:alert(1)")}},
        {"inputRequests": {"a": url(f"https://a.example/{SECRET}")}},
        {"inputRequests": {"a": form(schema={**FORM, "title": SECRET})}},
        {"inputRequests": {str(number): form() for number in range(17)}},
        {"inputRequests": "nothing of MCP's"},
    ],
)
def test_what_nobody_can_answer_and_what_holds_a_secret_is_not_asked(said: dict[str, Any]) -> None:
    with pytest.raises(MCPError):
        asked_by(said, BOTH, veil)


def test_a_question_of_a_kind_that_the_agent_does_not_answer_is_not_asked() -> None:
    with pytest.raises(MCPError):
        asked_by({"inputRequests": {"a": url("https://a.example")}}, PromptRound(frozenset({"form"})), veil)


def test_answers_are_sent_as_mcp_has_them_and_only_by_agents_that_answer_questions() -> None:
    answers = {"who": {"action": "accept", "content": {"name": "Ada"}, "other": 1}}
    asking = round_of(request(questions=["form", "odd"], input_responses=answers, request_state="s1"))
    assert asking.modes == {"form"}
    assert asking.fields["requestState"] == "s1"
    assert asking.fields["inputResponses"]["who"]["content"] == {"name": "Ada"}
    assert round_of(request(input_responses=answers, request_state="s1")) == PromptRound()


@pytest.mark.parametrize(
    "answers", [{}, {"who": 1}, {"who": {"action": "maybe"}}, {str(n): {"action": "cancel"} for n in range(17)}]
)
def test_answers_that_are_not_mcps_are_refused(answers: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError, match="input_responses"):
        round_of(request(questions=["form"], input_responses=answers))
