"""What is said about a server, without the values that its config was rendered with."""

from a2c_smcp.computer.mcp_clients.veil import Veil

RAW = {
    "command": "${input:command}",
    "args": ["--key=${input:key}", "plain text", "${input:short}"],
    "env": "${input:env}",
    "headers": {"A": "Bearer ${input:key}", "B": "plain text"},
}
RENDERED = {
    "command": "/opt/hidden",
    "args": ["--key=hunter22", "plain text", "3"],
    "env": {"TOKEN": "hunter22-and-more", "LIST": ["another-one"]},
    "headers": {"A": "Bearer hunter22", "B": "plain text"},
    "added by a default": "something",
}


def test_what_was_written_stands_for_what_was_rendered() -> None:
    veil = Veil(RAW, RENDERED)
    assert veil("no such file: '/opt/hidden'") == "no such file: '${input:command}'"
    assert veil("bad Bearer hunter22, bad --key=hunter22") == "bad Bearer ${input:key}, bad --key=${input:key}"
    assert veil("hunter22-and-more another-one") == "${input:env} ${input:env}"


def test_what_was_written_out_and_what_is_too_short_stays() -> None:
    assert Veil(RAW, RENDERED)("exit code 3: plain text, something") == "exit code 3: plain text, something"
