"""The vocabulary: the names of the seed, the table, and the seeds' own examples."""

from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter

from a2c_smcp import smcp
from a2c_smcp.smcp import EVENTS, Kind

# Seed 004, *完整事件列表*, and the contract's extensions.
SEED_EVENTS = {
    "TOOL_CALL_EVENT": "client:tool_call",
    "GET_CONFIG_EVENT": "client:get_config",
    "GET_TOOLS_EVENT": "client:get_tools",
    "GET_DESKTOP_EVENT": "client:get_desktop",
    "GET_FINDER_EVENT": "client:get_finder",
    "READ_RESOURCE_EVENT": "client:read_resource",
    "JOIN_OFFICE_EVENT": "server:join_office",
    "LEAVE_OFFICE_EVENT": "server:leave_office",
    "AUTHENTICATE_EVENT": "server:authenticate",
    "RECORD_HEAD_EVENT": "server:record_head",
    "UPDATE_CONFIG_EVENT": "server:update_config",
    "UPDATE_TOOL_LIST_EVENT": "server:update_tool_list",
    "UPDATE_DESKTOP_EVENT": "server:update_desktop",
    "UPDATE_FINDER_EVENT": "server:update_finder",
    "CANCEL_TOOL_CALL_EVENT": "server:tool_call_cancel",
    "LIST_ROOM_EVENT": "server:list_room",
    "ENTER_OFFICE_NOTIFICATION": "notify:enter_office",
    "LEAVE_OFFICE_NOTIFICATION": "notify:leave_office",
    "UPDATE_CONFIG_NOTIFICATION": "notify:update_config",
    "UPDATE_TOOL_LIST_NOTIFICATION": "notify:update_tool_list",
    "UPDATE_DESKTOP_NOTIFICATION": "notify:update_desktop",
    "UPDATE_FINDER_NOTIFICATION": "notify:update_finder",
    "CANCEL_TOOL_CALL_NOTIFICATION": "notify:tool_call_cancel",
    "TOOL_PROGRESS_EVENT": "server:tool_progress",
    "TOOL_PROGRESS_NOTIFICATION": "notify:tool_progress",
    "MOVING_NOTIFICATION": "notify:moving",
    "GET_RESOURCES_EVENT": "client:get_resources",
    "SUBSCRIBE_RESOURCE_EVENT": "client:subscribe_resource",
    "UNSUBSCRIBE_RESOURCE_EVENT": "client:unsubscribe_resource",
    "GET_PROMPTS_EVENT": "client:get_prompts",
    "GET_PROMPT_EVENT": "client:get_prompt",
    "COMPLETE_EVENT": "client:complete",
    "ANSWER_QUESTION_EVENT": "client:answer_question",
    "UPDATE_RESOURCES_EVENT": "server:update_resources",
    "UPDATE_PROMPTS_EVENT": "server:update_prompts",
    "RESOURCE_UPDATED_EVENT": "server:resource_updated",
    "QUESTION_EVENT": "server:question",
    "UPDATE_RESOURCES_NOTIFICATION": "notify:update_resources",
    "UPDATE_PROMPTS_NOTIFICATION": "notify:update_prompts",
    "RESOURCE_UPDATED_NOTIFICATION": "notify:resource_updated",
    "QUESTION_NOTIFICATION": "notify:question",
    "GET_SKILLS_EVENT": "client:get_skills",
    "GET_SKILL_EVENT": "client:get_skill",
    "GET_BLOB_EVENT": "client:get_blob",
    "PUT_BLOB_EVENT": "client:put_blob",
    "UPDATE_SKILLS_EVENT": "server:update_skills",
    "UPDATE_SKILLS_NOTIFICATION": "notify:update_skills",
}


def test_every_constant_of_the_seed_has_its_name_and_its_row() -> None:
    assert {name: getattr(smcp, name) for name in SEED_EVENTS} == SEED_EVENTS
    assert set(EVENTS) == set(SEED_EVENTS.values())


def test_the_prefix_of_an_event_says_its_kind() -> None:
    for event in EVENTS.values():
        prefix = event.name.partition(":")[0]
        assert (prefix == "client") == (event.kind is Kind.RELAY)
        assert (prefix == "notify") == (event.kind is Kind.NOTIFICATION)


def test_only_clients_send_and_only_relays_and_queries_are_answered_with_data() -> None:
    for event in EVENTS.values():
        assert bool(event.senders) == (event.kind is not Kind.NOTIFICATION)
        assert (event.response is not None) == (event.kind in (Kind.RELAY, Kind.QUERY, Kind.NOTE))


def test_every_announcement_and_report_becomes_a_notification_of_the_table() -> None:
    for event in EVENTS.values():
        assert (event.notification is not None) == (event.kind in (Kind.ANNOUNCE, Kind.REPORT))
        if event.notification:
            assert EVENTS[event.notification].kind is Kind.NOTIFICATION


