"""`a2c doctor`: looks at this installation, the config files and the server, and says what to do. Changes
nothing, starts nothing, asks nothing.
"""

import asyncio
import importlib.metadata
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from a2c_smcp import __version__
from a2c_smcp.computer.cli.checks import Finding, examine_config
from a2c_smcp.computer.config_files import read_config_files
from a2c_smcp.computer.mcp_clients.masking import masked_url
from a2c_smcp.errors import BadRequestError, ConnectionLostError, SMCPError, UnauthorizedError
from a2c_smcp.utils.distribution import DISTRIBUTION
from a2c_smcp.utils.link import LinkOptions, OfficeLink
from a2c_smcp.utils.screen import say
from a2c_smcp.utils.text import printable

__all__ = ["Finding", "examine"]

_OLDEST_PYTHON: Final = (3, 11)
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;\s*(.*))?")
_BOUND: Final = re.compile(r"(>=|<)\s*([0-9.]+)")


def examine(files: Sequence[Path], link: LinkOptions, more: Iterable[tuple[str, str]] = ()) -> int:
    """Print every finding, and return the exit status: 1 if anything is wrong. `more` has what others have looked at,
    and their advice.
    """
    findings = []
    others = (Finding(printable(what), printable(advice)) for what, advice in more)
    for finding in chain(_findings(files, link), others):
        say(str(finding))
        findings.append(finding)
    wrong = sum(bool(finding.advice) for finding in findings)
    say(f"{wrong} of {len(findings)} need attention" if wrong else f"all {len(findings)} are well")
    return 1 if wrong else 0


def _findings(files: Sequence[Path], link: LinkOptions) -> Iterator[Finding]:
    yield _python()
    yield from _dependencies()
    if files:
        yield from examine_config(read_config_files(*files))
    yield asyncio.run(_server(link))


# --- this installation


def _python() -> Finding:
    what = f"Python {platform.python_version()}, {DISTRIBUTION} {__version__}"
    wanted = ".".join(map(str, _OLDEST_PYTHON))
    return Finding(what, "" if sys.version_info >= _OLDEST_PYTHON else f"install Python {wanted} or newer")


def _dependencies() -> Iterator[Finding]:
    try:
        requirements = importlib.metadata.requires(DISTRIBUTION) or ()
    except importlib.metadata.PackageNotFoundError:  # a checkout that was installed under another name, or not at all
        yield _dependency(DISTRIBUTION, "")
        return
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        assert match is not None
        name, bounds, marker = match[1], match[2].strip(), match[3]
        if not marker:  # the others are extras
            yield _dependency(name, bounds)


def _dependency(name: str, bounds: str) -> Finding:
    advice = f"run: pip install '{name}{bounds}'"
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


async def _server(link: LinkOptions) -> Finding:
    url = masked_url(link.url)
    try:
        async with OfficeLink(link, {}) as connected:
            way = connected.way
    except UnauthorizedError:
        return Finding(
            f"{url} answers, and refuses the key" if link.api_key else f"{url} answers, and wants a key",
            "give the right one with --api-key-file or A2C_API_KEY",
        )
    except ConnectionLostError as error:
        if error.advice:
            return Finding(printable(error.problem), printable(error.advice))
        why = printable(str(error.details.get("why", error.message)))
        return Finding(f"{url} does not answer: {why}", "start it with `a2c server`, or name another with --url")
    except BadRequestError as error:
        return Finding(printable(error.message), "correct --proxy, its variable, or --ca")
    except SMCPError as error:
        return Finding(f"{url} answers, and refuses: {printable(error.message)}", "ask its administrator")
    return Finding(f"{url} answers, and accepts {'the key' if link.api_key else 'without a key'}; the way: {way}")
