"""The protocol as data: event names, the structures they carry, and one table of who may send what.

Nothing here acts. The server, the computer and the agent derive their handlers from `EVENTS`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Literal, NotRequired, TypeAlias

# pydantic builds validators from these classes, and on Python 3.11 it needs this TypedDict.
from typing_extensions import TypedDict

from a2c_smcp.types import SERVER_NAME, TOOL_NAME, Attributes, Desktop, Role

__all__ = [
    "ANSWER_QUESTION_EVENT",
    "AUTHENTICATE_EVENT",
    "CANCEL_TOOL_CALL_EVENT",
    "CANCEL_TOOL_CALL_NOTIFICATION",
    "COMPLETE_EVENT",
    "ENTER_OFFICE_NOTIFICATION",
    "EVENTS",
    "GET_BLOB_EVENT",
    "GET_CONFIG_EVENT",
    "GET_DESKTOP_EVENT",
    "GET_FINDER_EVENT",
    "GET_PROMPTS_EVENT",
    "GET_PROMPT_EVENT",
    "GET_RESOURCES_EVENT",
    "GET_SKILLS_EVENT",
    "GET_SKILL_EVENT",
    "GET_TOOLS_EVENT",
    "JOIN_OFFICE_EVENT",
    "LEAVE_OFFICE_EVENT",
    "LEAVE_OFFICE_NOTIFICATION",
    "LIST_ROOM_EVENT",
    "MAX_PROGRESS_MESSAGE",
    "MAX_QUESTION",
    "MAX_QUESTIONS",
    "MAX_URI",
    "MOVING_NOTIFICATION",
    "PROTOCOL_VERSION",
    "PUT_BLOB_EVENT",
    "QUESTION_EVENT",
    "QUESTION_NOTIFICATION",
    "READ_RESOURCE_EVENT",
    "RECORD_HEAD_EVENT",
    "RESOURCE_UPDATED_EVENT",
    "RESOURCE_UPDATED_NOTIFICATION",
    "SMCP_NAMESPACE",
    "STAMP_FIELD",
    "SUBSCRIBE_RESOURCE_EVENT",
    "TOOL_CALL_EVENT",
    "TOOL_PROGRESS_EVENT",
    "TOOL_PROGRESS_NOTIFICATION",
    "UNSUBSCRIBE_RESOURCE_EVENT",
    "UPDATE_CONFIG_EVENT",
    "UPDATE_CONFIG_NOTIFICATION",
    "UPDATE_DESKTOP_EVENT",
    "UPDATE_DESKTOP_NOTIFICATION",
    "UPDATE_FINDER_EVENT",
    "UPDATE_FINDER_NOTIFICATION",
    "UPDATE_PROMPTS_EVENT",
    "UPDATE_PROMPTS_NOTIFICATION",
    "UPDATE_RESOURCES_EVENT",
    "UPDATE_RESOURCES_NOTIFICATION",
    "UPDATE_SKILLS_EVENT",
    "UPDATE_SKILLS_NOTIFICATION",
    "UPDATE_TOOL_LIST_EVENT",
    "UPDATE_TOOL_LIST_NOTIFICATION",
    "WAITING_FOR_PERSON",
    "AgentCallData",
    "AnswerQuestionReq",
    "AuthenticateReq",
    "BaseMCPServerConfig",
    "CallToolRet",
    "CompleteReq",
    "CompleteRet",
    "ComputerCallData",
    "DPEDocumentSummary",
    "DPEElementDetail",
    "DPEPageSummary",
    "DoneRet",
    "EnterOfficeNotification",
    "EnterOfficeReq",
    "Event",
    "GetBlobReq",
    "GetBlobRet",
    "GetComputerConfigReq",
    "GetComputerConfigRet",
    "GetDeskTopReq",
    "GetDeskTopRet",
    "GetFinderReq",
    "GetFinderRet",
    "GetPromptReq",
    "GetPromptRet",
    "GetPromptsReq",
    "GetPromptsRet",
    "GetResourcesReq",
    "GetResourcesRet",
    "GetSkillReq",
    "GetSkillRet",
    "GetSkillsReq",
    "GetSkillsRet",
    "GetToolsReq",
    "GetToolsRet",
    "Kind",
    "LeaveOfficeNotification",
    "LeaveOfficeReq",
    "ListRoomReq",
    "ListRoomRet",
    "MCPSSEConfig",
    "MCPSSEParameters",
    "MCPServerCommandInput",
    "MCPServerConfig",
    "MCPServerInput",
    "MCPServerInputBase",
    "MCPServerPickStringInput",
    "MCPServerPromptStringInput",
    "MCPServerStdioConfig",
    "MCPServerStdioParameters",
    "MCPServerStreamableHttpConfig",
    "MCPServerStreamableHttpParameters",
    "Moving",
    "PutBlobReq",
    "PutBlobRet",
    "ReadResourceReq",
    "ReadResourceRet",
    "RecordHeadReq",
    "RecordHeadRet",
    "ResourceUpdatedNotification",
    "SMCPTool",
    "ServerInfo",
    "SessionInfo",
    "SkillInfo",
    "SubscribeResourceReq",
    "ToolCallReq",
    "ToolMeta",
    "ToolProgress",
    "ToolQuestion",
    "UpdateComputerConfigReq",
    "UpdateMCPConfigNotification",
    "UpdateToolListNotification",
]

PROTOCOL_VERSION = "0.2.0"
SMCP_NAMESPACE = "/smcp"
#: The longest message of a progress report, in characters.
MAX_PROGRESS_MESSAGE = 1000
#: The message of a report about a call that waits for an answer of the person at the computer.
WAITING_FOR_PERSON = "waiting for the person at the computer"
#: The longest question, in characters of its JSON, and how many questions one call may ask.
MAX_QUESTION = 64 * 1024
MAX_QUESTIONS = 16
#: The field of a relayed request in which the server says from whom it is: `name`, `key`, `bound`. The last key of the
#: request, and only from servers that announce it when a client connects.
STAMP_FIELD = "a2c_from"
#: The longest URI in the announcement that a resource has changed, in characters.
MAX_URI = 8192

# Agent → Server → Computer
TOOL_CALL_EVENT = "client:tool_call"
GET_CONFIG_EVENT = "client:get_config"
GET_TOOLS_EVENT = "client:get_tools"
GET_DESKTOP_EVENT = "client:get_desktop"
GET_FINDER_EVENT = "client:get_finder"
READ_RESOURCE_EVENT = "client:read_resource"
GET_RESOURCES_EVENT = "client:get_resources"
SUBSCRIBE_RESOURCE_EVENT = "client:subscribe_resource"
UNSUBSCRIBE_RESOURCE_EVENT = "client:unsubscribe_resource"
GET_PROMPTS_EVENT = "client:get_prompts"
GET_PROMPT_EVENT = "client:get_prompt"
COMPLETE_EVENT = "client:complete"
ANSWER_QUESTION_EVENT = "client:answer_question"
GET_SKILLS_EVENT = "client:get_skills"
GET_SKILL_EVENT = "client:get_skill"
GET_BLOB_EVENT = "client:get_blob"
PUT_BLOB_EVENT = "client:put_blob"

# Agent or Computer → Server
JOIN_OFFICE_EVENT = "server:join_office"
LEAVE_OFFICE_EVENT = "server:leave_office"
AUTHENTICATE_EVENT = "server:authenticate"
RECORD_HEAD_EVENT = "server:record_head"
UPDATE_CONFIG_EVENT = "server:update_config"
UPDATE_TOOL_LIST_EVENT = "server:update_tool_list"
UPDATE_DESKTOP_EVENT = "server:update_desktop"
UPDATE_FINDER_EVENT = "server:update_finder"
UPDATE_RESOURCES_EVENT = "server:update_resources"
UPDATE_PROMPTS_EVENT = "server:update_prompts"
UPDATE_SKILLS_EVENT = "server:update_skills"
RESOURCE_UPDATED_EVENT = "server:resource_updated"
CANCEL_TOOL_CALL_EVENT = "server:tool_call_cancel"
TOOL_PROGRESS_EVENT = "server:tool_progress"
QUESTION_EVENT = "server:question"
LIST_ROOM_EVENT = "server:list_room"

# Server → office
ENTER_OFFICE_NOTIFICATION = "notify:enter_office"
LEAVE_OFFICE_NOTIFICATION = "notify:leave_office"
UPDATE_CONFIG_NOTIFICATION = "notify:update_config"
UPDATE_TOOL_LIST_NOTIFICATION = "notify:update_tool_list"
UPDATE_DESKTOP_NOTIFICATION = "notify:update_desktop"
UPDATE_FINDER_NOTIFICATION = "notify:update_finder"
UPDATE_RESOURCES_NOTIFICATION = "notify:update_resources"
UPDATE_PROMPTS_NOTIFICATION = "notify:update_prompts"
UPDATE_SKILLS_NOTIFICATION = "notify:update_skills"
CANCEL_TOOL_CALL_NOTIFICATION = "notify:tool_call_cancel"

# Server → the agent of the office
RESOURCE_UPDATED_NOTIFICATION = "notify:resource_updated"

# Server → the agent that waits for the call
TOOL_PROGRESS_NOTIFICATION = "notify:tool_progress"
QUESTION_NOTIFICATION = "notify:question"
MOVING_NOTIFICATION = "notify:moving"


# --- calls and tools


class AgentCallData(TypedDict):
    """What every request of an agent has. `req_id` names the request in logs, answers and cancels."""

    agent: str
    req_id: str


class ComputerCallData(AgentCallData):
    """What every request of an agent to a computer has.

    `meta` is an extension. In a `ToolCallReq` it becomes the `_meta` of the MCP request. In other requests only the
    trace context in it counts: `traceparent`, `tracestate` and `baggage`.
    """

    computer: str
    meta: NotRequired[dict[str, Any]]


class ToolCallReq(ComputerCallData):
    """`client:tool_call`: run a tool; `timeout` is in whole seconds. The answer is a `CallToolRet`.

    Three extensions. With `approval_timeout`, in whole seconds, a person has that long to confirm the call, and
    `timeout` counts from the moment when the tool starts. With `progress` the caller gets a `ToolProgress` whenever the
    tool reports one. `questions` has the modes of the questions that the caller can answer (`form`, `url`); it then
    gets a `ToolQuestion` when the tool asks one and the computer's owner allows it.
    """

    tool_name: str
    params: dict[str, Any]
    timeout: int
    approval_timeout: NotRequired[int]
    progress: NotRequired[bool]
    questions: NotRequired[list[str]]


class CallToolRet(TypedDict, total=False):
    """MCP's CallToolResult as it crosses the wire: the result-level `_meta` is spelled `meta`."""

    meta: dict[str, Any] | None
    content: list[dict[str, Any]]
    structuredContent: dict[str, Any] | None
    isError: bool


