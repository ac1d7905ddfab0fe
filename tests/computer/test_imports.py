"""The Computer's parts know no terminal, so that a window can take its place."""

import subprocess
import sys

PARTS = ("config.files", "inputs", "mcp_clients.model", "mcp_clients.masking", "config.problems")
FOREIGN = ("a2c_smcp.computer.cli", "prompt_toolkit", "typer", "rich", "mcp", "socketio")


def test_inputs_and_configs_import_neither_the_cli_nor_anything_that_draws_or_connects() -> None:
    imports = ", ".join(f"a2c_smcp.computer.{part}" for part in PARTS)
    code = f"import sys, {imports}; print([name for name in {FOREIGN!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"
