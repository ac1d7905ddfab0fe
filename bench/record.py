"""A call with a record, and with rules and a record, beside the same call without; and how a record of 100,000 calls is
searched.
"""

import asyncio
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from bench.process import BENCH
from bench.rules import rules

WITHOUT, WITH, BOTH = "without a record", "with a record", "with a record and 10 rules"
CPU = "CPU of a call, µs"
THREAD = "of it the record's thread, µs"
NOTHING_FOUND = "search, nothing found, ms"
_SERVER = {
    "name": "echo",
    "type": "stdio",
    "default_tool_meta": {"auto_apply": True},
    "server_parameters": {"command": sys.executable, "args": [str(BENCH / "echo_mcp.py")]},
}


def calls(scale: float) -> dict[str, dict[str, Any]]:
    """Rounds of calls that take turns, 16 in flight. CPU is that of the computer, with the writer's thread.

    The calls are of a person here, so their results are encoded for the record.
    """
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_calls(Path(folder), max(2, int(12 * scale)), max(20, int(1000 * scale))))


async def _calls(folder: Path, rounds: int, count: int) -> dict[str, dict[str, Any]]:
    from a2c_smcp.computer import Computer
    from a2c_smcp.record.writer import RecordWriter

    record, other = RecordWriter(folder / "record.sqlite"), RecordWriter(folder / "other.sqlite")
    took: dict[str, list[tuple[float, float, float]]] = {WITHOUT: [], WITH: [], BOTH: []}
    async with (
        Computer("plain", mcp_servers=[_SERVER]) as plain,
        Computer("recorded", mcp_servers=[_SERVER], record=record) as recorded,
        Computer("ruled", mcp_servers=[_SERVER], record=other) as ruled,
    ):
        ruled.decisions.rules.use_config(rules(10))
        for computer in (plain, recorded, ruled):
            await _round(computer, count)
        for _ in range(rounds):
            for name, computer in ((WITHOUT, plain), (WITH, recorded), (BOTH, ruled)):
                took[name].append(await _round(computer, count))
    return {
        name: {
            CPU: statistics.median(cpu for cpu, _, _ in each) / count * 1e6,
            THREAD: statistics.median(thread for _, thread, _ in each) / count * 1e6,
            "time of a call, µs": statistics.median(wall for *_, wall in each) / count * 1e6,
        }
        for name, each in took.items()
    }


def _thread_seconds() -> float:
    """CPU of the threads of all records. Only one of them works at a time here."""
    ids = [thread.native_id for thread in threading.enumerate() if thread.name == "a2c-record"]
    spent = [int(Path(f"/proc/self/task/{each}/schedstat").read_text().split()[0]) for each in ids]
    return sum(spent) / 1e9


async def _round(computer: Any, count: int) -> tuple[float, float, float]:
    cpu, thread, wall = time.process_time(), _thread_seconds(), time.perf_counter()

    async def some(first: int) -> None:
        for number in range(first, count, 16):
            await computer.execute_tool(f"{number:032x}", "echo", {"text": "x" * 100}, 30)

    await asyncio.gather(*map(some, range(16)))
    took = time.perf_counter() - wall
    if computer.record_file is not None:
        await asyncio.sleep(0.15)  # the writer's thread is done with this round
    return time.process_time() - cpu, _thread_seconds() - thread, took


def search(rows: int) -> dict[str, dict[str, Any]]:
    """A record of so many calls: its size, and the slowest of ten searches for words that no row has."""
    from a2c_smcp.record.queries import RecordQuery
    from a2c_smcp.record.reading import reading
    from a2c_smcp.record.rows import RecordRow, body_text
    from a2c_smcp.record.writer import RecordWriter

    def row(at: int, number: int) -> RecordRow:
        arguments = {"path": f"/home/ada/notes/2026/{number}.md", "text": f"a sentence about {number % 997}"}
        said = {"req_id": f"{number:032x}", "arguments": arguments, "timeout": 60, "seconds": 0.012345, "bytes": 1234}
        names = ("office-1", f"planner-{number % 9}", "filesystem", "write_text_file", "succeeded", "config")
        return RecordRow(at, "call", f"0a1b2c3d-{number}", *names, digest=bytes(range(32)), body=body_text(said))

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "record.sqlite"
        writer = RecordWriter(file)
        for number in range(rows):
            writer.add(row, number)
            if number % 5000 == 0:
                time.sleep(0.1)
        writer.close(120)
        took = {}
        with reading(file) as reader:
            for name, words in (
                (NOTHING_FOUND, ("nobody wrote this",)),
                ("search beyond ASCII, nothing found, ms", ("Äpfel",)),
                ("search, two words, ms", ('about 7"', "planner-3")),
            ):
                times = []
                for _ in range(10):
                    began = time.perf_counter()
                    reader.newest(RecordQuery(words=words), 100)
                    times.append((time.perf_counter() - began) * 1000)
                took[name] = statistics.median(times)
            began = time.perf_counter()
            report = reader.check()
            took["verify, ms"] = (time.perf_counter() - began) * 1000
        assert report.problems == ()
        assert report.rows == rows + 1
        return {"ours": {"rows": rows, "MB": file.stat().st_size / 1e6, **took}}