class Moving(TypedDict):
    """`notify:moving`, an extension: the server process is about to stop, in this many seconds at most.

    Connect a second time, join there with the same `resume`, and close the first connection when the calls on it are
    answered.
    """

    within: float


class ToolProgress(AgentCallData):
    """`server:tool_progress` and `notify:tool_progress`, an extension: the progress of a running call.

    `agent` and `req_id` are those of the call. `progress` never decreases. A `message` has 1,000 characters at most.
    """

    computer: str
    progress: float
    total: NotRequired[float]
    message: NotRequired[str]


class ToolQuestion(AgentCallData):
    """`server:question` and `notify:question`, an extension: a tool asks something while it runs (MCP elicitation).

    `agent` and `req_id` are those of the call. `message` and the fields after it are MCP's own. Answer with
    `client:answer_question`. With `withdrawn` the question needs no answer any more: it was answered at the computer,
    or its call has ended.
    """

    computer: str
    question_id: str
    withdrawn: NotRequired[bool]
    mcp_server: NotRequired[str]
    message: NotRequired[str]
    mode: NotRequired[str]
    requestedSchema: NotRequired[dict[str, Any]]
    url: NotRequired[str]
    elicitationId: NotRequired[str]
    key: NotRequired[str]
    """The MCP server's own name for the question, since MCP 2026-07-28. The questions of one call that wait at the same
    time have different keys.
    """


