"""The limits that an operator may change while a server runs: a TOML file over the options of the command line."""

import tomllib
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from a2c_smcp.server.limits import Limits
from a2c_smcp.utils.validation import sentence

__all__ = ["LimitsFileError", "changed_limits", "load_limits"]


class LimitsFileError(ValueError):
    """A limits file cannot be used. The text names the file and the field."""


class _LimitsFile(BaseModel):
    """The fields of `Limits` that running connections can take. `max_message` is not among them: clients have the
    same.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    max_timeout: int = Field(default=0, ge=1)
    relay_timeout: float = Field(default=0, gt=0)
    pending_relays: int = Field(default=0, ge=1)
    requests_per_second: float = Field(default=0, ge=0.001)
    connections_per_address: int = Field(default=0, ge=1)
    wrong_keys: int = Field(default=0, ge=1)
    queued_bytes: int = Field(default=0, ge=1024)


def load_limits(path: Path, options: Limits) -> Limits:
    """The limits of the options, with those of the file in their place. Raises `LimitsFileError`."""
    try:
        found = _LimitsFile.model_validate(tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise LimitsFileError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LimitsFileError(f"{path}: not TOML: {error}") from None
    except ValidationError as error:
        raise LimitsFileError(f"{path}: {sentence(error, 'file')}") from None
    return replace(options, **found.model_dump(exclude_unset=True))


def changed_limits(before: Limits, after: Limits) -> str | None:
    """What differs, in words; `None` if nothing does."""
    names = [name for name in _LimitsFile.model_fields if getattr(before, name) != getattr(after, name)]
    return ", ".join(f"{name} is {_shown(getattr(after, name))} now" for name in names) or None


def _shown(value: float | None) -> str:
    return "without a limit" if value is None else f"{value:g}"
