"""Log lines on stderr, for the command line only: the library itself adds no handlers."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

from a2c_smcp.utils.text import harmless, visible

__all__ = ["LogFormat", "configure_logging"]

LogFormat = Literal["text", "json"]


def configure_logging(level: str, log_format: LogFormat = "text") -> None:
    """Send log lines to stderr: our own from `level` up, those of others from warnings up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if log_format == "json" else _TextFormatter(_TEXT, "%H:%M:%S"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("a2c_smcp").setLevel(level.upper())


_TEXT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class _TextFormatter(logging.Formatter):
    """Log lines contain words of strangers, too, and people read logs at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record))


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return visible(json.dumps(line, ensure_ascii=False))
