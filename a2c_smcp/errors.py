"""Every error of the protocol, one class a code, and the forms it takes on the wire.

    SMCPError                               any code
    ├── BadRequestError                400
    │   ├── InvalidWindowURIError           also a ValueError
    │   ├── ToolNameDuplicatedError         two tools shown under one name
    │   ├── InputNotFoundError              `${input:id}` without a value
    │   └── InvalidConfigError              a config that cannot be used, with every `Problem`
    │       └── VRLSyntaxError              its `vrl` does not compile
    ├── UnauthorizedError              401
    ├── ForbiddenError                 403
    │   └── UncodedRefusalError             an older server refused a join or a leave, and gave no code
    ├── NotFoundError                  404
    ├── RequestTimeoutError            408
    ├── PayloadTooLargeError           413
    ├── TooManyRequestsError           429
    ├── InternalError                  500
    ├── ToolError
    │   ├── ToolNotFoundError         4001
    │   ├── ToolDisabledError         4002
    │   ├── ToolExecutionError        4003
    │   │   ├── ServerNotActiveError
    │   │   └── ServerStartError            an MCP server did not start
    │   ├── ToolExecutionTimeoutError 4004
    │   └── ToolConfirmationError     4005
    ├── RoomError
    │   ├── RoomFullError             4101
    │   ├── RoomNotFoundError         4102
    │   ├── NotInRoomError            4103
    │   ├── CrossRoomAccessError      4104
    │   ├── NameTakenError            4105
    │   └── AlreadyInRoomError        4106
    ├── ConnectionLostError          0  never on the wire: this side lost, or never had, its connection
    │   ├── UntrustedCertificateError       the server's, or that of a proxy which opens TLS
    │   ├── NoTlsError                      https:// in the URL, and plain HTTP at the other end
    │   └── ProxyError                      the proxy does not answer, or refuses
    └── FinderError
        ├── DocumentNotFoundError     4201
        ├── PageOutOfRangeError       4202
        ├── ElementNotFoundError      4203
        └── InvalidDPEURIError        4204  also a ValueError

An error's attributes live in its `details`, so an error that came over the wire has them, too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, TypeGuard

from a2c_smcp.utils.text import cut, harmless, printable

__all__ = [
    "AlreadyInRoomError",
    "BadRequestError",
    "ConnectionLostError",
    "CrossRoomAccessError",
    "DocumentNotFoundError",
    "ElementNotFoundError",
    "FinderError",
    "ForbiddenError",
    "InputNotFoundError",
    "InternalError",
    "InvalidConfigError",
    "InvalidDPEURIError",
    "InvalidWindowURIError",
    "NameTakenError",
    "NoTlsError",
    "NotFoundError",
    "NotInRoomError",
    "PageOutOfRangeError",
    "PayloadTooLargeError",
    "Problem",
    "ProxyError",
    "RequestTimeoutError",
    "RoomError",
    "RoomFullError",
    "RoomNotFoundError",
    "SMCPError",
    "ServerNotActiveError",
    "ServerStartError",
    "SmcpError",
    "TooManyRequestsError",
    "ToolConfirmationError",
    "ToolDisabledError",
    "ToolError",
    "ToolExecutionError",
    "ToolExecutionTimeoutError",
    "ToolNameDuplicatedError",
    "ToolNotFoundError",
    "UnauthorizedError",
    "UncodedRefusalError",
    "UntrustedCertificateError",
    "VRLSyntaxError",
    "error_from_payload",
    "error_from_reason",
    "make_finder_error",
]

_REASON = re.compile(r"(\d{3,4}) ([^:]*): (.*)", re.DOTALL)


def _named(text: str) -> str:
    # How many characters of a value, such as a URI, a message quotes.
    return cut(text, 200)


def _cut_texts(value: Any) -> Any:
    """A detail, cut if a peer made it very long."""
    if isinstance(value, list):
        return [cut(item) if isinstance(item, str) else item for item in value]
    return cut(value) if isinstance(value, str) else value


class SMCPError(Exception):
    """A failure with a `code` of the protocol, a `message` for people and `details` for programs.

    Catch this class for every failure of the protocol, or a subclass for one kind. A code without a class of its own
    arrives as `SMCPError` itself. Texts from a peer are cut at 2,000 characters: they are logged and sent on.
    """

    default_code: ClassVar[int] = 500
    title: ClassVar[str] = "Error"

    def __init__(self, code: int, message: str, details: Mapping[str, Any] | None = None) -> None:
        message = cut(message)
        super().__init__(message)
        self.code = code
        self.message = message
        self.details: dict[str, Any] = {key: _cut_texts(value) for key, value in (details or {}).items()}

    def __str__(self) -> str:
        says_it = self.message.lower().startswith(self.title.lower())
        return f"{self.code} {self.message}" if says_it else self.reason()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.code, self.message, self.details)

    def payload(self) -> dict[str, Any]:
        """The error as the ack of a request. Join and leave have another form: `reason`."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            error["details"] = self.details
        return {"error": error}

    def tool_call_payload(self) -> dict[str, Any]:
        """The error as the ack of `client:tool_call`: an error, and also a failed result for agents that read only
        results.
        """
        return {**self.payload(), "content": [{"type": "text", "text": self.message}], "isError": True}

    def reason(self) -> str:
        """The error as the second argument of a refused join or leave: its code comes first."""
        return f"{self.code} {self.title}: {self.message}"


