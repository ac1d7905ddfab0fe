"""What the journals of a chaotic run say: every call ended, nothing ran twice, nothing that was answered is missing.

Pure but for the reading of files.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Books", "Journal", "Runs", "balance", "read_journals", "read_runs"]


@dataclass
class Journal:
    """What one incarnation of the agent wrote down."""

    name: str
    killed: bool
    begun: set[str] = field(default_factory=set)
    repeated: set[str] = field(default_factory=set)
    outcomes: dict[str, str] = field(default_factory=dict)


@dataclass
class Runs:
    """What the MCP servers wrote down: who ran what, and which processes there were."""

    runs: list[tuple[str, str]] = field(default_factory=list)
    """Token and computer process."""
    pids: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Books:
    calls: int
    outcomes: Counter[str]
    repeated: int
    runs: int
    problems: list[str]

    def summary(self) -> str:
        shares = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.most_common())
        return f"{self.calls} calls ({shares}), {self.repeated} sent again, {self.runs} runs"


def parse_journal(name: str, lines: Iterable[str], *, killed: bool) -> Journal:
    journal = Journal(name, killed)
    for line in lines:
        match line.split(maxsplit=2):
            case ["begin", token]:
                journal.begun.add(token)
            case ["again", token]:
                journal.repeated.add(token)
            case ["end", token, outcome]:
                journal.outcomes[token] = outcome.strip()
            case _ if line.endswith("\n"):
                raise ValueError(f"the journal {name} says {line!r}")
            case _:
                pass  # the line that was being written when the agent was killed
    return journal


def read_journals(folder: Path) -> list[Journal]:
    """All journals, the last of which ended by itself. Those before may have been killed."""
    files = sorted(folder.glob("journal-*"), key=lambda path: int(path.name.partition("-")[2]))
    return [
        parse_journal(path.name, path.read_text().splitlines(keepends=True), killed=path is not files[-1])
        for path in files
    ]


def read_runs(file: Path) -> Runs:
    runs = Runs()
    for line in file.read_text().splitlines():
        match line.split():
            case ["run", token, computer]:
                runs.runs.append((token, computer))
            case ["pid", pid]:
                runs.pids.append(int(pid))
    return runs


def balance(journals: Sequence[Journal], runs: Runs) -> Books:
    """Compare what was asked with what was done."""
    problems: list[str] = []
    for journal in journals:
        unended = journal.begun - journal.outcomes.keys()
        if unended and not journal.killed:
            problems.append(f"{journal.name}: {len(unended)} calls never ended, {min(unended)} for one")
        problems += [
            f"{journal.name}: {token}: {outcome}"
            for token, outcome in journal.outcomes.items()
            if outcome.startswith("unexpected")
        ]
    repeated = {token for journal in journals for token in journal.repeated}
    per_computer = Counter(runs.runs)
    problems += [f"{token} ran {n} times in one computer" for (token, _), n in per_computer.items() if n > 1]
    # A computer that was killed has forgotten what it ran: what was sent again may have run in each of its lives.
    per_token = Counter(token for token, _ in runs.runs)
    problems += [f"{token} ran {n} times" for token, n in per_token.items() if n > 1 and token not in repeated]
    outcomes = {token: outcome for journal in journals for token, outcome in journal.outcomes.items()}
    problems += [
        f"{token} was answered and never ran"
        for token, outcome in outcomes.items()
        if outcome == "result" and not per_token[token]
    ]
    return Books(len(outcomes), Counter(outcomes.values()), len(repeated), len(runs.runs), problems)
