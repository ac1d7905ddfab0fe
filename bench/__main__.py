"""`make bench`: ours beside the existing implementation, on the same work, in one run. Ratios, not absolute times."""

import argparse
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from bench import aims, boot, calls, cluster, context, folders, hosts, offices, record, rules, windows
from bench.process import CONTESTANTS, ROOT
from bench.report import Group, aims_table, document, documents_part, table

CASES = (
    "calls",
    "large",
    "hosts",
    "office",
    "desktop",
    "finder",
    "folder",
    "windows",
    "boot",
    "record",
    "rules",
    "cluster",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"some of {', '.join(CASES)} (all)")
    parser.add_argument("--smoke", action="store_true", help="small counts, ours alone: does it run at all?")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "bench.json", help="where the figures go")
    parser.add_argument("--document", type=Path, help="write the tables and charts there, as Markdown")
    args = parser.parse_args()
    if unknown := set(args.cases) - set(CASES):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    console = Console()
    groups = []
    for case in args.cases or CASES:
        for group in _run(case, smoke=args.smoke):
            console.print(table(group))
            groups.append(group)
    if not args.smoke:
        console.print(aims_table(groups, aims.AIMS))
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps({group.title: group.figures for group in groups}, indent=2) + "\n")
    if args.document:
        machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
        page = document(groups, machine, [] if args.smoke else aims.AIMS)
        kept = documents_part(args.document.read_text()) if args.document.exists() else ""
        args.document.write_text(f"{page}\n{kept}\n" if kept else page)


def _run(case: str, *, smoke: bool) -> Iterator[Group]:
    contestants = ["ours"] if smoke else list(CONTESTANTS)
    match case:
        case "calls":
            yield Group(aims.CALLS, calls.run(contestants, scale=0.02 if smoke else 1))
        case "large":
            yield Group("An 8 MB result", calls.large(contestants, 100_000 if smoke else 8_000_000))
        case "hosts":
            yield Group(aims.HOSTS, hosts.run(0.02 if smoke else 1, beside=not smoke), hosts.AGENT, hosts.OURS["stdio"])
        case "office":
            members = 40 if smoke else 1000
            yield Group(f"One office of {members} computers", offices.run(contestants, members))
        case "desktop":
            count = 1 if smoke else 10
            yield Group(aims.SLOW_WINDOWS, context.desktop(contestants, 8, 5, 0.05, count))
            if not smoke:  # the same again, with other numbers
                yield Group(aims.MANY_WINDOWS, context.desktop(contestants, 1, 100, 0, count))
        case "finder":
            documents = 400 if smoke else 10_000
            yield Group(f"Finder, {documents:,} documents on 4 servers", context.finder(documents, 1 if smoke else 50))
        case "folder":
            size = (
                {"pages": 20, "rows": 300, "mebibytes": 1}
                if smoke
                else {"pages": 500, "rows": 100_000, "mebibytes": 50}
            )
            yield Group(aims.FIRST_PAGES, folders.first_pages(**size, beside=not smoke), "markitdown")
            files, read = (100, 20) if smoke else (10_000, 1000)
            yield Group(f"A folder of {files:,} files", folders.catalogue(files, read))
        case "rules":
            yield Group(aims.RULES, rules.run(*((20, 1) if smoke else (1000, 7))), rules.WITHOUT, rules.MANY)
        case "windows":
            beside = windows.can_compare() and not smoke
            yield Group(aims.TERMINAL, windows.run(windows.flood(1 if smoke else 100)))
            yield Group(aims.OUTLINE, windows.run(windows.outlines(1 if smoke else 9)), "Playwright's snapshot")
            yield Group(
                aims.BUILD, windows.run(windows.build_fails(1 if smoke else 20, beside=beside)), "mcp-shell-server"
            )
            yield Group("A form is filled in", windows.run(windows.form(beside=beside)), "@playwright/mcp")
        case "boot":
            yield Group(aims.BOOT, boot.run(contestants))
        case "record":
            yield Group(aims.RECORDED, record.calls(0.02 if smoke else 1), record.WITHOUT, record.BOTH)
            count = 2000 if smoke else 100_000
            yield Group(f"A record of {count:,} calls", record.search(count))
        case "cluster":
            inside, across = cluster.calls(0.02 if smoke else 1, beside=not smoke)
            yield Group(aims.INSIDE, inside, "without NATS")
            yield Group(aims.ACROSS, across, "one process")
            connections, members = (60, 20) if smoke else (10_000, 1000)
            title = f"{connections:,} connections on two processes, an office of {members:,} across both"
            yield Group(title, cluster.crowd(connections, members))


if __name__ == "__main__":
    main()