#: The same class, as the specification's examples spell it.
SmcpError = SMCPError


class _CodedError(SMCPError):
    """A base class for errors whose class knows the code. Only the message is needed."""

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(self.default_code, message, details)


class BadRequestError(_CodedError):
    """A request or its reply does not fit the protocol; `details` may name the `field`. Sending it again does not
    help.
    """

    default_code = 400
    title = "Bad Request"


class InvalidWindowURIError(BadRequestError, ValueError):
    """The text is not a `window://` URI. This is also a `ValueError`."""

    title = "Invalid Window URI"

    def __init__(self, uri: str, problem: str) -> None:
        super().__init__(f"{problem}: {_named(uri)!r}", {"uri": _named(uri)})

    @property
    def uri(self) -> str | None:
        """The text that was given, cut if it is long."""
        return self.details.get("uri")


class ToolNameDuplicatedError(BadRequestError):
    """Two tools of a computer would have one name. Give one an `alias`, or its server a `tool_prefix`."""

    title = "Tool Name Duplicated"

    def __init__(self, tool_names: str | Sequence[str], servers: Sequence[str]) -> None:
        names = [tool_names] if isinstance(tool_names, str) else list(tool_names)
        super().__init__(
            f"Tool name duplicated: {', '.join(names)} in servers: {list(servers)}. "
            "Give a tool another name with ToolMeta.alias, or all tools of a server with tool_prefix.",
            {"tool_name": names[0], "tool_names": names, "servers": list(servers)},
        )

    @property
    def tool_name(self) -> str | None:
        """The first name that two tools would have."""
        return self.details.get("tool_name")

    @property
    def tool_names(self) -> list[str]:
        """Every name that two tools would have."""
        return list(self.details.get("tool_names", []))

    @property
    def servers(self) -> list[str]:
        """The MCP servers of these tools."""
        return list(self.details.get("servers", []))


class InputNotFoundError(BadRequestError):
    """A config needs an input that is not defined or has no value: no variable, no default and no answer gave one."""

    title = "Input Not Found"

    def __init__(self, input_id: str, hint: str = "") -> None:
        super().__init__(f"Input not found: {input_id}" + (f" ({hint})" if hint else ""), {"input_id": input_id})

    @property
    def input_id(self) -> str | None:
        """The id in `${input:id}`."""
        return self.details.get("input_id")


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem in a config. `str()` names the file, the server or input, the field, and the problem."""

    message: str
    field: str = ""
    subject: str = ""
    """The entry with the problem: `server 'files'`, `input 'key'`; empty if it is the whole file."""
    file: str = ""
    diagnostic: str = ""
    """The lines that a compiler draws below the message."""

    def __str__(self) -> str:
        # On one line, whatever a key in the file holds: nobody can forge a log line or an error of ours with it. The
        # lines of a diagnostic are indented for the same reason.
        said = printable(": ".join(filter(None, (self.file, self.subject, self.field, self.message))))
        return "\n    ".join([said, *harmless(self.diagnostic).splitlines()])

    def within(self, subject: str) -> "Problem":
        """The same problem, with an entry that only the caller knows."""
        return replace(self, subject=self.subject or subject)


class InvalidConfigError(BadRequestError):
    """A configuration that cannot be used. `problems` has every reason, not only the first."""

    title = "Invalid Configuration"

    def __init__(self, problems: Sequence[Problem]) -> None:
        between = "\n" if any(problem.diagnostic for problem in problems) else "; "
        super().__init__(between.join(map(str, problems)), {"problems": [asdict(problem) for problem in problems]})

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems, in the order of the files."""
        return tuple(Problem(**problem) for problem in self.details.get("problems") or ())