class AnswerQuestionReq(ComputerCallData):
    """`client:answer_question`: the answer to a `ToolQuestion`. The first answer counts. A later one, and one to a
    question that was withdrawn, is refused with 404; one that does not fit the form with 400.
    """

    question_id: str
    action: Literal["accept", "decline", "cancel"]
    content: NotRequired[dict[str, Any]]


class DoneRet(TypedDict):
    """The answer to a request that has nothing else to answer: it is done."""

    req_id: str


class SMCPTool(TypedDict):
    """A tool as agents see it.

    `meta` has `a2c_tool_meta` and `MCP_TOOL_ANNOTATION` as JSON text, and `MCP_TOOL_TITLE`, the title of the tool. The
    client's `tool_meta` reads the first one. Extensions: `MCP_TOOL_META`, the tool's own `_meta` as JSON text,
    `MCP_TOOL_ICONS`, its icons as JSON text, and, where the request asked for it, `MCP_SERVER_NAME`, the name of its
    MCP server.
    """

    name: str
    description: str
    params_schema: dict[str, Any]
    return_schema: dict[str, Any] | None
    meta: NotRequired[Attributes | None]
    bundle_id: NotRequired[str]
    """What a computer of release 0.4 calls the tool's MCP server. Computers of ours say it only to peers of 0.4."""


