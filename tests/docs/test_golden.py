"""What the sample folder answers at every level, word for word.

`python -m tests.docs.test_golden` writes the answers anew: read the diff.
"""

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from mcp.client import Client

from a2c_smcp.computer.utils.dpe_uri import element_uri, page_uri, with_params
from a2c_smcp.docs.library import Library
from a2c_smcp.docs.server import docs_server
from tests.docs.libraries import DEADLINE
from tests.docs.samples import make_samples
from tests.mcp_server.clients import text

GOLDEN = Path(__file__).with_name("golden.json")
HOST = "com.example.garden"
#: The height of a line of text, in points.
LINE = 14.0
#: Pages of each document that are short enough to be read by people.
PAGES = {
    "budget.xlsx": [2, 3],
    "handbook.md": [0, 1, 2],
    "harvest.csv": [],
    "long.pdf": [10],
    "notes.txt": [],
    "plan.png": [0],
    "pump.html": [0, 1],
    "short.pdf": [0, 1],
    "src/count.py": [0],
    "talk.pptx": [0, 1],
    "%E5%90%88%E5%90%8C.docx": [0, 1],
    "%E5%B9%B4%E5%BA%A6%E6%8A%A5%E5%91%8A.md": [0, 1, 2],
    "%E6%97%A7%E7%AC%94%E8%AE%B0.txt": [],
}


async def answers(folder: Path) -> dict[str, Any]:
    _same_instant(folder)
    found: dict[str, Any] = {}

    async def read(uri: str) -> Any:
        answer = await text(client, uri)
        found[uri] = json.loads(answer) if "format=" not in uri else answer
        return found[uri]

    library = Library([folder])
    async with Client(docs_server(library, HOST).mcp, cache=None) as client, asyncio.timeout(DEADLINE * 2):
        # Until then a catalogue has what is known already.
        await library.folders[0].first_pass.wait()
        catalogue = await read(f"dpe://{HOST}")
        for document in catalogue["documents"]:
            uri = document["uri"]
            await read(uri)
            await read(with_params(uri, {"depth": "pages", "limit": "3"}))
            for number in PAGES[document["file_uri"]]:
                page = await read(page_uri(uri, number))
                await read(with_params(page_uri(uri, number), {"format": "markdown"}))
                await read(element_uri(uri, page["elements"][-1]["element_id"]))
        await read(with_params(f"dpe://{HOST}", {"format": "text"}))
    return found


def _same_instant(folder: Path) -> None:
    for path in folder.rglob("*"):
        os.utime(path, (1_800_000_000, 1_800_000_000))


async def test_every_level_answers_as_it_did(samples: Path) -> None:
    expected = json.loads(GOLDEN.read_text())
    found = await answers(samples)
    assert found.keys() == expected.keys()
    for uri, answer in found.items():
        _near_boxes_are_the_same(answer, expected[uri])
        assert answer == expected[uri], uri


def _near_boxes_are_the_same(answer: Any, expected: Any) -> None:
    """The PDFs do not hold their Chinese font: the boxes of its letters are those of a font of this system."""
    if not isinstance(answer, dict):
        return
    for one, other in [
        (answer, expected),
        *zip(answer.get("elements", ()), expected.get("elements", ()), strict=False),
    ]:
        boxes = list(zip(one.get("bbox", ()), other.get("bbox", ()), strict=False))
        if boxes and not one["summary"].isascii() and all(abs(a - b) < LINE for a, b in boxes):
            one["bbox"] = other["bbox"]


async def _write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "garden"
        make_samples(root)
        GOLDEN.write_text(json.dumps(await answers(root), ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(_write())
