"""Our reading of documents, through the worker processes that a server has.

Reads lines of JSON, `{"path": …}`, and answers each with one line: `{"text": …, "seconds": …, "mib": …}` or
`{"error": …}`. The text is every page as `?format=text` has it. `mib` is the most memory that the worker had.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from a2c_smcp.docs.describing import page_from_json
from a2c_smcp.docs.limits import DocumentLimits
from a2c_smcp.docs.workers import Workers
from a2c_smcp.mcp_server.rendering import elements_text

_AT_ONCE = 8


async def read(workers, path):
    about = os.stat(path)
    request = [str(path.parent), path.name, about.st_size, about.st_mtime_ns]
    for pid in workers.pids:
        _forget_peak(pid)
    started = time.perf_counter()
    [answer] = await workers.describe([request])
    facts = answer.get("facts")
    if facts is None:
        return {"error": answer["problem"]["reason"] if "problem" in answer else "not a document"}
    texts, failed = [], 0
    for first in range(0, facts["page_count"], _AT_ONCE):
        count = min(_AT_ONCE, facts["page_count"] - first)
        for page in await workers.read("page", request, first, count):
            if "page" in page:
                made = page_from_json(page["page"])
                texts.append(elements_text(made.elements))
            else:
                failed += 1
    if failed and not texts:
        return {"error": "no page can be read"}
    seconds = time.perf_counter() - started
    mib = max((_peak_mib(pid) for pid in workers.pids), default=0.0)
    text = "\n".join(texts).encode("utf-8", "replace").decode()
    return {"text": text, "seconds": seconds, "mib": mib, "failed_pages": failed}


def _forget_peak(pid):
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _peak_mib(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


async def main():
    async with Workers(DocumentLimits()) as workers:
        while line := await asyncio.to_thread(sys.stdin.readline):
            answer = await read(workers, Path(json.loads(line)["path"]))
            print(json.dumps(answer), flush=True)


asyncio.run(main())
