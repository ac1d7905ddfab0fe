"""One operator, all processes: asks each of them, waits for a bounded time, and makes one answer of theirs."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Protocol

import msgspec

from a2c_smcp.errors import BadRequestError, InternalError, NotFoundError, SMCPError, error_from_payload
from a2c_smcp.server.admin.here import ProcessAdmin
from a2c_smcp.server.admin.rows import MOST_ROWS, merge_keys, merge_members, merge_offices, merge_top

__all__ = ["ClusterAdmin", "OtherProcesses"]

#: Seconds that another process has for its answer.
_SECONDS: Final = 3.0
#: Members that the page shows.
_ON_THE_PAGE: Final = 100


class OtherProcesses(Protocol):
    """The way to the other processes of a cluster."""

    def names(self) -> Collection[str]: ...
    async def give(self, process: str, order: bytes, seconds: float) -> bytes: ...


class _NoOthers:
    def names(self) -> Collection[str]:
        return ()

    async def give(self, process: str, order: bytes, seconds: float) -> bytes:
        raise InternalError("this server process is alone")


class _Order(msgspec.Struct):
    operation: str
    given: dict[str, Any]


class ClusterAdmin:
    """The operations on all processes. Each answer has `silent`: the processes that did not answer, and why."""

    def __init__(self, here: ProcessAdmin, others: OtherProcesses | None = None, seconds: float = _SECONDS) -> None:
        self._here = here
        self._others = others or _NoOthers()
        self._seconds = seconds
        self._merges: Mapping[str, Callable[[list[Any], Mapping[str, Any]], dict[str, Any]]] = {
            "top": lambda answers, _: {**merge_top(answers)},
            "processes": lambda answers, _: {"processes": [row for rows in answers for row in rows]},
            "offices": lambda answers, given: {**merge_offices(answers, given.get("limit", MOST_ROWS))},
            "members": lambda answers, given: {**merge_members(answers, given.get("limit", MOST_ROWS))},
            "keys": lambda answers, _: {"keys": merge_keys(answers)},
            "reload": lambda answers, _: {"reloaded": {host: said for each in answers for host, said in each.items()}},
        }

    async def obey(self, order: bytes) -> bytes:
        """Carry out the order of another process, for itself alone."""
        try:
            wanted = msgspec.json.decode(order, type=_Order)
            return msgspec.json.encode({"answer": await self._here.do(wanted.operation, wanted.given)})
        except msgspec.DecodeError:
            return msgspec.json.encode(BadRequestError("not an order").payload())
        except SMCPError as error:
            return msgspec.json.encode(error.payload())

    async def ask(self, operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """One answer of all processes to a question, or to `reload`."""
        if (merge := self._merges.get(operation)) is None:
            raise BadRequestError(f"there is no operation {operation[:50]!r}")
        answers, silent = await self._everywhere(operation, given)
        return {**merge(answers, given), "silent": silent}

    async def overview(self) -> dict[str, Any]:
        """What the operators' page shows: the top, the first members, and the keys."""
        top, members, keys = await asyncio.gather(
            self.ask("top", {}), self.ask("members", {"limit": _ON_THE_PAGE}), self.ask("keys", {})
        )
        return {**keys, **members, **top}

    async def kick(self, target: str) -> dict[str, Any]:
        """End the one session that a text names. Raises `NotFoundError` if there is none, `BadRequestError` if there
        are several.
        """
        pages, silent = await self._everywhere("find", {"target": target})
        found = merge_members(pages, MOST_ROWS)["members"]
        if not found:
            unknown = f"; {len(silent)} server processes did not answer" if silent else ""
            raise NotFoundError(f"nobody here is {target[:200]!r}{unknown}")
        if len(found) > 1:
            sessions = ", ".join(f"{row['session']} ({row['role']})" for row in found[:10])
            raise BadRequestError(f"{len(found)} sessions have this name; name one of them: {sessions}")
        [row] = found
        _, silent = await self._everywhere("kick", {"session": row["session"]}, only=row["process"])
        return {"kicked": row, "silent": silent}

    async def revoke(self, key: str) -> dict[str, Any]:
        """Revoke a key, by its name or fingerprint, in all processes."""
        answers, silent = await self._everywhere("revoke", {"key": key})
        found = sorted({fingerprint for each in answers for fingerprint in each})
        if not found and not silent:
            raise NotFoundError(f"no key has the name or the fingerprint {key[:200]!r}")
        return {"revoked": found, "processes": len(answers), "silent": silent}

    async def drain(self, process: str | None) -> dict[str, Any]:
        """End one process: this one, or the one of this name. Never several at once."""
        answers, silent = await self._everywhere(
            "drain", {"process": process}, only=self._here.process if process is None else None
        )
        if not any(answers):
            raise NotFoundError(f"no server process has the name {(process or '')[:200]!r}")
        return {"draining": process or self._here.process, "silent": silent}

    async def _everywhere(
        self, operation: str, given: Mapping[str, Any], only: str | None = None
    ) -> tuple[list[Any], list[dict[str, str]]]:
        """The answers of the processes, and those that gave none. If it fails here, it raises."""
        here = self._here.process
        others = sorted(name for name in self._others.names() if name != here and only in (None, name))
        order = msgspec.json.encode(_Order(operation, dict(given)))
        asked = [asyncio.create_task(self._give(name, order)) for name in others]
        try:
            own = [await self._here.do(operation, given)] if only in (None, here) else []
            got = await asyncio.gather(*asked)
        finally:
            for task in asked:
                task.cancel()
        answers = [answer["answer"] for answer in got if "answer" in answer]
        silent = [
            {"process": name, "reason": str(answer["error"])}
            for name, answer in zip(others, got, strict=True)
            if "answer" not in answer
        ]
        return [*own, *answers], silent

    async def _give(self, name: str, order: bytes) -> dict[str, Any]:
        try:
            answer = msgspec.json.decode(await self._others.give(name, order, self._seconds), type=dict[str, Any])
        except (SMCPError, msgspec.DecodeError) as error:
            return {"error": str(error)}
        if "answer" in answer:
            return {"answer": answer["answer"]}
        return {"error": str(error_from_payload(answer) or "it gave no answer")}
