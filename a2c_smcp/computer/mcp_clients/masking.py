"""Configs and inputs as an agent may see them: in full, placeholders in place, secrets masked. Resolves nothing."""

import re
from collections.abc import Iterable
from typing import Any, Final, cast
from urllib.parse import urlsplit

from a2c_smcp.computer.mcp_clients.model import (
    MCPServerInput,
    parse_unrendered,
    wire_input,
    wire_server,
)
from a2c_smcp.computer.utils.placeholder import PLACEHOLDER, holds_placeholder
from a2c_smcp.smcp import GetComputerConfigRet
from a2c_smcp.utils.secret_shapes import MASK

__all__ = ["OAUTH_SECRETS", "config_view", "input_view", "masked_url", "server_view"]

#: The keys of `oauth` that hold secrets.
OAUTH_SECRETS: Final = frozenset({"client_secret", "private_key", "assertion", "id_token", "exchange_client_secret"})
_PROTECTED: Final = re.compile("\ue000(\\d+)\ue000")


def config_view(servers: Iterable[dict[str, Any]], inputs: Iterable[MCPServerInput]) -> GetComputerConfigRet:
    """The answer to `client:get_config`, from configs as written."""
    shown = [server_view(raw) for raw in servers]
    return cast(
        "GetComputerConfigRet",
        {
            "inputs": [input_view(definition) for definition in inputs],
            "servers": {server["name"]: server for server in shown},
        },
    )


def server_view(raw: dict[str, Any]) -> dict[str, Any]:
    """A config as written, defaults filled in, secrets masked; `InvalidConfigError` if it could never be used."""
    shown = wire_server(parse_unrendered(raw))
    parameters = shown["server_parameters"]
    if isinstance(parameters, dict):
        for key in ("env", "headers"):
            if isinstance(parameters.get(key), dict):
                parameters[key] = {name: _masked(value) for name, value in parameters[key].items()}
        if "url" in parameters:
            parameters["url"] = masked_url(parameters["url"])
        if isinstance(oauth := parameters.get("oauth"), dict):
            for key in OAUTH_SECRETS & oauth.keys():
                oauth[key] = _masked(oauth[key])
    return shown


def input_view(definition: MCPServerInput) -> dict[str, Any]:
    """The definition of an input; never its value, nor the default of a password."""
    shown = wire_input(definition)
    if definition.is_password and definition.fallback is not None:
        shown["default"] = MASK
    return shown


def _masked(value: str) -> str:
    return value if holds_placeholder(value) else MASK


def masked_url(url: str) -> str:
    """The URL with its userinfo and query masked, but not the placeholders in them."""
    placeholders: list[str] = []

    def protect(match: re.Match[str]) -> str:
        # The colons and braces of a placeholder would be taken for those of the URL.
        placeholders.append(match[0])
        return f"\ue000{len(placeholders) - 1}\ue000"

    def masked(text: str, separator: str) -> str:
        if not _PROTECTED.search(text):
            return MASK
        return separator.join(part if _PROTECTED.search(part) else MASK for part in text.split(separator))

    try:
        parts = urlsplit(PLACEHOLDER.sub(protect, url))
    except ValueError:
        return MASK
    userinfo, at, host = parts.netloc.rpartition("@")
    if at:
        parts = parts._replace(netloc=f"{masked(userinfo, ':')}@{host}")
    if parts.query:
        parts = parts._replace(query=masked(parts.query, "&"))
    shown = parts.geturl()
    return _PROTECTED.sub(lambda match: placeholders[int(match[1])], shown)
