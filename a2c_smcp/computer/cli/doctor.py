"""`a2c doctor`: checks this installation, the config files and the server, and says what to do.

It changes nothing, starts nothing and asks nobody. To look into an office, it joins as an agent for a moment.
"""

import asyncio
import importlib.metadata
import json
import os
import platform
import re
import secrets
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from uuid import uuid4

from a2c_smcp import __version__
from a2c_smcp.computer.cli.checks import Finding, examine_config
from a2c_smcp.computer.cli.web_answers import describe_answers, web_answers
from a2c_smcp.computer.config.files import read_config_files
from a2c_smcp.computer.mcp_clients.masking import masked_url
from a2c_smcp.errors import (
    BadRequestError,
    ConnectionLostError,
    ForbiddenError,
    NoTlsError,
    RoomFullError,
    SMCPError,
    UnauthorizedError,
)
from a2c_smcp.link.interface import LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.link.proxies import find_proxy
from a2c_smcp.smcp import LIST_ROOM_EVENT
from a2c_smcp.terminal.exits import FAILED
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.distribution import DISTRIBUTION, install_command
from a2c_smcp.utils.system import lacking
from a2c_smcp.utils.text import printable

__all__ = ["Examination", "Finding", "examine"]

_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;\s*(.*))?")
_BOUND: Final = re.compile(r"(>=|<)\s*([0-9.]+)")


@dataclass(frozen=True, slots=True)
class Examination:
    """What to check."""

    link: LinkOptions
    files: Sequence[Path] = ()
    """Config files and files with inputs."""
    office: str | None = None
    more: Sequence[tuple[str, str]] = ()
    """Findings of other checks, each with its advice."""
    ask_registries: bool = False
    """Whether npm and PyPI are asked for the packages that servers' commands download."""


def examine(wanted: Examination, *, as_json: bool = False) -> int:
    """Print every finding, and return the exit status: 1 if anything is wrong."""
    findings = []
    for about, finding in _findings(wanted):
        findings.append({"about": about, "ok": not finding.advice, "what": finding.what, "advice": finding.advice})
        if not as_json:
            say(str(finding))
    wrong = sum(not finding["ok"] for finding in findings)
    if as_json:
        say(json.dumps({"ok": not wrong, "findings": findings}))
    else:
        say(f"{wrong} of {len(findings)} checks found a problem" if wrong else f"all {len(findings)} checks are fine")
    return FAILED if wrong else 0


def _findings(wanted: Examination) -> Iterator[tuple[str, Finding]]:
    """Each finding with its subject, as one word for programs."""
    yield "python", _python()
    yield from (("system", Finding(part.problem)) for part in lacking())
    yield from (("package", finding) for finding in _dependencies() if finding.advice)
    if wanted.files:
        yield from (("config", finding) for finding in _of_config(wanted))
    yield from asyncio.run(_server(wanted.link, wanted.office))
    yield from (("nats", Finding(printable(what), printable(advice))) for what, advice in wanted.more)


def _of_config(wanted: Examination) -> Iterator[Finding]:
    return examine_config(read_config_files(*wanted.files), ask_registries=wanted.ask_registries)


# --- this installation


def _python() -> Finding:
    what = f"Python {platform.python_version()}, {DISTRIBUTION} {__version__}"
    return Finding(what, "" if sys.version_info >= (3, 11) else "install Python 3.11 or newer")


def _dependencies() -> Iterator[Finding]:
    try:
        requirements = importlib.metadata.requires(DISTRIBUTION) or ()
    except importlib.metadata.PackageNotFoundError:  # a checkout that is not installed, or under another name
        yield _dependency(DISTRIBUTION, "")
        return
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        assert match is not None
        name, bounds, marker = match[1], match[2].strip(), match[3]
        if not marker:  # those with a marker are extras
            yield _dependency(name, bounds)


