"""Our documents server as a library, measured in a process of its own. Prints one line of JSON."""

import asyncio
import json
import sys
import time
from pathlib import Path

from a2c_smcp.docs.library import Library
from a2c_smcp.docs.limits import DocumentLimits
from a2c_smcp.docs.workers import Workers


def request(path):
    about = path.stat()
    return [str(path.parent), path.name, about.st_size, about.st_mtime_ns]


async def first_pages(small, large):
    """Until the first page is there: opened, described and read. The worker has seen the format before."""
    seconds = []
    async with Workers(DocumentLimits(seconds=60)) as workers:
        await workers.describe([request(small)])
        started = time.perf_counter()
        [about] = await workers.describe([request(large)])
        [answer] = await workers.read("page", request(large), 0)
        seconds.append(time.perf_counter() - started)
        assert answer["page"]["elements"], answer
        return {"seconds": seconds[0], "pages": about["facts"]["page_count"]}


async def catalogue(folder, cache):
    """Until every document is in the catalogue, with how many pages it has."""
    started = time.perf_counter()
    library = Library([folder], cache=cache)
    async with library.running():
        await library.folders[0].first_pass.wait()
        _, total = await library.catalogue(0, 100)
        seconds = time.perf_counter() - started
        if not (cache / "whole").exists():
            await library.folders[0].indexer.known.wait()
            (cache / "whole").touch()
    return {"seconds": seconds, "documents": total}


async def memory(folder, count):
    """What the server and its workers hold after so many documents were read."""
    library = Library([folder])
    async with library.running():
        await library.folders[0].first_pass.wait()
        documents, _ = await library.catalogue(0, count)
        for document in documents:
            await library.page(document.doc_ref, 0)
        return {
            "server_mib": resident("self"),
            "workers_mib": sum(resident(pid) for pid in library.workers.pids),
            "documents": len(documents),
        }


def resident(pid):
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 2**20


OPERATIONS = {
    "first": lambda small, large: first_pages(Path(small), Path(large)),
    "catalogue": lambda folder, cache: catalogue(Path(folder), Path(cache)),
    "memory": lambda folder, count: memory(Path(folder), int(count)),
}

if __name__ == "__main__":
    print(json.dumps(asyncio.run(OPERATIONS[sys.argv[1]](*sys.argv[2:]))))
