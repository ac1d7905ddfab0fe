"""What every role does with a message: validate it by its event, encode it, decode it. Knows the shape of messages,
but not their purpose.
"""

import gc
import json
import math
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Any, Final, cast, get_origin

import msgspec
import orjson
from pydantic import FailFast, TypeAdapter, ValidationError
from typing_extensions import get_type_hints, is_typeddict

from a2c_smcp.errors import BadRequestError, PayloadTooLargeError
from a2c_smcp.request_fields import REQUEST_FIELDS
from a2c_smcp.smcp import EVENTS, TOOL_CALL_EVENT
from a2c_smcp.utils.text import well_formed
from a2c_smcp.utils.validation import first_problem

__all__ = [
    "DEFAULT_MAX_MESSAGE",
    "DEFAULT_MAX_TIMEOUT",
    "LARGE",
    "PACKET_OVERHEAD",
    "Encoded",
    "NotRepresentableError",
    "Unacceptable",
    "call_times",
    "checked_size",
    "codec",
    "encoded",
    "exceeds",
    "has_escaped_surrogate",
    "parse",
    "parse_response",
    "size_of",
    "whole_seconds",
    "written",
]

#: The longest encoded packet in UTF-8 bytes. Server, computer and agent must use the same value.
DEFAULT_MAX_MESSAGE: Final = 16 * 1024 * 1024
#: The most bytes that Socket.IO puts around a payload: type, namespace, ack id, brackets.
PACKET_OVERHEAD: Final = 64
#: The longest `timeout` that a tool call may ask for, in seconds.
DEFAULT_MAX_TIMEOUT: Final = 3600
#: A list of this length or more is checked by itself, up to its first wrong item.
_MANY: Final = 20


# --- validation


class Unacceptable:
    """Stands in an event for a payload that was decoded but is refused, so that the event can still be answered."""

    __slots__ = ("error",)

    def __init__(self, error: BadRequestError) -> None:
        self.error = error


class _Validator:
    """Validates one TypedDict of an answer with pydantic: msgspec cannot read the unions in it.

    It is built when it is first used. Building takes a thousand times longer than using. Building all validators takes
    a tenth of a second, and a command needs only two or three of them.
    """

    def __init__(self, subject: str, shape: type) -> None:
        self._subject = subject
        self._shape = shape
        self._nullable = _optional_keys(shape)

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self._shape)

    @cached_property
    def _lists(self) -> Mapping[str, TypeAdapter[Any]]:
        """The lists in it. Each is checked only up to its first wrong item."""
        hints: Mapping[str, Any] = get_type_hints(self._shape) if is_typeddict(self._shape) else {}
        lists = {
            key: cast("Any", Annotated[hint, FailFast()]) for key, hint in hints.items() if get_origin(hint) is list
        }
        return {key: TypeAdapter(hint) for key, hint in lists.items()}

    def __call__(self, data: Any) -> Any:
        _check_object(self._subject, data)
        # A null in an optional field means absent.
        if any(data.get(key, "") is None for key in self._nullable):
            data = {key: value for key, value in data.items() if value is not None or key not in self._nullable}
        lists = {}
        for key, adapter in self._lists.items():
            if isinstance(items := data.get(key), list) and len(items) >= _MANY:
                lists[key] = self._checked(adapter, items, f"{key}.")
        if not lists:
            return self._checked(self._adapter, data)
        return self._checked(self._adapter, {**data, **{key: [] for key in lists}}) | lists

    def _checked(self, adapter: TypeAdapter[Any], value: Any, place: str = "") -> Any:
        try:
            return adapter.validate_python(value, strict=True)
        except ValidationError as error:
            raise self._refusal(error, place) from None

    def _refusal(self, error: ValidationError, place: str) -> BadRequestError:
        """An error that names the first wrong field, but never its value: that may be a secret or a megabyte."""
        field, message = first_problem(error)
        field = place + field
        return BadRequestError(f"{self._subject}: field {field!r}: {message}", {"field": field})


def _optional_keys(shape: type) -> frozenset[str]:
    return (
        cast("frozenset[str]", getattr(shape, "__optional_keys__", frozenset())) if is_typeddict(shape) else frozenset()
    )


_RESPONSES: Final[Mapping[str, _Validator]] = {
    name: _Validator(f"reply to {name}", event.response) for name, event in EVENTS.items() if event.response
}


