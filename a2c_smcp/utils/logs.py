"""Log lines on stderr, for the command line only: the library itself adds no handlers."""

import json
import logging
import os
import socket
import sys
from datetime import UTC, datetime
from typing import Literal

from a2c_smcp.utils.log_fields import fields_of, with_fields
from a2c_smcp.utils.secret_shapes import hidden
from a2c_smcp.utils.text import harmless, visible

__all__ = ["LogFormat", "configure_logging", "say_in_json"]

LogFormat = Literal["text", "json"]


def configure_logging(level: str, log_format: LogFormat = "text") -> None:
    """Send log lines to stderr: our own from `level` up, those of others from warnings up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if log_format == "json" else _TextFormatter(_TEXT, "%H:%M:%S"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("a2c_smcp").setLevel(level.upper())


def say_in_json(logger: logging.Logger, text: str, **fields: object) -> bool:
    """Write a line of a log in JSON, whatever the level of the log. Returns `False` if the log is not in JSON: then
    the command prints the text itself.
    """
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, _JsonFormatter):
            line = logger.makeRecord(logger.name, logging.INFO, "", 0, text, (), None, extra=with_fields(**fields))
            handler.handle(line)
            return True
    return False


_TEXT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class _TextFormatter(logging.Formatter):
    """Log lines contain words of strangers, too, and people read logs at a terminal. Nobody looks for secrets there."""

    def format(self, record: logging.LogRecord) -> str:
        return harmless(hidden(super().format(record)))


class _JsonFormatter(logging.Formatter):
    """One JSON object a line. Every line has the host and the server process, as `a2c server admin` shows it."""

    def __init__(self) -> None:
        super().__init__()
        self._host = socket.gethostname()
        self._process = f"{self._host}:{os.getpid()}"

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "host": self._host,
            "process": self._process,
        }
        line |= {name: value for name, value in fields_of(record).items() if name not in line}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        # Before it is JSON: there, what is hidden might take a backslash with it.
        line = {name: hidden(value) if isinstance(value, str) else value for name, value in line.items()}
        return visible(json.dumps(line, ensure_ascii=False, default=str))