class ToolMeta(TypedDict, total=False):
    """The configured metadata of a tool: whether it runs without confirmation, its alias, its tags."""

    auto_apply: NotRequired[bool | None]
    ret_object_mapper: NotRequired[dict[str, Any] | None]
    alias: NotRequired[str | None]
    tags: NotRequired[list[str] | None]


class GetToolsReq(ComputerCallData):
    """`client:get_tools`: the tools of a computer. With `server_names: true` in its `meta`, an extension, each tool
    says from which MCP server it comes.
    """


class GetToolsRet(TypedDict):
    """The answer to `client:get_tools`."""

    tools: list[SMCPTool]
    req_id: str


# --- offices


class EnterOfficeReq(TypedDict):
    """`server:join_office`: who joins which office. The ack has two arguments: `true, null` or `false, reason`."""

    role: Role
    name: str
    office_id: str
    resume: NotRequired[str]
    """An extension: a secret of 16 to 128 characters that the client made for its life. A join with the secret of the
    session that has the name, or the agent's seat, takes its place at once."""


class LeaveOfficeReq(TypedDict):
    """`server:leave_office`. The ack has two arguments, like that of a join."""

    office_id: str


class AuthenticateReq(TypedDict):
    """`server:authenticate`: a new token for this session, before the old one ends. The ack is `{}`. After an error,
    the old token counts until it ends."""

    token: str


class RecordHeadReq(TypedDict):
    """`server:record_head`: the newest row of a computer's record, for a server that keeps a record itself."""

    head: str
    """Its number and its SHA-256 in hex, with a colon between."""


class RecordHeadRet(TypedDict):
    """The answer to `server:record_head`."""

    kept: bool
    """Whether the server has written it into its own record."""


class EnterOfficeNotification(TypedDict, total=False):
    """`notify:enter_office`: a member came; either `computer` or `agent` is present."""

    office_id: str
    computer: str | None
    agent: str | None


class LeaveOfficeNotification(TypedDict, total=False):
    """`notify:leave_office`: a member left, or lost its connection; either `computer` or `agent` is present."""

    office_id: str
    computer: str | None
    agent: str | None


class ListRoomReq(AgentCallData):
    """`server:list_room`: the members of the agent's own office."""

    office_id: str


class SessionInfo(TypedDict, total=False):
    """A member of an office."""

    sid: str
    name: str
    role: Role
    office_id: str


class ListRoomRet(TypedDict):
    """The answer to `server:list_room`."""

    sessions: list[SessionInfo]
    req_id: str


# --- announcements; an absent `computer` means the sender


class UpdateComputerConfigReq(TypedDict):
    """The announcement of a computer: `server:update_config`, `server:update_tool_list`, `server:update_desktop`,
    `server:update_finder`, `server:update_resources`, `server:update_prompts` or `server:update_skills`.
    """

    computer: NotRequired[str]


class UpdateMCPConfigNotification(TypedDict, total=False):
    """`notify:update_config`: the configuration of a computer changed."""

    computer: str


class UpdateToolListNotification(TypedDict, total=False):
    """`notify:update_tool_list`: the tools of a computer changed."""

    computer: str


# --- MCP server configuration


class BaseMCPServerConfig(TypedDict):
    """What the configs of all MCP servers share, whatever the transport."""

    name: SERVER_NAME
    disabled: bool
    forbidden_tools: list[TOOL_NAME]
    tool_meta: dict[TOOL_NAME, ToolMeta]
    default_tool_meta: NotRequired[ToolMeta | None]
    vrl: NotRequired[str | None]


class MCPServerStdioParameters(TypedDict):
    """How a stdio server is started."""

    command: str
    args: list[str]
    env: dict[str, str] | None
    cwd: str | None
    encoding: str
    encoding_error_handler: Literal["strict", "ignore", "replace"]


class MCPServerStdioConfig(BaseMCPServerConfig):
    """An MCP server that runs as a process of the computer."""

    type: Literal["stdio"]
    server_parameters: MCPServerStdioParameters


class MCPServerStreamableHttpParameters(TypedDict):
    """How a streamable HTTP server is reached; timeouts are ISO 8601 durations."""

    url: str
    headers: dict[str, Any] | None
    timeout: str
    sse_read_timeout: str
    terminate_on_close: bool


class MCPServerStreamableHttpConfig(BaseMCPServerConfig):
    """An MCP server that is reached over streamable HTTP."""

    type: Literal["streamable"]
    server_parameters: MCPServerStreamableHttpParameters


