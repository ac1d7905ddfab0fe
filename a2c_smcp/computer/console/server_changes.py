"""Adds, edits and removes servers for a person at the page: on the running Computer and in its config file.

A server is started first, and then written to the file. If either fails, everything stays as it was.
"""

import json
import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import anyio
import anyio.to_thread

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.entry_secrets import masked_entry, unmasked_entry
from a2c_smcp.computer.config.files import with_tool_prefix
from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.computer.config.splice import meaning
from a2c_smcp.computer.config.writer import ConfigWriter, FileChange, StoredEntry
from a2c_smcp.computer.console.pasted import Pasted, read_paste
from a2c_smcp.computer.decisions.shown_text import visible
from a2c_smcp.computer.mcp_clients.masking import masked_url
from a2c_smcp.computer.mcp_clients.model import MCPServerInput
from a2c_smcp.errors import BadRequestError, NotFoundError, SMCPError
from a2c_smcp.utils.secret_shapes import MASK

__all__ = ["ServerChanges"]

logger = logging.getLogger(__name__)


class ServerChanges:
    """What the page does about servers. A change that fails raises an `SMCPError` with the reason."""

    def __init__(self, computer: Computer, config: ConfigWriter) -> None:
        self._computer = computer
        self._config = config

    # --- before anything is done

    def check_paste(self, text: str, *, until_stop: bool) -> dict[str, Any]:
        """What adding this paste would do, and all that is wrong with it."""
        pasted = self._read(text)
        problems = list(pasted.problems)
        if not problems and not until_stop and self._config.home_file is not None:
            problems = _refusal(lambda: self._save(pasted))
        return {
            "servers": [
                {
                    "name": visible(name),
                    "replaces": self._computer.server_config(name) is not None,
                    "runs": _runs(meaning(name, entry)),
                }
                for name, entry in pasted.entries.items()
            ],
            "inputs": [input_id for input_id in pasted.inputs if input_id not in self._computer.inputs.definitions],
            "problems": problems,
            "warnings": [*pasted.warnings, *_unasked(pasted), *self._clashes(pasted)],
        }

    def check_entry(self, name: str, text: str) -> dict[str, Any]:
        """The same for an entry that is being edited."""
        stored = self._stored(name)
        problems = _refusal(lambda: meaning(name, unmasked_entry(text, stored.text), _file(stored)))
        runs = "" if problems else _runs(meaning(name, text, _file(stored)))
        saved = {"name": visible(name), "replaces": True, "runs": runs}
        return {"servers": [saved], "inputs": [], "problems": problems, "warnings": []}

    def entry(self, name: str) -> dict[str, Any]:
        """The entry of a server for editing, without its secrets."""
        stored = self._stored(name)
        return {"text": masked_entry(stored.text), "digest": stored.digest, "file": _file(stored) or None}

    # --- doing it

    async def add(self, text: str, *, until_stop: bool) -> list[str]:
        """Add the pasted servers, or replace those of the same names. Returns the names. With `until_stop` no file is
        changed.
        """
        pasted = self._read(text)
        if pasted.problems:
            raise BadRequestError("; ".join(pasted.problems))
        definitions = [definition for definition, _ in self._new_inputs(pasted).values()]
        if until_stop:
            configs = [self._run_only(name, entry) for name, entry in pasted.entries.items()]
            await self._apply(configs, definitions, None)
        else:
            change = self._save(pasted)
            await self._apply([change.server(name) for name in pasted.entries], definitions, change)
        return list(pasted.entries)

    async def edit(self, name: str, text: str, digest: str) -> None:
        """Save an edited entry. `digest` is that of the entry that was shown."""
        stored = self._stored(name)
        if stored.digest != digest:
            raise BadRequestError(
                f"the entry of {name!r} has changed meanwhile; copy what you typed, and open it again"
            )
        entry = unmasked_entry(text, stored.text)
        if _file(stored):
            change = self._config.save({name: entry}, {})
            await self._apply([change.server(name)], (), change)
        else:
            await self._apply([meaning(name, entry)], (), None)

    async def remove(self, name: str, *, sign_out: bool = False) -> None:
        """Remove a server from its file, then stop it and forget it; with `sign_out`, the sign-in at it first."""
        if self._config.find(name) is None:
            await self._computer.remove_server(name, sign_out=sign_out)
            return
        change = self._config.remove(name)
        with anyio.CancelScope(shield=True):  # half of it would be undone by the next start
            if sign_out:  # while the Computer still knows the server: its file may be followed
                await self._computer.sign_out(name)
            await self._write(change)
            with suppress(NotFoundError):  # where the file is followed, that may have removed it already
                await self._computer.remove_server(name)

    async def _apply(
        self, configs: Sequence[dict[str, Any]], definitions: Sequence[MCPServerInput], change: FileChange | None
    ) -> None:
        async with AsyncExitStack() as undo:
            for definition in definitions:
                self._computer.inputs.add(definition)
                undo.callback(self._computer.inputs.remove, definition.id)
            for raw in configs:
                before = self._computer.server_config(raw["name"])
                await self._computer.add_or_update_server(raw)
                undo.push_async_callback(self._put_back, raw["name"], before)
            if change is not None:
                await self._write(change)
            undo.pop_all()

    async def _write(self, change: FileChange) -> None:
        await anyio.to_thread.run_sync(self._config.write, change)
        self._config.on_written(change.files)

    async def _put_back(self, name: str, before: dict[str, Any] | None) -> None:
        with anyio.move_on_after(60.0, shield=True):
            try:
                if before is None:
                    await self._computer.remove_server(name)
                else:
                    await self._computer.add_or_update_server(before)
            except SMCPError as error:
                logger.error("MCP server %s could not be put back as it was: %s", name, error)

    # --- what there is

    def _read(self, text: str) -> Pasted:
        return read_paste(text, self._computer.inputs.definitions)

    def _stored(self, name: str) -> StoredEntry:
        """The entry in a file; if no file has it, the config of the Computer."""
        if (stored := self._config.find(name)) is not None:
            return stored
        if (raw := self._computer.server_config(name)) is None:
            raise NotFoundError(f"there is no server {name!r}")
        return StoredEntry(None, json.dumps(raw, indent=2, ensure_ascii=False))

    def _save(self, pasted: Pasted) -> FileChange:
        return self._config.save(pasted.entries, {key: text for key, (_, text) in self._new_inputs(pasted).items()})

    def _new_inputs(self, pasted: Pasted) -> Mapping[str, tuple[MCPServerInput, str]]:
        known = self._computer.inputs.definitions
        for input_id, (definition, _) in pasted.inputs.items():
            if known.get(input_id, definition) != definition:
                raise BadRequestError(f"another input has the id {input_id!r}; give this one another id")
        return {input_id: found for input_id, found in pasted.inputs.items() if input_id not in known}

    def _run_only(self, name: str, entry: str) -> dict[str, Any]:
        raw = meaning(name, entry)
        return with_tool_prefix(raw) if self._config.prefix_tools else raw

    def _clashes(self, pasted: Pasted) -> list[str]:
        """Aliases that are names of other servers' tools. The names of the new tools are known only when they start."""
        servers = self._computer.tool_servers
        return [
            f"server {name!r}: {servers[alias]!r} already has a tool {alias!r}"
            for name, entry in pasted.entries.items()
            for alias in _aliases(meaning(name, entry))
            if servers.get(alias, name) != name
        ]


