"""The READMEs' Python runs, and prints what its comments say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READMES = ("README.md", "README.zh-CN.md")
_SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PRINTED = re.compile(r"print\(.*\)  # (.+)$", re.MULTILINE)


def snippets(name: str) -> list[str]:
    return _SNIPPET.findall((ROOT / name).read_text())


@pytest.mark.parametrize(
    "code", [pytest.param(code, id=f"{name}-{n}") for name in READMES for n, code in enumerate(snippets(name))]
)
def test_a_snippet_runs_and_prints_what_it_says(code: str) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == _PRINTED.findall(code)


def test_both_languages_show_the_same_code() -> None:
    assert snippets(READMES[0])
    assert snippets(READMES[0]) == snippets(READMES[1])
