"""The public names: the file that lists them is up to date, and names that have moved answer where they were."""

import subprocess
import sys
from importlib import import_module

import pytest

from tools.public_api import FILE, public_api

#: A public name of an earlier commit, and the module that has it now.
MOVED = [
    ("a2c_smcp.computer.call_log.RunningCall", "a2c_smcp.computer.calls.log"),
    ("a2c_smcp.computer.config_files.ConfigFiles", "a2c_smcp.computer.config.files"),
    ("a2c_smcp.computer.decision_store.DecisionStore", "a2c_smcp.computer.decisions.store"),
    ("a2c_smcp.computer.decisions.Accepted", "a2c_smcp.computer.decisions.book"),
    ("a2c_smcp.computer.events.CallEnded", "a2c_smcp.computer.watching.events"),
    ("a2c_smcp.computer.mcp_clients.elicitation.forms.QuestionForm", "a2c_smcp.utils.forms"),
    ("a2c_smcp.computer.mcp_clients.forms.QuestionForm", "a2c_smcp.utils.forms"),
    ("a2c_smcp.computer.problems.Problem", "a2c_smcp.computer.config.problems"),
    ("a2c_smcp.computer.snapshot.ComputerSnapshot", "a2c_smcp.computer.watching.snapshot"),
    ("a2c_smcp.link.office_link.Way", "a2c_smcp.link.transports"),
    ("a2c_smcp.link.ways.Way", "a2c_smcp.link.transports"),
    ("a2c_smcp.utils.link.Way", "a2c_smcp.link.transports"),
]


def test_the_list_of_public_names_is_what_the_code_has() -> None:
    change = "type `python -m tools.public_api`; a name or parameter that went away needs a line in the changelog"
    assert FILE.read_text(encoding="utf-8").splitlines() == public_api().splitlines(), change


@pytest.mark.parametrize(("old", "module"), MOVED)
def test_a_public_name_that_has_moved_answers_at_the_old_place_with_a_warning(old: str, module: str) -> None:
    place, _, name = old.rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"{old} has moved to {module};"):
        found = getattr(import_module(place), name)
    assert found is getattr(import_module(module), name)
    with pytest.raises(AttributeError, match=f"{place}' has no attribute 'Nothing'"):
        import_module(place).Nothing  # noqa: B018


def test_the_warning_has_the_line_of_the_program() -> None:
    program = "import sys\nfrom a2c_smcp.computer.decisions import Accepted\n"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stderr.startswith("<string>:2: DeprecationWarning: a2c_smcp.computer.decisions.Accepted has moved")