def _file(stored: StoredEntry) -> str:
    return "" if stored.path is None else str(stored.path)


def _runs(raw: dict[str, Any]) -> str:
    """The command that a server will run, or its URL, with nothing hidden: a paste comes from strangers."""
    parameters = raw["server_parameters"]
    if not isinstance(parameters, dict):
        return visible(str(parameters))  # an input stands for all parameters
    if "url" in parameters:
        return visible(masked_url(str(parameters["url"])))
    given, variables = parameters.get("args") or [], parameters.get("env")
    # A variable such as LD_PRELOAD or NODE_OPTIONS can run another program. Its value may be a secret.
    names = [f"{shlex.quote(name)}={MASK} " for name in variables] if isinstance(variables, dict) else []
    command = shlex.join([parameters["command"], *(given if isinstance(given, list) else [str(given)])])
    return visible("".join(names) + command)


def _unasked(pasted: Pasted) -> list[str]:
    """A warning for each server whose tools would run without a question: it is easily overlooked in a paste."""
    metas = {name: meaning(name, entry) for name, entry in pasted.entries.items()}
    return [
        f"server {name!r}: its entry lets tools run without asking you (auto_apply)"
        for name, raw in metas.items()
        if any(_applies_itself(meta) for meta in (raw.get("default_tool_meta"), *_metas(raw)))
    ]


def _metas(raw: dict[str, Any]) -> list[Any]:
    metas = raw.get("tool_meta")
    return list(metas.values()) if isinstance(metas, dict) else []


def _applies_itself(meta: Any) -> bool:
    return isinstance(meta, dict) and bool(meta.get("auto_apply"))


def _aliases(raw: dict[str, Any]) -> list[str]:
    found = [meta.get("alias") for meta in _metas(raw) if isinstance(meta, dict)]
    return [alias for alias in found if isinstance(alias, str)]


def _refusal(attempt: Callable[[], object]) -> list[str]:
    """The problems of an attempt, one text each; empty if it succeeds."""
    try:
        attempt()
    except InvalidConfigError as error:
        return [str(problem) for problem in error.problems]
    except BadRequestError as error:
        return [error.message]
    return []