class MCPSSEParameters(TypedDict):
    """How an SSE server is reached; timeouts are seconds."""

    url: str
    headers: dict[str, Any] | None
    timeout: float
    sse_read_timeout: float


class MCPSSEConfig(BaseMCPServerConfig):
    """An MCP server that is reached over SSE."""

    type: Literal["sse"]
    server_parameters: MCPSSEParameters


MCPServerConfig: TypeAlias = MCPServerStdioConfig | MCPServerStreamableHttpConfig | MCPSSEConfig


class MCPServerInputBase(TypedDict):
    """What all inputs share: the id of `${input:id}`, and a description for the person who is asked."""

    id: str
    description: str


class MCPServerPromptStringInput(MCPServerInputBase):
    """A text that a person types; a `password` is not shown."""

    type: Literal["promptString"]
    default: NotRequired[str | None]
    password: NotRequired[bool | None]


class MCPServerPickStringInput(MCPServerInputBase):
    """One of several texts that a person picks."""

    type: Literal["pickString"]
    options: list[str]
    default: NotRequired[str | None]
    labels: NotRequired[dict[str, str]]


class MCPServerCommandInput(MCPServerInputBase):
    """A text that a command prints."""

    type: Literal["command"]
    command: str
    args: NotRequired[dict[str, str] | None]


MCPServerInput: TypeAlias = MCPServerPromptStringInput | MCPServerPickStringInput | MCPServerCommandInput


class GetComputerConfigReq(ComputerCallData):
    """`client:get_config`: the configuration of a computer."""


class ServerInfo(TypedDict):
    """The state of an MCP server, such as `running`, `starting`, `backing_off`, `failed`, `stopped` or `disabled`,
    and the reason.
    """

    state: str
    since: str
    """An ISO 8601 instant."""
    reason: NotRequired[str]
    title: NotRequired[str]
    version: NotRequired[str]
    instructions: NotRequired[str]
    """What the MCP server says about its use, for a model."""


class GetComputerConfigRet(TypedDict):
    """The answer to `client:get_config`. Secrets are masked, or are placeholders."""

    inputs: NotRequired[list[MCPServerInput] | None]
    servers: dict[SERVER_NAME, MCPServerConfig]
    server_info: NotRequired[dict[SERVER_NAME, ServerInfo]]
    """An extension: the state of each server."""


# --- Desktop


class GetDeskTopReq(ComputerCallData):
    """`client:get_desktop`: the windows of a computer, at most `desktop_size`, or the one with the URI `window`."""

    desktop_size: NotRequired[int]
    window: NotRequired[str]


class GetDeskTopRet(TypedDict, total=False):
    """The answer to `client:get_desktop`: rendered windows, most important first."""

    desktops: list[Desktop]
    req_id: str


# --- Finder


class GetFinderReq(ComputerCallData):
    """`client:get_finder`: a part of the documents that match."""

    keywords: NotRequired[list[str]]
    file_type: NotRequired[str]
    offset: NotRequired[int]
    limit: NotRequired[int]


class DPEDocumentSummary(TypedDict):
    """A document in the catalogue of a computer. `uri` is what to read; `server` is its MCP server."""

    doc_ref: str
    uri: str
    file_uri: str
    file_type: str
    title: str
    page_count: int
    keywords: NotRequired[list[str]]
    summary: NotRequired[str]
    server: str
    last_modified: NotRequired[str]


class GetFinderRet(TypedDict, total=False):
    """The answer to `client:get_finder`: a part of the documents, and how many match in all."""

    documents: list[DPEDocumentSummary]
    total_count: int
    req_id: str
    note: NotRequired[str]
    """An extension: what the servers say of their catalogues, such as which files they do not serve."""


class DPEPageSummary(TypedDict):
    """A page in the index of a document. `uri` is what to read."""

    page_index: int
    title: str
    element_count: int
    uri: str
    doc_ref: NotRequired[str]


class DPEElementDetail(TypedDict):
    """An element of a page, read by its id. What `content` holds depends on the `category`."""

    element_id: str
    category: str
    summary: NotRequired[str]
    content: dict[str, Any]
    doc_ref: NotRequired[str]
    page_index: NotRequired[int]
    uri: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]
    bbox: NotRequired[list[float]]
    """Where it is on its page: left, top, right and bottom in points, from the top left corner."""


# --- resources and prompts; all but `client:read_resource` is an extension


