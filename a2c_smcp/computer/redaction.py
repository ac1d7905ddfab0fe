"""Takes secrets out of what is said about servers: their errors, their stderr, the name of a missing file. Pure.

It learns each secret when that becomes known, and never forgets it: a server that is being stopped may still quote an
old value. The text of the config takes the place of a secret, so that its author knows which value is meant. Tool
results, windows and documents are content, and are not changed here. What looks like a secret of somebody else is
hidden as well: `utils/secret_shapes.py` knows how that looks.

What leaves the computer shows no inner addresses and no userinfo of a URL either (`discreet`). The log shows them.
"""

import copy
import ipaddress
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast

from a2c_smcp.computer.mcp_clients.masking import OAUTH_SECRETS
from a2c_smcp.computer.utils.placeholder import PLACEHOLDER, holds_placeholder
from a2c_smcp.errors import BadRequestError, InvalidDPEURIError, NotFoundError, SMCPError, ToolConfirmationError
from a2c_smcp.smcp import GetComputerConfigRet, ServerInfo
from a2c_smcp.utils.secret_shapes import MASK, NAMED_LIKE_A_SECRET, hidden, without_userinfo
from a2c_smcp.utils.text import cut

__all__ = ["SHORTEST_LITERAL", "SHORTEST_VALUE", "Redaction", "discreet", "discreet_config", "discreet_error"]

#: Shorter values of inputs are not redacted: they may stand in any text by chance.
SHORTEST_VALUE: Final = 4
#: Shorter values in `env` and `headers` that are not placeholders are redacted only if their key names a secret.
SHORTEST_LITERAL: Final = 8

_SCHEME: Final = re.compile(r"(?:apikey|basic|bearer|digest|token)\s+(\S+)", re.IGNORECASE)
#: Such values are not secrets, as in `"disabled": "${input:off}"`.
_SWITCHES: Final = frozenset({"true", "false", "null", "none"})
#: How many characters of a text are looked at. Every text that is shown is shorter than this.
_LOOKED_AT: Final = 16 * 1024

#: An address, with or without brackets, with or without a port. The port may follow in words: `"127.0.0.1", port 5432`.
_ADDRESS: Final = re.compile(
    r"""(?P<name>(?<![\w.-])localhost|(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9]|\.[0-9])
      |(?P<open>\[)?(?<![\w:.])(?:[0-9a-f]{0,4}:){2,7}(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9a-f]{1,4}|(?<=::))(?:%\w+)?(?(open)\]))
      (?P<port>:[0-9]{1,5}\b|(?=['")\]]*,?\ port\ [0-9])|(?=['"],\ ?[0-9]))?""",
    re.VERBOSE | re.IGNORECASE,
)
_INNER: Final = tuple(
    map(
        ipaddress.ip_network,
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7", "fe80::/10"),
    )
)
#: The texts of these errors come from us, the caller or a person, and never from an MCP server.
_OWN_WORDS: Final = (BadRequestError, InvalidDPEURIError, NotFoundError, ToolConfirmationError)


class Redaction:
    """`redaction(text)` is the text as it may be shown; `redaction.quote(text)` is short enough for a log line."""

    def __init__(self) -> None:
        self._stand_ins: dict[str, str] = {}
        #: All secrets in one pattern, and how many they are. Rows of the record are redacted in another thread: what
        #: is learned while a pattern is made is not in that pattern, and the next use finds that out by the number.
        self._pattern: tuple[int, re.Pattern[str]] = 0, re.compile("(?!)")
        self._longest = 0

    # --- what is secret

    def learn_value(self, placeholder: str, value: Any) -> None:
        """Learn the value of a placeholder: every text in it, if it is an object or a list."""
        for text in _texts(value):
            # A key of several lines is often quoted line by line.
            for secret in (text, *(text.splitlines() if "\n" in text else ())):
                self._learn(secret.strip(), placeholder, SHORTEST_VALUE)

    def learn_config(self, raw: Any, rendered: Any) -> None:
        """Learn the secrets in a server's config, given as written and as rendered."""
        for text, written in _rendered_texts(raw, rendered):
            self._learn(text, written, SHORTEST_LITERAL)
        parameters = raw.get("server_parameters") if isinstance(raw, Mapping) else None
        for part in ("env", "headers"):
            literals = parameters.get(part) if isinstance(parameters, Mapping) else None
            for key, value in literals.items() if isinstance(literals, Mapping) else ():
                if not holds_placeholder(value):
                    self._learn_literal(str(key), str(value))
        oauth = parameters.get("oauth") if isinstance(parameters, Mapping) else None
        for key, value in oauth.items() if isinstance(oauth, Mapping) else ():
            if key in OAUTH_SECRETS and not holds_placeholder(value):
                self.learn_value(MASK, str(value))

    def _learn_literal(self, key: str, value: str) -> None:
        shortest = SHORTEST_VALUE if NAMED_LIKE_A_SECRET.search(key) else SHORTEST_LITERAL
        self._learn(value, MASK, shortest)
        if credentials := _SCHEME.fullmatch(value):
            self._learn(credentials[1], MASK, SHORTEST_VALUE)

    def _learn(self, secret: str, stand_in: str, shortest: int) -> None:
        if len(secret) >= shortest and secret.lower() not in _SWITCHES and not PLACEHOLDER.fullmatch(secret):
            self._longest = max(self._longest, len(secret))
            self._stand_ins.setdefault(secret, stand_in)

    # --- what may be shown

    def __call__(self, text: str, most: int = _LOOKED_AT) -> str:
        """The text without the secrets of this computer, and without what looks like one of somebody else. Of a very
        long text, only the beginning: about `most` characters.
        """
        return hidden(self.known(text, most))

    def known(self, text: str, most: int = _LOOKED_AT) -> str:
        """The text without the secrets of this computer alone."""
        clipped = text[:most]
        if self._stand_ins and any(secret in clipped for secret in tuple(self._stand_ins)):
            clipped = self._compiled().sub(lambda match: self._stand_ins[match[0]], clipped)
        if len(text) <= most:
            return clipped
        # The text may be cut inside a secret.
        return clipped[: max(0, len(clipped) - self._longest)] + "…"

    def quote(self, text: object) -> str:
        """The text for a log line or an error: redacted first, then cut, because half a secret would not be found."""
        return cut(self(str(text)))

    def inside(self, value: Any) -> Any:
        """A JSON value with every text in it quoted; `None` if it has more values than any error needs."""
        return _inside(value, self.quote)

    def error(self, error: SMCPError) -> SMCPError:
        """The error as an agent may read it. Without this, a server's own words might quote a value that was
        rendered into its config.
        """
        return _reworded(error, self.quote)

    def _compiled(self) -> re.Pattern[str]:
        """All secrets in one pattern, so that no replacement is taken for a secret. The longest comes first, because
        one secret may be a part of another.
        """
        count, pattern = self._pattern
        if count != len(self._stand_ins):
            secrets = [*self._stand_ins]
            secrets.sort(key=len, reverse=True)
            pattern = re.compile("|".join(map(re.escape, secrets)))
            self._pattern = len(secrets), pattern
        return pattern


