"""Makes the transcript of `a2c chat` in docs/agents.md: the commands of that page, and a service that says what is
scripted here.

    python -m tests.models.transcript    writes the transcript into the page
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pexpect

from tests.models.service import ModelService, Turn, serving
from tests.nats_server import free_ports

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
DEADLINE = 90
_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TRANSCRIPT = re.compile(r"(^<!-- a transcript: [^\n]* -->\n```text\n)(.*?)(^```$)", re.MULTILINE | re.DOTALL)
#: What a terminal is told when a person may type, and when the line was taken.
_PROMPT, _TAKEN = "\x1b[?2004h", "\x1b[?2004l"
TURNS = [
    Turn(calls=(("laptop__greet", {"text": "Ada"}), ("desk__greet", {"text": "Ada"}))),
    Turn("Both computers say: Hello, Ada!"),
    Turn(calls=(("laptop__count_slowly", {"seconds": 60}),)),
    Turn("I was stopped while the laptop counted."),
]


@contextmanager
def two_computers(folder: Path, port: int) -> Iterator[dict[str, str]]:
    """Run the commands of the page, as they stand, at this port. Gives the environment of further commands."""
    [commands] = _SHELL.findall(PAGE.read_text("utf-8"))
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("A2C_", "OPENAI", "ANTHROPIC"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    at = {"A2C_PORT": str(port), "A2C_URL": f"http://127.0.0.1:{port}", "XDG_RUNTIME_DIR": str(folder)}
    env = {**keep, **at, "PATH": path, "A2C_ADMIN_SOCKET": "none"}
    script = f"{commands}\necho ready\nread\nkill $(jobs -p)\nwait\n"
    with subprocess.Popen(
        ["bash", "-c", script], cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as shell:
        assert shell.stdout is not None
        try:
            for line in shell.stdout:
                if line == "ready\n":
                    break
            yield {**env, "A2C_OFFICE": "lab"}
        finally:
            shell.communicate("\n", timeout=DEADLINE)


def transcript(env: Mapping[str, str]) -> str:
    """What a person sees who talks with the model."""
    with serving(ModelService(TURNS)) as service:
        more = {"A2C_CHAT_ENDPOINT": f"{service.url}/v1", "TERM": "dumb", "NO_COLOR": "1"}
        command = "a2c chat --model gpt-5.2"
        terminal = pexpect.spawn(
            "a2c", command.split()[1:], env={**env, **more}, encoding="utf-8", timeout=DEADLINE, dimensions=(50, 200)
        )
        seen = [f"$ {command}\n"]

        def typed(line: str) -> None:
            terminal.send(f"{line}\r")
            terminal.expect_exact(_TAKEN)
            seen.append(f"> {line}\n")

        def until(expected: str) -> None:
            terminal.expect_exact(expected)
            seen.append(terminal.before)

        try:
            until(_PROMPT)
            for line in ("/computers", "Greet Ada on both computers."):
                typed(line)
                until(_PROMPT)
            typed("Count to sixty on the laptop.")
            until("count_slowly(seconds=60)")
            seen.append("count_slowly(seconds=60)")
            terminal.sendintr()
            until(_PROMPT)
            typed("What happened?")
            until(_PROMPT)
            typed("/quit")
            terminal.expect(pexpect.EOF)
            seen.append(terminal.before)
        finally:
            terminal.close(force=True)
    assert service.broken == []
    return plain("".join(seen))


def plain(text: str) -> str:
    """The text without what only a terminal understands."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.replace("\r", ""))
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip())


def on_the_page() -> str:
    [(_, found, _)] = _TRANSCRIPT.findall(PAGE.read_text("utf-8"))
    return str(found)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, two_computers(Path(folder), *free_ports(1)) as env:
        said = transcript(env)
    page = PAGE.read_text("utf-8")
    PAGE.write_text(_TRANSCRIPT.sub(lambda found: f"{found[1]}{said}{found[3]}", page), "utf-8")


if __name__ == "__main__":
    main()
