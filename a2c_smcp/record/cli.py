"""`a2c computer record` and `a2c server record`: looks into a record. Imports what it needs when it runs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

import typer

from a2c_smcp.terminal.exits import FAILED
from a2c_smcp.terminal.options import CommandApp
from a2c_smcp.terminal.screen import aligned, say
from a2c_smcp.utils.text import printable

if TYPE_CHECKING:
    from a2c_smcp.record.queries import RecordQuery
    from a2c_smcp.record.reading import RecordReader
    from a2c_smcp.record.rows import StoredRow

__all__ = ["RecordPlace", "record_app"]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a line, for programs.")]
Limit = Annotated[int, typer.Option(min=1, help="Rows that are shown at most: the newest.")]


#: Why retention removed rows, in words.
_WHY: Final = {
    "age": "for their age",
    "size": "for the size of the record",
    "disk": "before their time, because the disk was nearly full",
}


class RecordPlace(Protocol):
    """A group of options that says which record is meant."""

    @property
    def file(self) -> Path: ...


@dataclass(frozen=True)
class QueryFlags:
    """What is looked for."""

    since: Annotated[
        str | None,
        typer.Option(help="Not before: 90m, 2d, today, yesterday, or a date like 2026-03-01.", show_default=False),
    ] = None
    until: Annotated[str | None, typer.Option(help="Before this moment.", show_default=False)] = None
    agent: Annotated[str, typer.Option(help="Of this agent; * and ? stand for other letters.", show_default=False)] = ""
    office: Annotated[str, typer.Option(help="Of this office.", show_default=False)] = ""
    tool: Annotated[str, typer.Option(help="Of this tool.", show_default=False)] = ""
    outcome: Annotated[str, typer.Option(help="With this outcome, such as refused.", show_default=False)] = ""
    kind: Annotated[str, typer.Option(help="Of this kind, such as call.", show_default=False)] = ""

    def query(self, **more: Any) -> "RecordQuery":
        from a2c_smcp.record.queries import RecordQuery

        given = {name: getattr(self, name) for name in ("agent", "office", "tool", "outcome", "kind")}
        return RecordQuery(since=_moment(self.since), until=_moment(self.until), **given, **more)


def _moment(text: str | None) -> int | None:
    from datetime import datetime

    from a2c_smcp.record.queries import moment

    try:
        return None if text is None else moment(text, datetime.now().astimezone())
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is no moment; give one like 90m, 2d, today, yesterday or 2026-03-01T14:00"
        ) from None


def record_app(place: type[RecordPlace], whose: str) -> CommandApp:
    """The commands for the records at such a place. `place` is a dataclass of options."""
    app = CommandApp(name="record", help=f"Look into the record of {whose}, and check that nobody has changed it.")

    @app.command("list")
    def list_rows(*, where: place, wanted: QueryFlags, limit: Limit = 50, as_json: Json = False) -> None:  # type: ignore[valid-type]
        """The newest rows, oldest first."""
        _list(where, wanted.query(), limit, as_json)

    @app.command()
    def search(
        words: Annotated[list[str], typer.Argument(help="Words that a row has, all of them.", show_default=False)],
        *,
        where: place,  # type: ignore[valid-type]
        wanted: QueryFlags,
        limit: Limit = 50,
        as_json: Json = False,
    ) -> None:
        """The newest rows with these words: in names, ids, arguments or reasons."""
        _list(where, wanted.query(words=tuple(words)), limit, as_json)

    @app.command()
    def show(
        row: Annotated[str, typer.Argument(metavar="ID|NUMBER", help="A call, or one row.", show_default=False)],
        *,
        where: place,  # type: ignore[valid-type]
        as_json: Json = False,
    ) -> None:
        """The whole story of one call: every row about it, with all that is kept."""
        _show(where, row, as_json)

    @app.command()
    def export(
        *,
        where: place,  # type: ignore[valid-type]
        wanted: QueryFlags,
        form: Annotated[Literal["json", "csv"], typer.Option("--format", help="JSON lines, or a table.")] = "json",
    ) -> None:
        """All rows that match, oldest first, on stdout."""
        _export(where, wanted.query(), form)

    @app.command()
    def verify(
        *,
        where: place,  # type: ignore[valid-type]
        head: Annotated[
            str | None,
            typer.Option(metavar="NUMBER:HASH", help="A head that was printed earlier and kept elsewhere."),
        ] = None,
        as_json: Json = False,
    ) -> None:
        """Check every row. Finds rows that were changed or removed; with --head also a cut end or a new file."""
        _verify(where, head, as_json)

    @app.command()
    def head(*, where: place) -> None:  # type: ignore[valid-type]
        """Print the number and hash of the newest row. Keep it elsewhere: verify --head checks against it."""
        with _reading(where) as reader:
            say(str(reader.head))

    return app


@contextmanager
def _reading(where: RecordPlace) -> "Iterator[RecordReader]":
    from a2c_smcp.record.reading import reading
    from a2c_smcp.record.schema import RecordFileError

    try:
        with reading(where.file) as reader:
            yield reader
    except RecordFileError as error:
        say(f"a2c: {error}", err=True, one_line=True)
        raise typer.Exit(FAILED) from None


def _list(where: RecordPlace, query: "RecordQuery", limit: int, as_json: bool) -> None:
    from a2c_smcp.record.printing import as_table

    with _reading(where) as reader:
        rows = reader.newest(query, limit + 1)
    shown = rows[:limit][::-1]
    if as_json:
        _print_json(shown)
        return
    for line in aligned(as_table(shown, None)):
        say(line)
    if len(rows) > limit:
        say(f"There are more than {limit}; --limit shows more.", err=True)


def _print_json(rows: "list[StoredRow]") -> None:
    from a2c_smcp.record.printing import as_json

    for row in rows:
        # Escapes keep words of others from acting on a terminal.
        say(json.dumps(as_json(row)))


def _show(where: RecordPlace, wanted: str, as_json: bool) -> None:
    from a2c_smcp.record.printing import story_lines
    from a2c_smcp.record.queries import RecordQuery

    with _reading(where) as reader:
        rows = [*reader.all(RecordQuery(about=wanted))]
        if not rows and wanted.isascii() and wanted.isdigit() and (row := reader.number(int(wanted[:18]))) is not None:
            rows = [row]
    if not rows:
        say(f"a2c: the record has no row with the id or number {wanted}", err=True, one_line=True)
        raise typer.Exit(FAILED)
    if as_json:
        _print_json(rows)
        return
    for stored in rows:
        for line in story_lines(stored, None):
            say(printable(line))  # it is for people, also in a pipe


def _export(where: RecordPlace, query: "RecordQuery", form: str) -> None:
    from a2c_smcp.record.printing import as_csv, as_json

    with _reading(where) as reader:
        rows = reader.all(query)
        for line in as_csv(rows) if form == "csv" else (json.dumps(as_json(row)) for row in rows):
            say(line)


def _verify(where: RecordPlace, head: str | None, as_json: bool) -> None:
    from a2c_smcp.record.rows import ChainHead

    try:
        known = None if head is None else ChainHead.parse(head)
    except ValueError:
        raise typer.BadParameter("--head takes NUMBER:HASH, as `record head` prints it") from None
    with _reading(where) as reader:
        report = reader.check(known)
    if as_json:
        found = {"rows": report.rows, "base": report.base.number, "head": str(report.head)}
        say(
            json.dumps(
                {"whole": not report.problems, **found, "removed": dict(report.removed), "problems": report.problems}
            )
        )
    else:
        for problem in report.problems:
            say(problem)
        removed = f", rows 1 to {report.base.number} were removed by retention" if report.base.number else ""
        reasons = ", ".join(f"{count} {_WHY.get(why, why)}" for why, count in sorted(report.removed.items()))
        removed += f" ({reasons})" if removed and reasons else ""
        state = "NOT whole" if report.problems else "whole"
        say(f"{report.rows} rows, {state}{removed}; head {report.head}")
    if report.problems:
        raise typer.Exit(FAILED)