def _check_object(subject: str, data: Any) -> None:
    if isinstance(data, Unacceptable):
        raise data.error
    if not isinstance(data, dict):
        raise BadRequestError(f"{subject}: the payload must be one JSON object")


def parse(event: str, data: Any, *, max_timeout: int = DEFAULT_MAX_TIMEOUT) -> Any:
    """The payload of an event as its TypedDict without unknown keys. Raises `BadRequestError` with the wrong field.

    It is strict: no `True` for 1, no bytes for text. Only the times of a tool call may also be `30.0` or `"30"`.
    """
    fields = REQUEST_FIELDS.get(event)
    if fields is None:
        raise BadRequestError(f"unknown event {event[:100]!r}")
    if type(data) is not dict:
        _check_object(event, data)
    if event == TOOL_CALL_EVENT and "timeout" in data:
        timeout = data["timeout"]
        if type(timeout) is not int or not 0 < timeout <= max_timeout or "approval_timeout" in data:
            data = {**data, **call_times(data, max_timeout)}
    try:
        return msgspec.convert(data, EVENTS[event].request)
    except (msgspec.ValidationError, UnicodeEncodeError):
        # Find the problem. It may be only a null in an optional field. Half a character is not refused by msgspec where
        # a number must be: it fails.
        values = ((each.name, each.value_of(data)) for each in fields)
        return {name: value for name, value in values if value is not None}


def parse_response(event: str, data: object) -> Any:
    """The reply to a relayed or queried event as its TypedDict. Raises `BadRequestError` with the wrong field."""
    return _RESPONSES[event](data)


def call_times(request: Mapping[str, Any], maximum: int | None = DEFAULT_MAX_TIMEOUT) -> dict[str, int]:
    """Read the `timeout` of a tool call and, if it has one, its `approval_timeout`. Raises `BadRequestError`, which
    says what is allowed, also in its details. The maximum is for their sum; a side that does not know it passes `None`.
    """
    timeout = whole_seconds(request["timeout"], maximum)
    if (value := request.get("approval_timeout")) is None:
        return {"timeout": timeout}
    approval = whole_seconds(value, None, "approval_timeout")
    if maximum is not None and timeout + approval > maximum:
        raise BadRequestError(
            f"field 'approval_timeout': must be at most {maximum} seconds together with 'timeout'",
            {"field": "approval_timeout", "maximum": maximum},
        )
    return {"timeout": timeout, "approval_timeout": approval}


def whole_seconds(value: object, maximum: int | None = DEFAULT_MAX_TIMEOUT, field: str = "timeout") -> int:
    """Read the `field` of a tool call that is a time. Raises what `call_times` raises."""
    seconds: int | None = None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 18:
        seconds = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        seconds = value
    elif isinstance(value, float) and value.is_integer():
        seconds = int(value)
    if seconds is None or seconds < 1 or (maximum is not None and seconds > maximum):
        allowed = "from 1 on" if maximum is None else f"from 1 to {maximum}"
        details = {"field": field} if maximum is None else {"field": field, "maximum": maximum}
        raise BadRequestError(f"field {field!r}: must be whole seconds {allowed}", details)
    return seconds


# --- JSON

#: A larger message is decoded with the garbage collector paused, and carries no lone surrogates.
LARGE: Final = 64 * 1024

_READER: Final = msgspec.json.Decoder()
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


class NotRepresentableError(ValueError):
    """Well-formed JSON with a number that Python cannot represent."""


