"""The `envFile` of a VS Code server: variables for its process, one `NAME=value` in each line."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["find_env_file", "parse_env_file"]

_LINE: Final = re.compile(r"\s*(?:export\s+)?([\w.-]+)\s*=\s*(.*?)\s*", re.DOTALL)
_COMMENT: Final = re.compile(r"\s+#.*")
_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_ESCAPES: Final = {r"\n": "\n", r"\r": "\r", r"\t": "\t", r"\"": '"', r"\\": "\\"}
_ESCAPED: Final = re.compile(r'\\[nrt"\\]')


def find_env_file(name: str, config_file: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The path of an `envFile`. `${workspaceFolder}`, `${userHome}` and `${env:NAME}` mean the same as in VS Code.

    A relative name starts in the workspace. Without a config file it starts in the working directory. Raises
    `ValueError` for any other variable, and for an unknown home folder.
    """
    folder = Path(config_file).absolute().parent if config_file else Path.cwd()
    workspace = folder.parent if folder.name == ".vscode" else folder
    known = {"workspaceFolder": str(workspace)}
    with suppress(RuntimeError):  # a user without a home, as in some containers
        known["userHome"] = str(Path.home())
    known |= {f"env:{variable}": value for variable, value in environ.items()}

    def value(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise ValueError(f"{match[0]} has no value here")
        return known[match[1]]

    try:
        return workspace / Path(_VARIABLE.sub(value, name)).expanduser()
    except RuntimeError:
        raise ValueError(f"{name}: this home folder is unknown") from None


def parse_env_file(text: str) -> dict[str, str]:
    """The variables in a file's text. Other lines, such as comments, are ignored, as VS Code does."""
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return {match[1]: _value(match[2]) for match in found if match is not None}


def _value(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], text[1:-1])
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1]
    return _COMMENT.sub("", text)
