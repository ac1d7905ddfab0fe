"""What we and others read of the files of one format, as figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import mean
from typing import Any, Final

from bench.documents.reading import OURS, all_readings, readers_of
from bench.documents.words import Grams, agreed, families, grams, recall

__all__ = ["Measured", "measure"]

#: Readers that are made of another one have one vote with it. markitdown reads each format by another library.
_MADE_OF: Final = {
    "pdf": {"markitdown": "pdfplumber"},
    "docx": {"markitdown": "mammoth"},
    "pptx": {"markitdown": "python-pptx"},
    "xlsx": {"markitdown": "openpyxl"},
    "xls": {"markitdown": "xlrd"},
}


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one format."""

    kind: str
    files: int
    counted: int
    """Files with enough 5-grams that count."""
    unread: int
    """Files that we do not read, whatever others do."""
    failures: dict[str, int]
    """By reader: files that it did not read, although two others did."""
    recalls: dict[str, float]
    """By reader, as far as there is anything to compare with."""
    seconds: float
    """Of ours, the mean of a file."""
    slowest: float
    mib: float
    """The most memory that a worker of ours had."""
    worst: tuple[tuple[float, Path], ...] = ()

    def line(self) -> str:
        others = ", ".join(f"{name} {value:.3f}" for name, value in self.recalls.items() if name != OURS)
        return (
            f"{self.kind}: {self.files} files, {self.unread} not read, {self.failures.get(OURS, 0)} failures, "
            f"recall {self.recalls.get(OURS, float('nan')):.3f} in {self.counted} ({others}), "
            f"{self.seconds:.2f} s a file, at most {self.slowest:.1f} s, {self.mib:.0f} MiB"
        )


def measure(folder: Path, kind: str, most: int, code: Path) -> Measured | None:
    """Measure the files in `folder/<kind>`; `None` if there are none."""
    # In the order of a digest: a choice that nobody made, and the same every time.
    files = sorted((folder / kind).glob("*.*"), key=lambda path: sha256(path.name.encode()).digest())[:most]
    if not files:
        return None
    told = all_readings([OURS, *readers_of(kind)], files, folder / ".readings", code=code)
    shares: dict[str, list[float]] = {}
    failures: dict[str, int] = {}
    worst: list[tuple[float, Path]] = []
    for path in files:
        answers = {name: answers[path] for name, answers in told.items()}
        found = compare(kind, answers)
        for name, share in found.items():
            if share is None:
                failures[name] = failures.get(name, 0) + 1
            else:
                shares.setdefault(name, []).append(share)
        if OURS in found:
            share = found[OURS]
            worst.append((-1.0 if share is None else share, path))
    ours = [answer for answer in told[OURS].values() if "seconds" in answer]
    return Measured(
        kind,
        len(files),
        len(shares.get(OURS, ())),
        len(files) - len(ours),
        failures,
        {name: mean(values) for name, values in shares.items()},
        mean(answer["seconds"] for answer in ours) if ours else 0.0,
        max((answer["seconds"] for answer in ours), default=0.0),
        max((answer["mib"] for answer in ours), default=0.0),
        tuple(sorted(worst)),
    )


def compare(kind: str, answers: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """The recall of each reader in one file. `None` is a failure; a reader that cannot be judged is absent."""
    texts = {name: grams(answer["text"]) for name, answer in answers.items() if "text" in answer}
    made_of = _MADE_OF.get(kind, {})
    found: dict[str, float | None] = {}
    for name in answers:
        family = made_of.get(name, name)
        others = {other: text for other, text in texts.items() if made_of.get(other, other) != family}
        counted: Grams = agreed(families(others, made_of).values())
        if name not in texts:
            if counted:
                found[name] = None
        elif (share := recall(texts[name], counted)) is not None:
            found[name] = share
    return found