class ReadResourceReq(ComputerCallData):
    """`client:read_resource`: a resource by its URI: a window, a document or a part of a document, or anything else
    that the computer shares.

    `range` is `[offset, length]`, an extension: a part of a body that does not fit into one message. It counts the
    bytes of all contents one after the other: the decoded bytes of blobs, and the UTF-8 of texts.
    """

    uri: str
    range: NotRequired[list[int]]


class ReadResourceRet(TypedDict):
    """The answer to `client:read_resource`: the contents in MCP's JSON form, or the asked part of them.

    A part has `total_size`, the bytes of all contents, and `first`, the place of its first content among all contents.
    A text is cut between two characters. So a part may be up to three bytes shorter than asked, and the next part
    begins where this one ends.
    """

    contents: list[dict[str, Any]]
    req_id: str
    total_size: NotRequired[int]
    first: NotRequired[int]
    meta: NotRequired[dict[str, Any]]
    """MCP's `_meta` of the result."""


class GetResourcesReq(ComputerCallData):
    """`client:get_resources`: the resources and templates that a computer shares, of all its servers or of one."""

    mcp_server: NotRequired[str]
    cursor: NotRequired[str]


class GetResourcesRet(TypedDict):
    """The answer to `client:get_resources`: MCP's resources and templates in MCP's JSON form, each with `mcp_server`.

    With `next_cursor` there are more.
    """

    resources: list[dict[str, Any]]
    templates: NotRequired[list[dict[str, Any]]]
    next_cursor: NotRequired[str]
    req_id: str


class SubscribeResourceReq(ComputerCallData):
    """`client:subscribe_resource` and `client:unsubscribe_resource`: tell me when this resource changes, or no more."""

    uri: str


class ResourceUpdatedNotification(TypedDict):
    """`server:resource_updated` and `notify:resource_updated`: a resource that the agent subscribed to has changed."""

    computer: NotRequired[str]
    uri: str


class GetPromptsReq(ComputerCallData):
    """`client:get_prompts`: the prompts that a computer shares, of all its servers or of one."""

    mcp_server: NotRequired[str]
    cursor: NotRequired[str]


class GetPromptsRet(TypedDict):
    """The answer to `client:get_prompts`: MCP's prompts in MCP's JSON form, each with `mcp_server`.

    With `next_cursor` there are more.
    """

    prompts: list[dict[str, Any]]
    next_cursor: NotRequired[str]
    req_id: str


class GetPromptReq(ComputerCallData):
    """`client:get_prompt`: the messages of a prompt. The values of `arguments` are texts.

    `questions` says which questions the agent answers, `form` and `url`. An answer with `input_requests` wants to be
    asked again, with `input_responses` (MCP's `ElicitResult` by the same keys) and with its `request_state`.
    """

    mcp_server: str
    name: str
    arguments: NotRequired[dict[str, Any]]
    questions: NotRequired[list[str]]
    input_responses: NotRequired[dict[str, Any]]
    request_state: NotRequired[str]


class GetPromptRet(TypedDict):
    """The answer to `client:get_prompt`: MCP's result. Its `_meta` is spelled `meta`."""

    messages: list[dict[str, Any]]
    description: NotRequired[str]
    meta: NotRequired[dict[str, Any]]
    input_requests: NotRequired[dict[str, Any]]
    """Questions in the words of `ToolQuestion` instead of messages, by the MCP server's own keys."""
    request_state: NotRequired[str]
    req_id: str


class CompleteReq(ComputerCallData):
    """`client:complete`: what an argument of a prompt or of a template could be. The three objects are MCP's own."""

    mcp_server: str
    ref: dict[str, Any]
    argument: dict[str, Any]
    context: NotRequired[dict[str, Any]]


class CompleteRet(TypedDict):
    """The answer to `client:complete`: MCP's completion, `{values, total?, hasMore?}`."""

    completion: dict[str, Any]
    req_id: str


# --- skills and blobs, as in protocol 0.4


class GetSkillsReq(ComputerCallData):
    """`client:get_skills`: the skills of a computer."""


class SkillInfo(TypedDict):
    """A skill: a folder with a `SKILL.md`. `path` is its folder below the one with all skills."""

    name: str
    source: str
    path: str
    description: str
    license: NotRequired[str | None]
    compatibility: NotRequired[str | None]
    allowed_tools: NotRequired[list[str] | None]
    tags: NotRequired[list[str] | None]
    version: NotRequired[str | None]
    skill_metadata: NotRequired[dict[str, Any] | None]
    uri: NotRequired[str | None]


