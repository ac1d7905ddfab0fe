"""Which server had which tool in earlier runs: the error of a call can then name the server that is down.

Only names are kept. If the file cannot be read or written, nothing else fails.
"""

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from a2c_smcp.types import SERVER_NAME, TOOL_NAME
from a2c_smcp.utils.replacing import replace_file
from a2c_smcp.utils.state_folder import make_private_folder

__all__ = ["RememberedTools"]

logger = logging.getLogger(__name__)


class RememberedTools:
    """The servers of the tools that were shown last. Without a `file` they are remembered for this run only."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._servers: dict[TOOL_NAME, SERVER_NAME] = {}
        if file is not None:
            with suppress(OSError, ValueError, RecursionError):
                self._servers = _checked(json.loads(file.read_text("utf-8")))
        self._saved = self._servers

    def server_of(self, tool: TOOL_NAME) -> SERVER_NAME | None:
        return self._servers.get(tool)

    def note(self, shown: Mapping[TOOL_NAME, SERVER_NAME]) -> None:
        """These tools are shown now. The tools of other servers are kept: those servers may be down."""
        now = set(shown.values())
        kept = {tool: server for tool, server in self._servers.items() if server not in now}
        self._servers = _checked({**kept, **shown})

    def save(self) -> None:
        """Write them to the file for the next run. Blocking."""
        names = self._servers
        if self._file is None or names == self._saved:
            return
        try:
            make_private_folder(self._file.parent)
            replace_file(self._file, json.dumps(names).encode())
            self._saved = names
        except OSError as error:
            logger.warning("the names of tools are not kept for the next run: %s", error)


def _checked(found: object) -> dict[TOOL_NAME, SERVER_NAME]:
    if not isinstance(found, dict):
        return {}
    usable = [
        (tool, server)
        for tool, server in found.items()
        if isinstance(server, str) and max(len(tool), len(server)) <= 256
    ]
    return dict(usable[-2000:])
