"""Only a few modules know that there is a dialect 0.4; the others ask them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import a2c_smcp

PACKAGE = Path(a2c_smcp.__file__).parent
ALLOWED = {"computer/socketio/dialect_answers.py", "link/connecting.py"}


def naming_0_4() -> Iterator[str]:
    for file in PACKAGE.rglob("*.py"):
        nodes = ast.walk(ast.parse(file.read_text("utf-8")))
        if any(isinstance(node, ast.Attribute) and node.attr == "V0_4" for node in nodes):
            yield file.relative_to(PACKAGE).as_posix()


def test_only_the_dialects_and_two_edges_compare_with_0_4() -> None:
    found = {file for file in naming_0_4() if not file.startswith("dialects/")}
    assert found == ALLOWED