class GetSkillsRet(TypedDict):
    """The answer to `client:get_skills`."""

    skills: list[SkillInfo]
    req_id: str


class GetSkillReq(ComputerCallData):
    """`client:get_skill`: a file of a skill, by default its `SKILL.md`."""

    name: str
    rel_path: NotRequired[str]


class GetSkillRet(TypedDict):
    """The answer to `client:get_skill`: the text of the file, or a handle for `client:get_blob`.

    The body of `SKILL.md` comes without its front matter. `total_size` and `sha256` are those of what is sent.
    """

    name: str
    rel_path: str
    mime_type: str
    total_size: int
    sha256: str
    body: NotRequired[str | None]
    blob_handle: NotRequired[str | None]
    req_id: str


class GetBlobReq(ComputerCallData):
    """`client:get_blob`: a part of the bytes behind a handle."""

    blob_handle: str
    chunk_offset: NotRequired[int]
    max_chunk_bytes: NotRequired[int]


class GetBlobRet(TypedDict):
    """The answer to `client:get_blob`: a part, as base64. With `eof` it is the last one."""

    blob_handle: str
    mime_type: str
    total_size: int
    sha256: str
    chunk_offset: int
    eof: bool
    blob: str
    req_id: str


class PutBlobReq(ComputerCallData):
    """`client:put_blob`: a part of a file for the computer. The first one has the size and the digest of the whole, the
    others the `upload_id` from the first answer.
    """

    chunk_offset: int
    eof: bool
    blob: str
    upload_id: NotRequired[str]
    total_size: NotRequired[int]
    sha256: NotRequired[str]
    name_hint: NotRequired[str]


class PutBlobRet(TypedDict):
    """The answer to `client:put_blob`. That to the last part says where the file is on the computer."""

    upload_id: str
    chunk_offset: int
    landing_path: NotRequired[str | None]
    total_size: NotRequired[int | None]
    sha256: NotRequired[str | None]
    req_id: str


# --- the table