class VRLSyntaxError(InvalidConfigError):
    """A transformation in a config does not compile. The message shows the place, on lines of its own."""

    title = "VRL Syntax Error"

    def __init__(self, message: str, subject: str = "") -> None:
        """`message` is the compiler's. `subject` is the entry with the program, unless only the caller knows it."""
        said = f"VRL syntax error: {message}"
        first, _, diagnostic = said.partition("\n")
        super().__init__([Problem(first, "vrl", subject, diagnostic=diagnostic)])
        if not subject:
            self.message = cut(said)
            self.args = (self.message,)


class UnauthorizedError(_CodedError):
    """The server refused the connection: the API key is missing or wrong."""

    default_code = 401
    title = "Unauthorized"


class ForbiddenError(_CodedError):
    """The role or the key does not allow this."""

    default_code = 403
    title = "Forbidden"


class UncodedRefusalError(ForbiddenError):
    """An older server refused a join or a leave without a code. Only a person can tell from the reason whether to
    try again.
    """


class NotFoundError(_CodedError):
    """No computer of that name is in the agent's office, or it left before it answered."""

    default_code = 404
    title = "Not Found"


class RequestTimeoutError(_CodedError):
    """No answer came in time. A tool that was called may have run."""

    default_code = 408
    title = "Timeout"


class PayloadTooLargeError(_CodedError):
    """A request, a result or a resource is larger than one message may be. The connection lives on."""

    default_code = 413
    title = "Payload Too Large"


class TooManyRequestsError(_CodedError):
    """A limit of the server or of a computer: too many requests per second, or too many without an answer. Try
    later.
    """

    default_code = 429
    title = "Too Many Requests"


class InternalError(_CodedError):
    """A fault of the peer. Its log has a line with the `req_id`, and a traceback."""

    default_code = 500
    title = "Internal Error"


class ConnectionLostError(_CodedError):
    """This side has no connection to the server: it was never made, was lost, or was closed.

    The failed request may have arrived. An open client connects again by itself.
    """

    default_code = 0
    title = "Connection Lost"

    @property
    def advice(self) -> str:
        """What a person can do about it; empty if that is unknown. It is also part of the message."""
        return str(self.details.get("advice", ""))

    @property
    def problem(self) -> str:
        """The message without the advice."""
        return str(self.details.get("problem", self.message))


class _AdvisedError(ConnectionLostError):
    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(f"{problem}; {advice}", {"problem": problem, "advice": advice})


class UntrustedCertificateError(_AdvisedError):
    """The certificate of the server, or of a proxy on the way, is not trusted. `advice` says what to do."""

    title = "Untrusted Certificate"


class NoTlsError(_AdvisedError):
    """The URL begins with `https://`, and what answers there speaks no TLS. `advice` says what to do."""

    title = "No TLS"


class ProxyError(_AdvisedError):
    """The HTTP proxy does not answer, or refuses. `advice` says what to do."""

    title = "Proxy Error"


class ToolError(_CodedError):
    """A tool call failed at the computer. An agent gets it as a result with `is_error`, not as an exception."""


