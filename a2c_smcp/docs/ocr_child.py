"""A process that reads the words in a picture for `recognition`: by rapidocr, or by tesseract where only that is there.

A request has a `picture`, a PNG in base64. The answer has `lines`: each a text and its box, in parts of the picture's
width and height.
"""

import base64
import csv
import io
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeAlias

from a2c_smcp.utils.serving_child import serve

__all__ = ["engine_name", "lines_of_tsv"]

RecognisedLine: TypeAlias = tuple[str, float, float, float, float]


def engine_name() -> str | None:
    """What can read a picture here: `rapidocr`, `tesseract`, or `None` if neither is installed."""
    if find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None:
        return "rapidocr"
    return "tesseract" if shutil.which("tesseract") else None


def answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    picture = base64.b64decode(request["picture"])
    try:
        lines = _by_rapidocr(picture) if engine_name() == "rapidocr" else _by_tesseract(picture)
    except MemoryError:
        raise
    except Exception as error:  # a library may raise anything, and the next picture is another one
        yield {"problem": f"{type(error).__name__}: {error}"[:200]}
    else:
        yield {"lines": lines}


@cache
def _engine() -> Any:
    from rapidocr import RapidOCR

    return RapidOCR(params={"Global.log_level": "error", "EngineConfig.onnxruntime.intra_op_num_threads": 1})


def _by_rapidocr(picture: bytes) -> list[RecognisedLine]:
    found = _engine()(picture)
    if found.boxes is None:
        return []
    height, width = found.img.shape[:2]
    lines: list[RecognisedLine] = []
    for corners, text in zip(found.boxes, found.txts, strict=True):
        xs, ys = [float(x) / width for x, _ in corners], [float(y) / height for _, y in corners]
        lines.append((text, min(xs), min(ys), max(xs), max(ys)))
    return lines


def _by_tesseract(picture: bytes) -> list[RecognisedLine]:
    listed = subprocess.run(["tesseract", "--list-langs"], capture_output=True, text=True, check=True, timeout=10)
    known = [name for name in ("eng", "chi_sim") if name in listed.stdout.split()]
    command = ["tesseract", "-", "-", "-l", "+".join(known) or "eng", "tsv"]
    table = subprocess.run(command, input=picture, capture_output=True, check=True).stdout.decode("utf-8", "replace")
    return lines_of_tsv(table)


def lines_of_tsv(table: str) -> list[RecognisedLine]:
    """The lines in the table that tesseract writes: a row a word, and one for the page with its size."""
    width = height = 1.0
    words: dict[tuple[str, ...], list[RecognisedLine]] = defaultdict(list)
    for row in csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE):
        left, top, wide, high = (float(row[name]) for name in ("left", "top", "width", "height"))
        if row["level"] == "1":
            width, height = max(wide, 1.0), max(high, 1.0)
        elif row["level"] == "5" and (row["text"] or "").strip():
            place = (row["block_num"], row["par_num"], row["line_num"])
            words[place].append((row["text"], left, top, left + wide, top + high))
    lines: list[RecognisedLine] = []
    for line in words.values():
        texts, lefts, tops, rights, bottoms = zip(*line, strict=True)
        box = (min(lefts) / width, min(tops) / height, max(rights) / width, max(bottoms) / height)
        lines.append((" ".join(texts), *box))
    return lines


if __name__ == "__main__":
    serve(answers)
