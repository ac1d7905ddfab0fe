"""What the server reads of a message: its envelope. The rest is checked to be JSON, and passed on as text.

The shapes are made from the same table of fields by which `wire` validates at the other ends. Pure: no sockets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from a2c_smcp.errors import BadRequestError, SMCPError, error_from_payload
from a2c_smcp.packet_text import NAME, name_of
from a2c_smcp.request_fields import REQUEST_FIELDS, RequestField
from a2c_smcp.server.offices import MAX_ID
from a2c_smcp.server.own_fields import OWN_FIELDS, RAW_FIELDS, without_own_fields
from a2c_smcp.smcp import EVENTS, QUESTION_EVENT, TOOL_CALL_EVENT, Event, Kind
from a2c_smcp.tracing.switch import TRACING
from a2c_smcp.tracing.trace_context import traceparent_in
from a2c_smcp.wire import (
    DEFAULT_MAX_TIMEOUT,
    LARGE,
    NotRepresentableError,
    call_times,
    codec,
    has_escaped_surrogate,
    parse,
)

__all__ = ["Answer", "Message", "answer_from", "payload_of", "read_answer", "read_message"]

_T = TypeVar("_T")

#: The fields of a relay that are kept until its answer comes.
_KEPT: Final = frozenset(
    {"agent", "req_id", "computer", "timeout", "approval_timeout", "progress", "questions", "tool_name"}
)
#: What a client wrote under the names of the server's own fields.
_forged: Final = attrgetter(*OWN_FIELDS)
_NOT_FORGED: Final = (UNSET,) * len(OWN_FIELDS)


# --- events


@dataclass(slots=True, eq=False)
class Message:
    """An event as it arrived."""

    event: str | None
    """Its name; `None` if the name is not a text."""
    request: Any = field(default_factory=dict)
    """The fields that the server needs. A refused event has only the `req_id`, for the log. While this process makes
    spans, a relay has the `traceparent` of its `meta`, too."""
    error: BadRequestError | None = None
    """Why it is refused, if it is."""
    body: str | None = None
    """The JSON of a relay or a question, to be passed on. `take_body` gives it away, so that its memory is free once it
    is sent."""
    row: Event | None = None
    """Its row, if all of it was accepted in one go: then its ids are not too long either."""

    def take_body(self) -> str:
        body, self.body = self.body, None
        assert body is not None
        return body


class _Arguments(msgspec.Struct, array_like=True):
    """The name and the arguments of an event. What comes after the second argument is skipped."""

    name: Raw
    payload: Raw | UnsetType = UNSET
    more: Raw | UnsetType = UNSET


_ARGUMENTS: Final = msgspec.json.Decoder(_Arguments)


def read_message(body: str, max_timeout: int = DEFAULT_MAX_TIMEOUT) -> Message:
    """Read the JSON of an event. Raises `ValueError` if it is not an event."""
    shape = _SHAPES.get(match[1]) if (match := NAME.match(body)) else None
    try:
        if shape is not None and (request := shape.read(body, max_timeout)) is not None:
            return Message(shape.row.name, request, None, body.strip() if shape.is_passed_on else None, shape.row)
        return _read_closely(body, max_timeout)
    except RecursionError:
        return Message(name_of(body), error=BadRequestError("the payload is nested too deeply"))
    except msgspec.DecodeError as error:
        if not has_escaped_surrogate(body):
            raise ValueError(f"not JSON: {error}") from None
        # msgspec takes no lone surrogates.
        return _read_slowly(body, max_timeout)


def _accepted(shape: "_Shape", request: dict[str, Any], body: str) -> Message:
    return Message(shape.row.name, request, None, body.strip() if shape.is_passed_on else None)


def payload_of(body: str) -> str:
    """The JSON of the payload in a body that was accepted."""
    try:
        payload = _ARGUMENTS.decode(body).payload
        assert isinstance(payload, Raw)
        return bytes(payload).decode()
    except msgspec.DecodeError:  # a lone surrogate
        return codec.dumps(codec.loads(body)[1])


def _read_closely(body: str, max_timeout: int) -> Message:
    """Read a message that does not have the expected shape, and say what is wrong."""
    try:
        arguments = _ARGUMENTS.decode(body)
    except msgspec.ValidationError:
        raise ValueError("an event must be a JSON array that begins with its name") from None
    name = _decoded(_TEXT, arguments.name)
    if (shape := _SHAPES.get(name or "")) is None:
        return Message(name)
    payload = arguments.payload if arguments.more is UNSET else UNSET
    try:
        fields = shape.raws.decode(payload) if isinstance(payload, Raw) else None
    except msgspec.ValidationError:
        fields = None
    if fields is None:
        return Message(name, error=BadRequestError(f"{name}: the payload must be one JSON object"))
    try:
        request = shape.read_one_by_one(fields, max_timeout)
        return _accepted(shape, request, body if _forged(fields) == _NOT_FORGED else without_own_fields(body))
    except BadRequestError as error:
        req_id = _decoded(_TEXT, getattr(fields, "req_id", UNSET))
        return Message(name, {} if req_id is None else {"req_id": req_id}, error)


def _read_slowly(body: str, max_timeout: int) -> Message:
    """Read a small message by decoding all of it."""
    name = name_of(body)
    if len(body) > LARGE:
        return Message(name, error=BadRequestError(f"a message over {LARGE} characters must not have lone surrogates"))
    try:
        data = codec.loads(body)
    except NotRepresentableError as error:
        return Message(name, error=BadRequestError(str(error)))
    if not isinstance(data, list) or not data:
        raise ValueError("an event must be a JSON array that begins with its name")
    name, *args = data
    if not isinstance(name, str) or (shape := _SHAPES.get(name)) is None:
        return Message(name if isinstance(name, str) else None)
    payload = args[0] if len(args) == 1 else None
    try:
        request = shape.timed(parse(name, payload, max_timeout=max_timeout), max_timeout)
        return _accepted(shape, request, without_own_fields(body))
    except BadRequestError as error:
        req_id = payload.get("req_id") if isinstance(payload, dict) else None
        return Message(name, {"req_id": req_id} if isinstance(req_id, str) else {}, error)


# --- the shape of each event


def _kept_as(each: RequestField) -> Any:
    # A null in an optional field means that it is absent; `Raw` takes null, too.
    return Raw if each.opening else each.reads if each.required else each.reads | None


def _read_fast_as(each: RequestField) -> Any:
    # An id that is too long is read closely, and refused by `offices.check_ids`.
    return Annotated[str, Meta(max_length=MAX_ID)] if each.name in ("agent", "req_id") else _kept_as(each)


def _check(each: RequestField, value: Any) -> None:
    """Raise `msgspec.ValidationError` if the field should be an object or a list, and is not. Decodes nothing."""
    if not isinstance(value, Raw):
        return
    view = memoryview(value)
    if view[0] != each.opening:
        if view[0] == ord("n") and not each.required:
            return
        raise msgspec.ValidationError
    if each.reads is not Raw and len(view) <= LARGE:  # the computer checks the items of a longer list
        msgspec.json.decode(value, type=each.reads)


def _has_items(value: Raw) -> bool:
    """What is kept of a list: a `Raw` would keep the whole message in memory."""
    view = memoryview(value)
    return view[0] == ord("[") and len(view) > len("[]")


class _Shape:
    """How the payload of one event is read: all at once. If that fails, field by field, to say what is wrong."""

    def __init__(self, row: Event) -> None:
        self.row = row
        self.is_passed_on = row.kind is Kind.RELAY or row.name == QUESTION_EVENT
        self._fields = REQUEST_FIELDS[row.name]
        self._containers = [each for each in self._fields if each.opening]
        self._kept = [
            each.name
            for each in self._fields
            if (not each.opening if row.kind is not Kind.RELAY else each.name in _KEPT)
        ]
        typed = [
            (each.name, _read_fast_as(each)) if each.required else (each.name, _read_fast_as(each) | UnsetType, UNSET)
            for each in self._fields
        ]
        own = [(name, Raw | UnsetType, UNSET) for name in OWN_FIELDS]
        payload: Any = msgspec.defstruct("Payload", [*typed, *own], kw_only=True)
        self._whole = msgspec.json.Decoder(tuple[str, payload])
        self.raws = RAW_FIELDS[row.name]
        self._is_timed = row.name == TOOL_CALL_EVENT

    def read(self, body: str, max_timeout: int) -> dict[str, Any] | None:
        """The kept fields of an event. Returns `None` if it does not have the expected shape: use `_read_closely`."""
        request = {}
        try:
            _, payload = self._whole.decode(body)
            if _forged(payload) != _NOT_FORGED:
                return None
            for each in self._containers:
                # For most objects a look at the bracket will do.
                value, is_plain = getattr(payload, each.name), each.reads is Raw
                if value is not UNSET and not (is_plain and value and memoryview(value)[0] == each.opening):
                    _check(each, value)
            for name in self._kept:
                if (value := getattr(payload, name)) is not UNSET and value is not None:
                    request[name] = _has_items(value) if isinstance(value, Raw) else value
            if TRACING.spans is not None and isinstance(meta := getattr(payload, "meta", None), Raw):
                request["traceparent"] = traceparent_in(meta)
            if self._is_timed:
                # Most times need nothing else.
                seconds = request["timeout"]
                if type(seconds) is not int or not 0 < seconds <= max_timeout or "approval_timeout" in request:
                    return self._with_total(request, max_timeout)
            return request
        except (msgspec.ValidationError, BadRequestError):
            return None

    def read_one_by_one(self, raws: Any, max_timeout: int) -> dict[str, Any]:
        """The kept fields of a payload. Raises `BadRequestError`, which names the first wrong field.

        Accepts more than `read`: of two fields with one name only the last one is checked.
        """
        values = {}
        for each in self._fields:
            if (raw := getattr(raws, each.name)) is UNSET:
                if each.required:
                    raise each.refusal("is missing")
                continue
            try:
                values[each.name] = raw if each.opening else msgspec.json.decode(raw, type=_kept_as(each))
                _check(each, values[each.name])
            except msgspec.ValidationError:
                if each.words:
                    raise each.refusal(each.words) from None
                values[each.name] = ""  # a time of a wrong type; `call_times` refuses this text
        return self.timed(values, max_timeout)

    def timed(self, values: Mapping[str, Any], max_timeout: int) -> dict[str, Any]:
        """The kept fields of these values."""
        kept = {name: values[name] for name in self._kept if values.get(name) is not None}
        request = {name: _has_items(value) if isinstance(value, Raw) else value for name, value in kept.items()}
        return self._with_total(request, max_timeout)

    def _with_total(self, request: dict[str, Any], max_timeout: int) -> dict[str, Any]:
        """The server needs one number only: how long the call may take in all."""
        if self._is_timed:
            times = call_times(request, max_timeout)
            request["timeout"] = times["timeout"] + times.get("approval_timeout", 0)
            request.pop("approval_timeout", None)
        return request


_SHAPES: Final[Mapping[str, _Shape]] = {
    name: _Shape(row) for name, row in EVENTS.items() if row.kind is not Kind.NOTIFICATION
}


# --- acks


@dataclass(frozen=True, slots=True)
class Answer:
    """The object that a computer acked. It is passed on as it came."""

    text: str
    error: SMCPError | None = None
    """The error, if the answer is one."""


class _ErrorReply(msgspec.Struct):
    code: Raw | UnsetType = UNSET
    message: Raw | UnsetType = UNSET


class _Reply(_ErrorReply):
    error: Raw | UnsetType = UNSET


class _Acked(msgspec.Struct, array_like=True):
    first: Raw


_ONE: Final = msgspec.json.Decoder(tuple[_Reply])
_ACKED: Final = msgspec.json.Decoder(_Acked)
_REPLY: Final = msgspec.json.Decoder(_Reply)
_ERROR_REPLY: Final = msgspec.json.Decoder(_ErrorReply)
_TEXT: Final = msgspec.json.Decoder(str)
_WHOLE_NUMBER: Final = msgspec.json.Decoder(int)


def read_answer(body: str) -> Answer | None:
    """Read the JSON of an ack. Returns `None` if it has no answer in it."""
    try:
        try:
            (reply,) = _ONE.decode(body)
        except msgspec.ValidationError:
            first = _ACKED.decode(body).first  # there may be several
            return Answer(bytes(first).decode(), _error_of(_REPLY.decode(first)))
        is_error = reply.error is not UNSET or reply.code is not UNSET
        return Answer(body.strip()[1:-1], _error_of(reply) if is_error else None)
    except RecursionError:
        return None
    except msgspec.DecodeError:
        return _answer_slowly(body) if has_escaped_surrogate(body) and len(body) <= LARGE else None


def answer_from(args: Sequence[Any]) -> Answer | None:
    """An answer from arguments that are decoded already."""
    first = args[0] if args else None
    return Answer(codec.dumps(first), error_from_payload(first)) if isinstance(first, dict) else None


def _answer_slowly(body: str) -> Answer | None:
    try:
        data = codec.loads(body)
    except ValueError:
        return None
    return answer_from(data) if isinstance(data, list) else None


def _error_of(reply: _Reply) -> SMCPError | None:
    if reply.error is UNSET and reply.code is UNSET:
        return None
    return error_from_payload({"error": _said(reply.error), **_coded(reply)})


def _said(error: Raw | UnsetType) -> Any:
    if error is UNSET or bytes(memoryview(error)[:4]) == b"null":
        return None
    try:
        return _coded(_ERROR_REPLY.decode(error))
    except msgspec.ValidationError:
        return _decoded(_TEXT, error) or "unknown error"


def _coded(error: _ErrorReply) -> dict[str, Any]:
    said = {"code": _decoded(_WHOLE_NUMBER, error.code), "message": _decoded(_TEXT, error.message)}
    return {key: value for key, value in said.items() if value is not None}


def _decoded(decoder: "msgspec.json.Decoder[_T]", raw: Raw | UnsetType) -> _T | None:
    """The value of a field; `None` if it is missing or has another type."""
    try:
        return None if raw is UNSET else decoder.decode(raw)
    except msgspec.ValidationError:
        return None
