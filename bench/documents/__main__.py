"""`make bench-docs`: collects foreign documents, and measures how much of them we read beside other readers."""

import argparse
import os
import sys
from pathlib import Path

from bench.documents.collecting import FORMATS, collect
from bench.documents.measuring import measure
from bench.documents.reading import READERS_PYTHON
from bench.documents.table import markdown_table, with_table
from bench.process import ROOT


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.documents", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=_default_folder(), help="where the documents are kept")
    parser.add_argument("--collect", action="store_true", help="download the source packages that are not there yet")
    parser.add_argument("--formats", nargs="*", choices=FORMATS, default=FORMATS, metavar="FORMAT", help="some of them")
    parser.add_argument("--most", type=int, default=120, help="files of each format that are measured")
    parser.add_argument("--code", type=Path, default=ROOT, help="a checkout whose reader is ours, to compare with")
    parser.add_argument("--document", type=Path, help="write the table there, between its marks")
    parser.add_argument("--worst", type=int, default=0, help="name so many files of each format that we read worst")
    args = parser.parse_args()
    if not READERS_PYTHON.exists():
        parser.error("the other readers are missing: run `make bench-docs`, which sets up .venv-readers")
    if args.collect:
        collect(args.folder)
    rows = []
    for kind in args.formats:
        if found := measure(args.folder, kind, args.most, args.code):
            rows.append(found)
            print(found.line(), file=sys.stderr, flush=True)
            for share, path in found.worst[: args.worst]:
                print(f"    {share:.3f} {path.name}", file=sys.stderr)
    print(markdown_table(rows))
    if args.document:
        page = with_table(args.document.read_text(), rows, os.getloadavg()[2], os.cpu_count() or 1)
        args.document.write_text(page)


def _default_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "a2c-smcp" / "foreign-documents"


if __name__ == "__main__":
    main()
