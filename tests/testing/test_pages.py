"""The samples of docs/testing.md pass under pytest as they stand, and the plugin disturbs nobody."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
_SAMPLE = re.compile(r"^<!-- (\S+) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_samples_of_the_page_pass_and_nothing_warns(tmp_path: Path) -> None:
    samples = _SAMPLE.findall(PAGE.read_text())
    assert len(samples) == 4
    for name, code in samples:
        (tmp_path / name).write_text(code)
    (tmp_path / "pytest.ini").write_text("[pytest]\nanyio_mode = auto\nfilterwarnings = error\n")
    assert "6 passed" in _pytest(tmp_path)


def test_a_project_that_does_not_use_the_plugin_pays_nothing_for_it(tmp_path: Path) -> None:
    heavy = {"mcp", "mcp_types", "socketio", "aiohttp", "pydantic", "uvicorn", "a2c_smcp.agent", "a2c_smcp.testing.lab"}
    test = f"import sys\n\n\ndef test_nothing():\n    assert not {heavy!r} & set(sys.modules)\n"
    (tmp_path / "test_nothing.py").write_text(test)
    assert "1 passed" in _pytest(tmp_path, "--strict-markers", "-W", "error")


def _pytest(folder: Path, *options: str) -> str:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "no:langsmith_plugin",
        *options,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
