"""Decides which documents match, and in which order they show. Pure, and fast enough for ten thousand."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from a2c_smcp.computer.resources.server_order import order_servers
from a2c_smcp.errors import BadRequestError
from a2c_smcp.smcp import DPEDocumentSummary
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.dpe_uri import is_valid_dpe_uri

__all__ = ["file_name", "organize_finder"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def organize_finder(
    documents: Sequence[DPEDocumentSummary],
    keywords: Sequence[str] | None = None,
    file_type: str | None = None,
    history: Sequence[SERVER_NAME] | None = None,
    offset: int = 0,
    limit: int = 20,
    *,
    by_file_name: bool = False,
) -> tuple[list[DPEDocumentSummary], int]:
    """One page of the matching documents, and how many match in all.

    `history` names the servers of the last calls, oldest first. With `by_file_name`, keywords are looked for in the
    names of files, too. A negative offset or limit raises `BadRequestError`.
    """
    if offset < 0 or limit < 0:
        raise BadRequestError("offset and limit must not be negative")
    if file_type:
        documents = [document for document in documents if document.get("file_type") == file_type]
    if keywords:
        wanted = [keyword.casefold() for keyword in keywords]
        documents = [document for document in documents if _matches(document, wanted, by_file_name)]
    by_server: dict[SERVER_NAME, list[DPEDocumentSummary]] = {}
    for document in documents:
        if is_valid_dpe_uri(document.get("uri") or ""):
            by_server.setdefault(document.get("server") or "", []).append(document)
    ordered = [
        document for server in order_servers(history or (), by_server) for document in _newest_first(by_server[server])
    ]
    return ordered[offset : offset + limit], len(ordered)


def _matches(document: DPEDocumentSummary, wanted: Sequence[str], by_file_name: bool) -> bool:
    """Whether one of the keywords stands in one of the fields."""
    title = (document.get("title") or "").casefold()
    tags = " ".join(document.get("keywords") or ()).casefold()
    summary = _folded(document.get("summary") or "")
    name = _folded(file_name(document)) if by_file_name else ""
    return any(keyword in title or keyword in tags or keyword in summary or keyword in name for keyword in wanted)


def file_name(document: DPEDocumentSummary) -> str:
    """The name of a document's file: the last part of its `file_uri`, as a person reads it."""
    return _last_part(document.get("file_uri") or "")


@lru_cache(maxsize=2**14)
def _last_part(uri: str) -> str:
    return unquote(uri.rstrip("/").rpartition("/")[2])


# Summaries are long, and casefold is slow outside ASCII.
_folded = lru_cache(maxsize=2**14)(str.casefold)


def _newest_first(documents: Sequence[DPEDocumentSummary]) -> list[DPEDocumentSummary]:
    """Sorted by time. Documents without a readable time come last; documents with the same time stay in list order."""
    dated: list[tuple[timedelta, DPEDocumentSummary]] = []
    undated: list[DPEDocumentSummary] = []
    for document in documents:
        instant = _instant(document.get("last_modified"))
        if instant is None:
            undated.append(document)
        else:
            dated.append((instant, document))
    dated.sort(key=lambda pair: pair[0], reverse=True)
    return [*(document for _, document in dated), *undated]


@lru_cache(maxsize=2**14)
def _instant(text: str | None) -> timedelta | None:
    """The time since the epoch. A timestamp without an offset is in UTC."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
