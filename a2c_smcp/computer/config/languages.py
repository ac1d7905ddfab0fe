"""The languages of config files: JSON with comments, and TOML and YAML as other programs write them. Pure."""

import tomllib
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, Final

from a2c_smcp.computer.config.jsonc import JsoncError, read_jsonc

__all__ = ["ConfigTextError", "is_json", "read_document"]

_TOML: Final = (".toml",)
_YAML: Final = (".yaml", ".yml")
#: YAML is for files that people write. A longer one would take seconds.
_MOST_YAML: Final = 1_000_000


class ConfigTextError(ValueError):
    """A text is not what the ending of its file's name says. The message says what is wrong, and in which line."""


def is_json(file: str) -> bool:
    """Whether a file is read as JSON: every file whose name does not end like those of TOML and YAML."""
    return PurePath(file).suffix.lower() not in (*_TOML, *_YAML)


def read_document(text: str, file: str, repeated: Callable[[str, int], None]) -> Any:
    """What a file says, by the ending of its name. `repeated` hears of keys that stand several times in one object.

    Raises `ConfigTextError`.
    """
    suffix = PurePath(file).suffix.lower()
    try:
        if suffix in _TOML:
            return tomllib.loads(text)
        return _read_yaml(text) if suffix in _YAML else read_jsonc(text, repeated)
    except (tomllib.TOMLDecodeError, JsoncError) as error:
        raise ConfigTextError(str(error)) from None
    except RecursionError:
        raise ConfigTextError("it nests too deep") from None


def _read_yaml(text: str) -> Any:
    import yaml

    if len(text) > _MOST_YAML:
        raise ConfigTextError(f"YAML of more than {_MOST_YAML} characters is not read")
    try:
        # An alias may stand for a value that holds aliases: a short text would become an endless one.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise ConfigTextError("YAML with aliases (*name) is not read")
        return yaml.load(text, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise ConfigTextError(f"{error.problem or 'it is not YAML'}{where}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise error if isinstance(error, ConfigTextError) else ConfigTextError("it is not YAML") from None


def _loader() -> Any:
    """A loader that refuses a key that stands twice, and reads dates as texts."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if len(set(keys)) < len(keys):
                twice = next(key for key in keys if keys.count(key) > 1)
                raise ConfigTextError(f"the key {twice!r} stands {keys.count(twice)} times in one object")
            return super().construct_mapping(node, deep)

    Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: node.value)
    return Loader