class ToolNotFoundError(ToolError):
    """The computer has no tool of that name. It may come later: see `starting`."""

    default_code = 4001
    title = "Tool Not Found"

    def __init__(
        self, tool_name: str, starting: Sequence[str] = (), down: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        down = dict(list(down.items())[:5])
        said = [f"still starting: {', '.join(starting)}"] if starting else []
        said += [f"server {name} does not run: {reason}" for name, reason in down.items()]
        super().__init__(
            f"Tool not found: {_named(tool_name)}" + (f" ({'; '.join(said)})" if said else ""),
            {"tool_name": _named(tool_name)}
            | ({"starting": list(starting)} if starting else {})
            | ({"down": down} if down else {}),
        )

    @property
    def tool_name(self) -> str | None:
        """The name in the call, cut if it is long."""
        return self.details.get("tool_name")

    @property
    def starting(self) -> list[str]:
        """The MCP servers that are still starting: one of them may have the tool."""
        return list(self.details.get("starting", []))

    @property
    def down(self) -> dict[str, str]:
        """MCP servers that should run but do not, with the reasons: one of them may have the tool."""
        return dict(self.details.get("down", {}))


class ToolDisabledError(ToolError):
    """The tool is in the `forbidden_tools` of its server's config."""

    default_code = 4002
    title = "Tool Disabled"


class ToolExecutionError(ToolError):
    """The MCP server failed, died, or answered with an MCP error."""

    default_code = 4003
    title = "Tool Execution Failed"


class ServerNotActiveError(ToolExecutionError):
    """The MCP server of the tool does not run."""

    title = "Server Not Active"

    def __init__(self, server_name: str, state: str | None = None, reason: str | None = None) -> None:
        said = f" ({state}{': ' + reason if reason else ''})" if state else ""
        known = {"state": state, "reason": reason}
        super().__init__(
            f"Server {server_name} is not active{said}",
            {"server_name": server_name, **{key: value for key, value in known.items() if value}},
        )

    @property
    def server_name(self) -> str | None:
        """The name of the MCP server in the config."""
        return self.details.get("server_name")

    @property
    def state(self) -> str | None:
        """The state that the server is in instead, such as `failed` or `backing_off`."""
        return self.details.get("state")

    @property
    def why(self) -> str | None:
        """Why it does not run."""
        return self.details.get("reason")


class ServerStartError(ToolExecutionError):
    """The MCP server could not be started; the message says why."""

    def __init__(self, server_name: str, reason: str, *, is_lasting: bool = False) -> None:
        super().__init__(f"Server {server_name} failed: {reason}", {"server_name": server_name})
        self.why = reason
        """The reason alone, without the name of the server."""
        self.is_lasting = is_lasting
        """Whether trying again later is useless."""


class SignInNeededError(ServerStartError):
    """The MCP server does not run before a person has signed in to it."""

    title = "Sign-in Needed"

    def __init__(self, server_name: str, reason: str) -> None:
        super().__init__(server_name, reason, is_lasting=True)
        self.details["state"] = "sign_in"


class ToolExecutionTimeoutError(ToolError):
    """The tool did not finish within the `timeout` of its call, and was cancelled."""

    default_code = 4004
    title = "Tool Timeout"

    def __init__(self, timeout: float) -> None:
        super().__init__(f"Tool execution timeout after {timeout:g}s", {"timeout": timeout})

    @property
    def timeout(self) -> float | None:
        """The timeout of the call in seconds."""
        return self.details.get("timeout")


class ToolConfirmationError(ToolError):
    """The call needs a person's confirmation, and has none: it was refused, nobody answered in time, or nobody could
    be asked.
    """

    default_code = 4005
    title = "Tool Requires Confirmation"

    @property
    def outcome(self) -> str | None:
        """The reason: `refused` by a person, refused by a `rule`, `unanswered`, or `nobody` could be asked."""
        return self.details.get("outcome")

    @property
    def words(self) -> str | None:
        """The words of the person who refused, if there are any."""
        return self.details.get("reason")


class RoomError(_CodedError):
    """The server refuses a request because of the office or its members."""


class RoomFullError(RoomError):
    """The office already has an agent; the message names it."""

    default_code = 4101
    title = "Room Full"


class RoomNotFoundError(RoomError):
    """Reserved by the protocol: an office exists as soon as a client joins it."""

    default_code = 4102
    title = "Room Not Found"


class NotInRoomError(RoomError):
    """The request needs an office, but this client is in none. Join first."""

    default_code = 4103
    title = "Not In Room"


class CrossRoomAccessError(RoomError):
    """The request names an office that is not the client's."""

    default_code = 4104
    title = "Cross Room Access"


class NameTakenError(RoomError):
    """Another client of this role already has that name in the office."""

    default_code = 4105
    title = "Name Taken"


class AlreadyInRoomError(RoomError):
    """The agent is in another office. Leave that one first."""

    default_code = 4106
    title = "Already In Another Room"


class FinderError(_CodedError):
    """A document or a part of one cannot be read."""


class DocumentNotFoundError(FinderError):
    """No MCP server has that document."""

    default_code = 4201
    title = "Document Not Found"

    def __init__(self, doc_ref: str, unserved_host: str | None = None) -> None:
        """`unserved_host` is the host of the URI, if no MCP server has anything of that host."""
        said = f"No MCP Server found for host: {_named(unserved_host)}" if unserved_host is not None else ""
        super().__init__(said or f"Document not found: {_named(doc_ref)}", {"doc_ref": doc_ref})

    @property
    def doc_ref(self) -> str | None:
        """The reference of the document in its URI."""
        return self.details.get("doc_ref")


class PageOutOfRangeError(FinderError):
    """The document has no page of that index; pages count from 0."""

    default_code = 4202
    title = "Page Out of Range"

    def __init__(self, page_index: int, page_count: int) -> None:
        super().__init__(
            f"Page {page_index} out of range (page_count: {page_count})",
            {"page_index": page_index, "page_count": page_count},
        )

    @property
    def page_index(self) -> int | None:
        """The index in the request."""
        return self.details.get("page_index")

    @property
    def page_count(self) -> int | None:
        """How many pages the document has."""
        return self.details.get("page_count")


class ElementNotFoundError(FinderError):
    """The document has no element of that id."""

    default_code = 4203
    title = "Element Not Found"

    def __init__(self, element_id: str) -> None:
        super().__init__(f"Element not found: {_named(element_id)}", {"element_id": element_id})

    @property
    def element_id(self) -> str | None:
        """The id in the request."""
        return self.details.get("element_id")


class InvalidDPEURIError(FinderError, ValueError):
    """The text is not a `dpe://` URI. This is also a `ValueError`."""

    default_code = 4204
    title = "Invalid DPE URI"

    def __init__(self, uri: str, problem: str) -> None:
        super().__init__(f"Invalid DPE URI: {problem}: {_named(uri)!r}", {"uri": _named(uri)})

    @property
    def uri(self) -> str | None:
        """The text that was given, cut if it is long."""
        return self.details.get("uri")


#: The class for each code that arrives over the wire.
_BY_CODE: dict[int, type[SMCPError]] = {
    cls.default_code: cls
    for cls in (
        BadRequestError,
        UnauthorizedError,
        ForbiddenError,
        NotFoundError,
        RequestTimeoutError,
        PayloadTooLargeError,
        TooManyRequestsError,
        InternalError,
        ToolNotFoundError,
        ToolDisabledError,
        ToolExecutionError,
        ToolExecutionTimeoutError,
        ToolConfirmationError,
        RoomFullError,
        RoomNotFoundError,
        NotInRoomError,
        CrossRoomAccessError,
        NameTakenError,
        AlreadyInRoomError,
        DocumentNotFoundError,
        PageOutOfRangeError,
        ElementNotFoundError,
        InvalidDPEURIError,
    )
}


def _restore(cls: type[SMCPError], code: int, message: str, details: Mapping[str, Any] | None) -> SMCPError:
    """Build an error from the fields on the wire. The constructors take other arguments."""
    error = cls.__new__(cls)
    SMCPError.__init__(error, code, message, details)
    return error


def _error(code: int, message: str, details: Mapping[str, Any] | None = None) -> SMCPError:
    return _restore(_BY_CODE.get(code, SMCPError), code, message, details)


def error_from_payload(payload: object) -> SMCPError | None:
    """The error in a reply, as the class of its code; `None` if there is none.

    It accepts what peers send: an `error` that is a bare string or has no code becomes a 500. The error may also stand
    flat in the reply, `{"code": 404, "message": …}`: no other reply of the protocol has a `code`.
    """
    if not isinstance(payload, Mapping):
        return None
    if (error := payload.get("error")) is None:
        error = payload if _is_code(payload.get("code")) and isinstance(payload.get("message"), str) else None
    if error is None:
        return None
    if not isinstance(error, Mapping):
        return _error(500, str(error))
    code = error.get("code")
    details = error.get("details")
    return _error(
        code if _is_code(code) else 500,
        str(error.get("message", "unknown error")),
        details if isinstance(details, Mapping) else None,
    )


def _is_code(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def error_from_reason(reason: object) -> SMCPError:
    """The error of a refused join or leave; `UncodedRefusalError`, a 403, if an older server gives no code."""
    text = str(reason) if reason else "refused without a reason"
    if match := _REASON.match(text):
        return _error(int(match[1]), match[3])
    return UncodedRefusalError(text)


def make_finder_error(code: int, message: str, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The payload of a Finder error, for servers and tests that have no exception."""
    return SMCPError(code, message, details).payload()