def _dependency(name: str, bounds: str) -> Finding:
    command = install_command() if name == DISTRIBUTION else f"pip install '{name}{bounds}'"
    advice = f"run: {command}"
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(f"{name} is not installed", advice)
    return Finding(f"{name} {version}", "" if _within(version, bounds) else f"{bounds} is needed; {advice}")


def _within(version: str, bounds: str) -> bool:
    found = _release(version)
    return all(
        found >= _release(bound) if kind == ">=" else found < _release(bound) for kind, bound in _BOUND.findall(bounds)
    )


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", re.match(r"[0-9.]*", version)[0]))  # type: ignore[index]


# --- the server


async def _server(link: LinkOptions, office: str | None) -> list[tuple[str, Finding]]:
    url = masked_url(link.url)
    try:
        async with OfficeLink(replace(link, office=office), {}) as connected:
            accepts = f"{url} answers, and {'accepts the key' if link.api_key else 'needs no key'}"
            found = [("server", Finding(f"{accepts}; connected by {connected.way}"))]
            if office is not None:
                found.append(("office", await _office(connected, office)))
            return found
    except SMCPError as error:
        return [("server", await _refused(link, url, error))]


async def _refused(link: LinkOptions, url: str, error: SMCPError) -> Finding:
    match error:
        case UnauthorizedError():
            return Finding(
                f"{url} answers, but refuses the key" if link.api_key else f"{url} answers, but wants a key",
                "give the right one with --api-key-file or A2C_API_KEY",
            )
        case ConnectionLostError() if error.advice and not isinstance(error, NoTlsError):
            return Finding(printable(error.problem), printable(error.advice))
        case ConnectionLostError():
            if (said := await _instead(link, url)) is not None:
                return said
            why = printable(str(error.details.get("why", error.message)))
            return Finding(f"{url} does not answer: {why}", "start it with `a2c server`, or name another with --url")
        case BadRequestError():
            return Finding(printable(error.message), "correct --proxy, its variable, or --ca")
        case _:
            return Finding(f"{url} answers, but refuses: {printable(error.message)}", "ask its administrator")


async def _instead(link: LinkOptions, url: str) -> Finding | None:
    """What answers there instead of a server of ours. Not asked through a proxy, which has answers of its own."""
    if find_proxy(link.url, link.proxy, os.environ) is not None:
        return None
    found = describe_answers(url, *await web_answers(link.url, f"/{link.socketio_path}/?EIO=4&transport=polling"))
    return None if found is None else Finding(*found)


async def _office(link: OfficeLink, office: str) -> Finding:
    """Join as an agent, look who is there, and leave. The computers of the office hear of both."""
    where, name = f"office {printable(office)!r}", f"a2c-doctor-{secrets.token_hex(4)}"
    try:
        await link.join(Membership("agent", name, office))
        request = {"agent": name, "req_id": uuid4().hex, "office_id": office}
        answer = await link.request(LIST_ROOM_EVENT, request, link.options.membership_timeout)
        await link.leave()
    except RoomFullError as error:
        return Finding(f"{where} has an agent already, so nobody else can look into it: {printable(error.message)}")
    except ForbiddenError as error:
        return Finding(
            f"{where} does not take an agent with this key: {printable(error.message)}",
            "use a key for this office and the role agent; this key may still be right for a computer",
        )
    except SMCPError as error:
        return Finding(f"{where} cannot be joined: {printable(error.message)}", "ask the server's administrator")
    return Finding(f"{where} can be joined; its computers: {', '.join(_computers(answer)) or 'none'}")


def _computers(answer: tuple[object, ...]) -> list[str]:
    """The names of the computers. Other servers may answer anything."""
    match answer:
        case ({"sessions": [*sessions]},):
            return sorted(printable(name) for each in sessions for name in _named(each))
    return []


def _named(session: object) -> list[str]:
    match session:
        case {"role": "computer", "name": str() as name}:
            return [name]
    return []