class Kind(Enum):
    """What the server does with an event."""

    MEMBERSHIP = "membership"  # changes who is in which office; acks with two arguments
    RELAY = "relay"  # passed on to the computer it names, whose answer is passed back
    ANNOUNCE = "announce"  # becomes a notification to the sender's office, or to its agent alone
    REPORT = "report"  # becomes a notification to the one session that waits for this relay; otherwise it is dropped
    QUERY = "query"  # answered by the server itself
    CREDENTIALS = "credentials"  # says again who the sender is
    NOTE = "note"  # written down by the server itself
    NOTIFICATION = "notification"  # sent by the server only


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the protocol."""

    name: str
    kind: Kind
    request: type
    response: type | None = None
    senders: frozenset[Role] = frozenset()
    notification: str | None = None
    """The notification that an announcement or a report becomes."""
    agent_only: bool = False
    """Whether a notification goes to an agent, and to nobody else in the office."""


_AGENT: frozenset[Role] = frozenset({"agent"})
_COMPUTER: frozenset[Role] = frozenset({"computer"})
_BOTH = _AGENT | _COMPUTER


def _relay(name: str, request: type, response: type) -> Event:
    return Event(name, Kind.RELAY, request, response, _AGENT)


def _announce(name: str, request: type, senders: frozenset[Role], notification: str) -> Event:
    return Event(name, Kind.ANNOUNCE, request, None, senders, notification)


def _notification(name: str, request: type, *, agent_only: bool = False) -> Event:
    return Event(name, Kind.NOTIFICATION, request, agent_only=agent_only)


EVENTS: Mapping[str, Event] = MappingProxyType(
    {
        event.name: event
        for event in (
            _relay(TOOL_CALL_EVENT, ToolCallReq, CallToolRet),
            _relay(GET_CONFIG_EVENT, GetComputerConfigReq, GetComputerConfigRet),
            _relay(GET_TOOLS_EVENT, GetToolsReq, GetToolsRet),
            _relay(GET_DESKTOP_EVENT, GetDeskTopReq, GetDeskTopRet),
            _relay(GET_FINDER_EVENT, GetFinderReq, GetFinderRet),
            _relay(READ_RESOURCE_EVENT, ReadResourceReq, ReadResourceRet),
            _relay(GET_RESOURCES_EVENT, GetResourcesReq, GetResourcesRet),
            _relay(SUBSCRIBE_RESOURCE_EVENT, SubscribeResourceReq, DoneRet),
            _relay(UNSUBSCRIBE_RESOURCE_EVENT, SubscribeResourceReq, DoneRet),
            _relay(GET_PROMPTS_EVENT, GetPromptsReq, GetPromptsRet),
            _relay(GET_PROMPT_EVENT, GetPromptReq, GetPromptRet),
            _relay(COMPLETE_EVENT, CompleteReq, CompleteRet),
            _relay(ANSWER_QUESTION_EVENT, AnswerQuestionReq, DoneRet),
            _relay(GET_SKILLS_EVENT, GetSkillsReq, GetSkillsRet),
            _relay(GET_SKILL_EVENT, GetSkillReq, GetSkillRet),
            _relay(GET_BLOB_EVENT, GetBlobReq, GetBlobRet),
            _relay(PUT_BLOB_EVENT, PutBlobReq, PutBlobRet),
            Event(JOIN_OFFICE_EVENT, Kind.MEMBERSHIP, EnterOfficeReq, None, _BOTH),
            Event(LEAVE_OFFICE_EVENT, Kind.MEMBERSHIP, LeaveOfficeReq, None, _BOTH),
            Event(AUTHENTICATE_EVENT, Kind.CREDENTIALS, AuthenticateReq, None, _BOTH),
            Event(RECORD_HEAD_EVENT, Kind.NOTE, RecordHeadReq, RecordHeadRet, _COMPUTER),
            _announce(UPDATE_CONFIG_EVENT, UpdateComputerConfigReq, _COMPUTER, UPDATE_CONFIG_NOTIFICATION),
            _announce(UPDATE_TOOL_LIST_EVENT, UpdateToolListNotification, _COMPUTER, UPDATE_TOOL_LIST_NOTIFICATION),
            _announce(UPDATE_DESKTOP_EVENT, UpdateComputerConfigReq, _COMPUTER, UPDATE_DESKTOP_NOTIFICATION),
            _announce(UPDATE_FINDER_EVENT, UpdateComputerConfigReq, _COMPUTER, UPDATE_FINDER_NOTIFICATION),
            _announce(UPDATE_RESOURCES_EVENT, UpdateComputerConfigReq, _COMPUTER, UPDATE_RESOURCES_NOTIFICATION),
            _announce(UPDATE_PROMPTS_EVENT, UpdateComputerConfigReq, _COMPUTER, UPDATE_PROMPTS_NOTIFICATION),
            _announce(UPDATE_SKILLS_EVENT, UpdateComputerConfigReq, _COMPUTER, UPDATE_SKILLS_NOTIFICATION),
            _announce(RESOURCE_UPDATED_EVENT, ResourceUpdatedNotification, _COMPUTER, RESOURCE_UPDATED_NOTIFICATION),
            _announce(CANCEL_TOOL_CALL_EVENT, AgentCallData, _AGENT, CANCEL_TOOL_CALL_NOTIFICATION),
            Event(TOOL_PROGRESS_EVENT, Kind.REPORT, ToolProgress, None, _COMPUTER, TOOL_PROGRESS_NOTIFICATION),
            Event(QUESTION_EVENT, Kind.REPORT, ToolQuestion, None, _COMPUTER, QUESTION_NOTIFICATION),
            Event(LIST_ROOM_EVENT, Kind.QUERY, ListRoomReq, ListRoomRet, _AGENT),
            _notification(ENTER_OFFICE_NOTIFICATION, EnterOfficeNotification),
            _notification(LEAVE_OFFICE_NOTIFICATION, LeaveOfficeNotification),
            _notification(UPDATE_CONFIG_NOTIFICATION, UpdateMCPConfigNotification),
            _notification(UPDATE_TOOL_LIST_NOTIFICATION, UpdateToolListNotification),
            _notification(UPDATE_DESKTOP_NOTIFICATION, UpdateComputerConfigReq),
            _notification(UPDATE_FINDER_NOTIFICATION, UpdateComputerConfigReq),
            _notification(UPDATE_RESOURCES_NOTIFICATION, UpdateComputerConfigReq),
            _notification(UPDATE_PROMPTS_NOTIFICATION, UpdateComputerConfigReq),
            _notification(UPDATE_SKILLS_NOTIFICATION, UpdateComputerConfigReq),
            _notification(RESOURCE_UPDATED_NOTIFICATION, ResourceUpdatedNotification, agent_only=True),
            _notification(CANCEL_TOOL_CALL_NOTIFICATION, AgentCallData),
            _notification(TOOL_PROGRESS_NOTIFICATION, ToolProgress, agent_only=True),
            _notification(QUESTION_NOTIFICATION, ToolQuestion, agent_only=True),
            _notification(MOVING_NOTIFICATION, Moving),
        )
    }
)
