"""Why a server refuses a request, as its `WWW-Authenticate` says. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import httpx2

__all__ = ["Challenge", "challenge_in"]

_FIELD: Final = '{}=(?:"([^"]*)"|([^\\s,]+))'
_MOST_CHARACTERS: Final = 4096


@dataclass(frozen=True, slots=True)
class Challenge:
    """A server wants a token, or one with more rights."""

    status: int
    """401, or 403 for a token without the rights that the request needs."""
    scope: str | None = None
    resource_metadata: str | None = None
    request_headers: Mapping[str, str] = field(default_factory=dict)
    """The headers of the refused request that the flow looks at: the version of MCP."""

    @property
    def is_step_up(self) -> bool:
        return self.status == 403

    def response(self, request: "httpx2.Request", scopes: list[str] | None = None) -> "httpx2.Response":
        """The refusal as mcp's flow reads it. `scopes` are those that a person wants instead of the server's."""
        import httpx2  # it is there if there was a request; a computer without remote servers needs none

        scope = self.scope
        if scopes:
            wanted = [*scopes, *(self.scope or "").split()] if self.is_step_up else scopes
            scope = " ".join(dict.fromkeys(wanted))
        said = {"error": "insufficient_scope" if self.is_step_up else None, "scope": scope}
        said["resource_metadata"] = self.resource_metadata
        fields = ", ".join(f'{key}="{value}"' for key, value in said.items() if value)
        headers = {"www-authenticate": f"Bearer {fields}"} if fields else {}
        return httpx2.Response(self.status, headers=headers, request=request)


def challenge_in(response: "httpx2.Response") -> Challenge | None:
    """The challenge of a refused request; `None` if the response is none."""
    header = response.headers.get("www-authenticate", "")[:_MOST_CHARACTERS]
    if response.status_code == 403:
        if _field(header, "error") != "insufficient_scope":
            return None
    elif response.status_code != 401:
        return None
    version = response.request.headers.get("mcp-protocol-version")
    return Challenge(
        response.status_code,
        _field(header, "scope"),
        _field(header, "resource_metadata"),
        {"mcp-protocol-version": version} if version else {},
    )


def _field(header: str, name: str) -> str | None:
    found = re.search(_FIELD.format(name), header)
    return (found[1] or found[2] or None) if found else None
