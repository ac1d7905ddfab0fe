"""What the claims of a token allow, by a few lines of TOML that an operator writes. Pure, except for `load_rules`."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from a2c_smcp.errors import ForbiddenError
from a2c_smcp.types import Role
from a2c_smcp.utils.text import printable
from a2c_smcp.utils.validation import Patterns, sentence

__all__ = ["Allowed", "RulesFileError", "TokenRules", "load_rules"]

_PLACEHOLDER: Final = re.compile(r"\{([^{}]+)\}")
#: Characters of a name that are shown.
_LONGEST_NAME: Final = 64


class RulesFileError(ValueError):
    """A file of rules cannot be used. The text names the file and the field."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The name of somebody, and what they may do."""

    name: str
    roles: frozenset[Role]
    offices: tuple[str, ...]
    names: tuple[str, ...] | None = None
    """The names that they may have in an office; `None` for any name."""


class _AllowEntry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    when: dict[str, str] = Field(default_factory=dict)
    """Claims with the value that each must have, or, if it is a list, contain: a text or a pattern of `fnmatch`."""
    roles: frozenset[Role] = frozenset({"agent", "computer"})
    offices: tuple[str, ...] = ("*",)
    names: Patterns | None = None

    def matches(self, claims: Mapping[str, Any]) -> bool:
        return all(
            any(fnmatchcase(value, pattern) for value in _texts(_claim(claims, name)))
            for name, pattern in self.when.items()
        )

    def filled_in(self, claims: Mapping[str, Any]) -> "_AllowEntry | None":
        """This entry with the claims filled in; `None` if a claim that it names is missing."""
        wanted = {claim for text in (*self.offices, *(self.names or ())) for claim in _PLACEHOLDER.findall(text)}
        values = {claim: _claim(claims, claim) for claim in wanted}
        if not all(isinstance(value, str) and value for value in values.values()):
            return None

        def filled(patterns: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(_PLACEHOLDER.sub(lambda match: _as_pattern(values[match[1]]), text) for text in patterns)

        names = None if self.names is None else filled(self.names)
        return self.model_copy(update={"offices": filled(self.offices), "names": names})


class TokenRules(BaseModel):
    """Which tokens may do what. The first entry of `allow` that matches decides. If a file has no `allow`, every token
    that the issuer made for this server may do everything.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: tuple[str, ...] = ("email", "preferred_username", "sub")
    """Claims that may have the name that logs and operators see. The first one that is there is used."""
    leeway: float = Field(default=30.0, ge=0, le=300)
    """Seconds by which the clock of the issuer may differ."""
    allow: tuple[_AllowEntry, ...] = (_AllowEntry(),)

    @field_validator("name", mode="before")
    @classmethod
    def _one_or_more(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    def allowed(self, claims: Mapping[str, Any]) -> Allowed:
        """What somebody with these claims may do. Raises `ForbiddenError` if no rule lets them in."""
        for rule in self.allow:
            if rule.matches(claims) and (entry := rule.filled_in(claims)) is not None:
                return Allowed(self._name(claims), entry.roles, entry.offices, entry.names)
        raise ForbiddenError(f"the token is valid, but no rule of this server lets {self._name(claims)} in")

    def _name(self, claims: Mapping[str, Any]) -> str:
        found = (value for each in (*self.name, "sub") if isinstance(value := _claim(claims, each), str) and value)
        return printable(next(found, "somebody")[:_LONGEST_NAME])


def load_rules(path: Path) -> TokenRules:
    """Read a TOML file of rules. Raises `RulesFileError`, which names file and field."""
    try:
        return TokenRules.model_validate(tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise RulesFileError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RulesFileError(f"{path}: not TOML: {error}") from None
    except ValidationError as error:
        raise RulesFileError(f"{path}: {sentence(error, 'file')}") from None


def _claim(claims: Mapping[str, Any], name: str) -> object:
    """A claim by its name, or by a path such as `realm_access.roles`. Some names have dots in them."""
    if name in claims:
        return claims[name]
    value: object = claims
    for part in name.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    # JSON's spelling, which is what an operator sees in a token.
    return [
        str(each).lower() if isinstance(each, bool) else str(each) for each in values if isinstance(each, str | int)
    ]


def _as_pattern(value: object) -> str:
    """A pattern that matches this claim alone. People may choose the values of their claims, but no patterns."""
    return re.sub(r"[*?\[]", lambda match: f"[{match[0]}]", str(value))