def discreet(text: str) -> str:
    """The words of an MCP server as they may leave the computer: without the userinfo of URLs, without private and
    link-local addresses, and without loopback addresses that have a port.
    """
    return _ADDRESS.sub(_discreet_address, without_userinfo(text))


def discreet_error(error: SMCPError) -> SMCPError:
    """The error as it may leave the computer. The log has it unchanged."""
    if isinstance(error, _OWN_WORDS):
        return error
    return _reworded(copy.copy(error), discreet)


def discreet_config(config: GetComputerConfigRet) -> GetComputerConfigRet:
    """The answer to `client:get_config` as it may leave the computer: parts of it are a server's own words."""
    infos: dict[str, ServerInfo] = {}
    for name, info in config.get("server_info", {}).items():
        said = {key: discreet(info[key]) for key in ("reason", "title", "instructions") if key in info}
        infos[name] = cast("ServerInfo", {**info, **said})
    return {**config, "server_info": infos}


def _discreet_address(found: re.Match[str]) -> str:
    name, port = found["name"].strip("[]").lower(), found["port"]
    if name.startswith("::1:") and name[4:].isdigit():  # Node writes a port after an address without brackets
        return MASK
    if name == "localhost":
        return MASK if port is not None else found[0]
    try:
        address = ipaddress.ip_address(
            ".".join(str(int(part)) for part in name.split(".")) if ":" not in name else name
        )
    except ValueError:
        return found[0]
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    address = mapped or address
    is_inner = any(address in network for network in _INNER) or (address.is_loopback and port is not None)
    return MASK if is_inner else found[0]


def _reworded(error: SMCPError, change: Callable[[str], str]) -> SMCPError:
    error.message = change(error.message)
    error.args = (error.message,)
    error.details = {
        key: value if key == "server_name" else _inside(value, change) for key, value in error.details.items()
    }
    return error


def _inside(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every text in it changed; `None` if it has more values than any error needs."""
    seen = 0

    def changed(value: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen > 1000:  # no honest error has so many values
            raise RecursionError
        if isinstance(value, str):
            return change(value)
        if isinstance(value, Mapping):
            return {change(str(key)): changed(child) for key, child in value.items()}
        return [changed(child) for child in value] if isinstance(value, list | tuple) else value

    try:
        return changed(value)
    except RecursionError:
        return None


def _rendered_texts(raw: Any, rendered: Any) -> Iterator[tuple[str, str]]:
    """Each rendered text that came from a placeholder, with the text that was written."""
    if holds_placeholder(raw):
        for text in _texts(rendered):
            yield text, raw
    elif isinstance(raw, Mapping) and isinstance(rendered, Mapping):
        for key in raw.keys() & rendered.keys():
            yield from _rendered_texts(raw[key], rendered[key])
    elif isinstance(raw, list) and isinstance(rendered, list):
        for written, value in zip(raw, rendered, strict=False):
            yield from _rendered_texts(written, value)


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value. A number counts as the text that a longer text would show for it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        children: Iterable[Any] = value.values() if isinstance(value, Mapping) else value
        for child in children:
            yield from _texts(child)
    elif value is not None and not isinstance(value, bool):
        yield json.dumps(value, default=str)
