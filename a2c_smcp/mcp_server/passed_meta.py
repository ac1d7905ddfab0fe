"""The `_meta` of the request that is being answered, for whoever passes the request on."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Final

__all__ = ["answering_with_meta", "passed_meta", "request_meta"]

#: Between a client and its server: whoever passes a request on does not pass on these keys.
_OWN_KEYS: Final = frozenset({"progress_token", "progressToken"})
_OWN_PREFIX: Final = "io.modelcontextprotocol/"

_meta: ContextVar[Mapping[str, Any]] = ContextVar("a2c_smcp_request_meta", default=MappingProxyType({}))


def request_meta() -> Mapping[str, Any]:
    """The client's own `_meta` of this request, such as `traceparent`. Empty outside of a request."""
    return _meta.get()


def passed_meta(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """What of a request's `_meta` is the client's own, and not MCP's."""
    return {
        key: value for key, value in (meta or {}).items() if key not in _OWN_KEYS and not key.startswith(_OWN_PREFIX)
    }


@contextmanager
def answering_with_meta(meta: Mapping[str, Any] | None) -> Iterator[None]:
    """Inside this block `request_meta` has the client's `_meta`."""
    token = _meta.set(passed_meta(meta))
    try:
        yield
    finally:
        _meta.reset(token)
