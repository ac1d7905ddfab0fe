"""Old names warn, and the warning has the line of the program that uses them."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """\
from a2c_smcp.utils import WindowURI
from a2c_smcp.computer.mcp_clients.model import SseServerConfig
from a2c_smcp.agent import AgentEventHandler
import a2c_smcp.utils
a2c_smcp.utils.is_window_uri
"""


def test_a_program_is_shown_its_own_lines_without_any_option(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60, check=True)
    lines = [line for line in run.stderr.splitlines() if "DeprecationWarning" in line]
    assert [line.split(":")[:2] for line in lines] == [[str(program), str(number)] for number in (1, 2, 3, 5)]