class _Codec:
    """A JSON module for python-socketio: msgspec reads, orjson writes, and the standard library handles what they
    refuse.
    """

    @staticmethod
    def dumps(obj: Any, **_: Any) -> str:
        try:
            return orjson.dumps(obj).decode()
        except TypeError:
            # Integers over 64 bits, lone surrogates, keys that are not text, nesting over 254 levels.
            return _standard_dumps(obj)

    @staticmethod
    def dumps_well_formed(obj: Any) -> str:
        """As `dumps`, but every lone surrogate becomes U+FFFD: readers outside this package may refuse them."""
        try:
            return orjson.dumps(obj).decode()
        except TypeError:
            return well_formed(_standard_text(obj))

    @staticmethod
    def line(obj: Any) -> bytes:
        """As `dumps_well_formed`, as one line in UTF-8 with its end."""
        try:
            return orjson.dumps(obj, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError:
            return well_formed(_standard_text(obj)).encode() + b"\n"

    @staticmethod
    def loads(text: str | bytes) -> Any:
        """The value, or `ValueError`; `NotRepresentableError` for a number out of range."""
        if len(text) <= LARGE:
            try:
                return _READER.decode(text)
            except (msgspec.DecodeError, RecursionError):
                pass  # what follows says what is wrong, or reads what msgspec does not
        return _loaded(text, _standard_loads)

    @staticmethod
    def loads_well_formed(text: str | bytes) -> Any:
        """As `loads`, but every lone surrogate becomes U+FFFD, also in the name of a field."""
        return _loaded(text, lambda text: _build(codec.dumps_well_formed(_standard_loads(text))))


def _loaded(text: str | bytes, load_surrogates: Callable[[str | bytes], Any]) -> Any:
    try:
        try:
            return _READER.decode(text) if len(text) <= LARGE else _build(text)
        except msgspec.ValidationError:
            raise NotRepresentableError("JSON holds a number that is out of range") from None
        except msgspec.DecodeError as error:
            if not has_escaped_surrogate(text):
                raise ValueError(f"not JSON: {error}") from None
        return load_surrogates(text)
    except RecursionError:
        raise ValueError("JSON is nested too deeply to decode") from None


def _build(text: str | bytes) -> Any:
    if len(text) <= LARGE or not gc.isenabled():
        return _READER.decode(text)
    # Nothing that is being built is garbage, and searching for garbage takes four times as long as building.
    gc.disable()
    try:
        return _READER.decode(text)
    finally:
        gc.enable()


def has_escaped_surrogate(text: str | bytes) -> bool:
    """Whether a surrogate stands beyond the first 65,536 characters. It may be half of a pair."""
    return _ESCAPED_SURROGATE.search(text if isinstance(text, str) else text.decode()) is not None


def _standard_loads(text: str | bytes) -> Any:
    """Decode as msgspec does, but accept lone surrogates."""
    return json.loads(text, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole)


def _finite(digits: str) -> float:
    if math.isfinite(number := float(digits)):
        return number
    raise NotRepresentableError("JSON holds a number that is out of range")


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise NotRepresentableError("JSON holds a number that is out of range") from None


def _standard_dumps(obj: Any) -> str:
    """A lone surrogate stays in a small message. In a large one it becomes U+FFFD, because the server accepts none
    there.
    """
    text = _standard_text(obj)
    escaped = _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    # A payload has something around it, such as the name of an event.
    return escaped if len(escaped) + 256 <= LARGE else well_formed(text)


def _standard_text(obj: Any) -> str:
    """Write as orjson does: other scripts unescaped, which halves their size, and no NaN, which is not JSON."""
    try:
        return json.dumps(obj, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_nulled(obj), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _nulled(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _nulled(item) for key, item in value.items()}
    return [_nulled(item) for item in value] if isinstance(value, list | tuple) else value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


codec: Final = _Codec()


def written(event: str, value: Any) -> str:
    """The payload of an event as JSON. Raises `BadRequestError` with the value that JSON cannot express."""
    try:
        return codec.dumps(value)
    except RecursionError:
        raise BadRequestError(f"{event}: the payload is nested too deeply, or holds itself") from None
    except (TypeError, ValueError) as error:
        raise BadRequestError(f"{event}: the payload cannot be written as JSON: {error}") from None


class Encoded:
    """Text that is already JSON, and is sent as it is."""

    __slots__ = ("size", "text")

    def __init__(self, text: str, size: int = -1) -> None:
        self.text = text
        self.size = size
        """How many bytes it has as UTF-8; -1 if nobody has looked."""


def encoded(value: Any) -> Encoded:
    """A value as JSON, with its size: before the text becomes text, it costs nothing."""
    try:
        data = orjson.dumps(value)
    except TypeError:
        text = _standard_dumps(value)
        return Encoded(text, size_of(text))
    return Encoded(data.decode(), len(data))


def size_of(text: str) -> int:
    """How many bytes a text has as UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def checked_size(what: str, text: str, max_message: int) -> int:
    """The size of an encoded payload in bytes. Raises `PayloadTooLargeError` if its packet would exceed the limit."""
    size = size_of(text)
    if size + PACKET_OVERHEAD > max_message:
        raise PayloadTooLargeError(f"{what} has {size} bytes; a message may have at most {max_message}")
    return size


def exceeds(text: str, max_message: int) -> bool:
    """Whether an encoded packet exceeds the limit in UTF-8 bytes, with Engine.IO's one character before it."""
    # For most texts the answer needs no encoding.
    return (len(text) + 1) * 4 > max_message and size_of(text) + 1 > max_message