def test_every_relay_names_its_computer() -> None:
    for event in EVENTS.values():
        if event.kind is Kind.RELAY:
            assert {"agent", "req_id", "computer"} <= set(get_type_hints(event.request))


STDIO = {
    "name": "files",
    "disabled": False,
    "forbidden_tools": ["rm"],
    "tool_meta": {"read": {"alias": "read_file", "tags": ["fs"]}},
    "default_tool_meta": {"auto_apply": True},
    "vrl": None,
    "type": "stdio",
    "server_parameters": {
        "command": "python",
        "args": ["-m", "files"],
        "env": {"KEY": "${input:key}"},
        "cwd": None,
        "encoding": "utf-8",
        "encoding_error_handler": "strict",
    },
}
HTTP = {
    **STDIO,
    "type": "streamable",
    "server_parameters": {
        "url": "http://127.0.0.1/mcp",
        "headers": None,
        "timeout": "PT30S",
        "sse_read_timeout": "PT5M",
        "terminate_on_close": True,
    },
}
SSE = {
    **STDIO,
    "type": "sse",
    "server_parameters": {"url": "http://127.0.0.1/sse", "headers": {}, "timeout": 5.0, "sse_read_timeout": 300.0},
}
DOCUMENT = {
    "doc_ref": "report",
    "uri": "dpe://com.example/report",
    "file_uri": "file:///report.xlsx",
    "file_type": "xlsx",
    "title": "年度报告",
    "page_count": 12,
    "keywords": ["财务"],
    "summary": "…",
    "server": "office",
    "last_modified": "2026-02-14T10:30:01+08:00",
}

EXAMPLES: list[tuple[Any, dict[str, Any]]] = [
    (smcp.AgentCallData, {"agent": "a", "req_id": "req-001"}),
    (smcp.GetDeskTopReq, {"agent": "a", "req_id": "r", "computer": "c", "desktop_size": 2, "window": "window://h"}),
    (
        smcp.GetDeskTopRet,
        {
            "desktops": [
                "window://com.example.browser/main?priority=80\n\n<html>当前页面内容...</html>",
                "window://com.example.logger\n\n[2026-02-14 10:30:01] INFO: 操作完成",
            ],
            "req_id": "req-001",
        },
    ),
    (
        smcp.SMCPTool,
        {
            "name": "hello",
            "description": "Say hello to someone.",
            "params_schema": {
                "properties": {"name": {"default": "World", "title": "Name", "type": "string"}},
                "title": "helloArguments",
                "type": "object",
            },
            "return_schema": {"properties": {"result": {"title": "Result", "type": "string"}}, "type": "object"},
            "meta": {},
        },
    ),
    (
        smcp.SMCPTool,
        {
            "name": "browser_navigate",
            "description": "Navigate to a URL.",
            "params_schema": {"...": "..."},
            "return_schema": None,
            "meta": {
                "a2c_tool_meta": '{"auto_apply": true, "alias": null, "tags": ["browser"], "ret_object_mapper": null}',
                "plain": [1, 2, 3],
            },
        },
    ),
    (smcp.ToolMeta, {"auto_apply": True, "alias": None, "tags": ["browser"], "ret_object_mapper": None}),
    (smcp.GetToolsRet, {"tools": [], "req_id": "r"}),
    (smcp.EnterOfficeNotification, {"office_id": "o", "computer": "c"}),
    (smcp.LeaveOfficeNotification, {"office_id": "o", "agent": "a", "computer": None}),
    (
        smcp.ListRoomRet,
        {"sessions": [{"sid": "s", "name": "n", "role": "agent", "office_id": "o"}], "req_id": "r"},
    ),
    (
        smcp.GetComputerConfigRet,
        {
            "inputs": [
                {"id": "key", "description": "", "type": "promptString", "password": True, "default": None},
                {"id": "env", "description": "", "type": "pickString", "options": ["a"], "default": "a"},
                {"id": "tok", "description": "", "type": "command", "command": "pass", "args": {"k": "v"}},
            ],
            "servers": {"files": STDIO, "web": HTTP, "old": SSE},
        },
    ),
    (smcp.GetFinderRet, {"documents": [DOCUMENT], "total_count": 1, "req_id": "r"}),
    (smcp.DPEPageSummary, {"page_index": 0, "title": "t", "element_count": 3, "uri": "dpe://h/d/pages/0"}),
    (
        smcp.DPEElementDetail,
        {"element_id": "e", "category": "table", "content": {"rows": []}, "page_index": 0, "metadata": {}},
    ),
    (smcp.ReadResourceRet, {"contents": [{"uri": "dpe://h/d", "text": "{}"}], "req_id": "r"}),
    (smcp.CallToolRet, {"meta": None, "content": [], "structuredContent": None, "isError": False}),
]


@pytest.mark.parametrize(("shape", "example"), EXAMPLES, ids=lambda value: getattr(value, "__name__", ""))
def test_the_examples_of_the_seeds_validate(shape: Any, example: dict[str, Any]) -> None:
    assert TypeAdapter(shape).validate_python(example, strict=True) == example
