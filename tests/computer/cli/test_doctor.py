"""`a2c doctor`: a finding a line, what to do about each, and the exit status."""

import http.server
import json
import os
import re
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.agent import SMCPAgentClient
from a2c_smcp.computer.cli import doctor
from a2c_smcp.computer.cli.web_answers import WebAnswer, describe_answers, other_scheme
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.server import APIKeyAuthentication
from a2c_smcp.server.auth import Key
from tests.certificates import self_signed
from tests.computer.fakes.computers import server
from tests.forked import shared
from tests.server.conftest import LIMITS
from tests.server.harness import Running, async_server
from tests.utils.test_network import tls_serving


def examine(*arguments: str, **environment: str) -> tuple[int, str]:
    result = shared().run_text("doctor", *arguments, env={**os.environ, **environment})
    assert result.stderr == ""
    return result.returncode, result.stdout


def write(file: Path, *servers: dict[str, Any], **more: Any) -> str:
    file.write_text(json.dumps({"servers": list(servers), **more}))
    return str(file)


def test_a_machine_that_is_well_ends_with_0(hub: Running, tmp_path: Path) -> None:
    relative = server("relative")
    relative["server_parameters"] = {"command": "./tool", "cwd": str(tmp_path)}
    (tmp_path / "tool").touch(mode=0o755)
    unknown = server("unknown")
    unknown["server_parameters"]["command"] = "${input:command}"
    off = {**server("off"), "disabled": True}
    off["server_parameters"]["command"] = "no-such-command"
    inputs = [{"id": "command", "type": "promptString", "default": "true"}, {"id": "unused", "type": "promptString"}]
    file = write(tmp_path / "config.json", server("a"), relative, unknown, off, inputs=inputs)
    status, said = examine("--config", file, "--url", hub.url)
    assert status == 0, said
    assert "✗" not in said
    for words in ("Python 3", "server 'a'", "server 'relative'", "depends on inputs", "needs no key"):
        assert words in said
    assert "'off'" not in said
    assert "✓ mcp " not in said and said.endswith("all 6 checks are fine\n"), "packages that fit are not worth a line"


def test_what_is_wrong_is_said_with_what_to_do_and_ends_with_1(tmp_path: Path) -> None:
    lost = server("lost")
    lost["server_parameters"]["command"] = "no-such-command"
    nowhere = server("nowhere")
    nowhere["server_parameters"]["cwd"] = str(tmp_path / "nowhere")
    with async_server(APIKeyAuthentication(["right"]), LIMITS) as hub:
        file = write(tmp_path / "config.json", lost, nowhere)
        status, said = examine("--config", file, "--url", hub.url, A2C_API_KEY="hunter2")
        assert status == 1
        assert "'no-such-command' is not found\n    install it" in said
        assert "there is no folder" in said
        assert "refuses the key\n    give the right one with --api-key" in said
        assert "hunter2" not in said
        assert "wants a key" in examine("--url", hub.url)[1]
        assert "accepts the key" in examine("--url", hub.url, A2C_API_KEY="right")[1]
    write(tmp_path / "config.json", {**server("a"), "nonsense": 1})
    status, said = examine("--config", file, "--url", hub.url)
    assert status == 1
    assert "nonsense: unknown key\n    correct that file" in said
    assert "does not answer: " in said
    assert "\n    start it with `a2c server`" in said


def test_an_input_without_a_value_is_found(hub: Running, tmp_path: Path) -> None:
    asks, off = server("asks"), server("off", disabled=True)
    asks["server_parameters"]["env"] = {"A": "${input:api-key}", "B": "${input:token}", "C": "${env:UNSET_BY_ALL}"}
    off["server_parameters"]["env"] = {"A": "${input:of-a-disabled-one}"}
    inputs = [
        {"id": "api-key", "type": "promptString", "password": True},
        {"id": "token", "type": "command", "command": "exit 1"},
        {"id": "of-a-disabled-one", "type": "promptString"},
    ]
    arguments = ("--config", write(tmp_path / "config.json", asks, off, inputs=inputs), "--url", hub.url)
    status, said = examine(*arguments)
    assert status == 1
    assert "✗ input 'api-key' has no value\n    set A2C_INPUT_API_KEY" in said
    assert "✓ input 'token': its command will run when" in said
    assert "the environment variable 'UNSET_BY_ALL' is not set\n    set the variable" in said
    assert "of-a-disabled-one" not in said
    status, said = examine(*arguments, A2C_INPUT_API_KEY="hunter2", UNSET_BY_ALL="hunter2")
    assert status == 0, said
    assert "hunter2" not in said


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers a GET of `/CODE`, or of `/sse`, with that; and knows one token."""

    def do_GET(self) -> None:
        path = self.path[1:].partition("?")[0]
        code = 401 if self.headers.get("authorization") == "wrong" else int(path) if path.isdigit() else 200
        self.send_response(code)
        self.send_header("content-type", "text/event-stream; charset=utf-8" if self.path == "/sse" else "text/html")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


class Web(http.server.ThreadingHTTPServer):
    request_queue_size = 64  # all are asked at once, and a connection too many would wait for the kernel's next try


@pytest.fixture
def answers() -> Iterator[str]:
    with Web(("127.0.0.1", 0), Answers) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{web.server_port}"
        web.shutdown()


def remote(name: str, url: str, kind: str = "streamable", **parameters: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "server_parameters": {"url": url, **parameters}}


def test_the_urls_of_mcp_servers_are_tried(hub: Running, tmp_path: Path, answers: str) -> None:
    file = write(
        tmp_path / "config.json",
        remote("well", f"{answers}/405?key=hunter2"),
        remote("events", f"{answers}/sse", "sse"),
        remote("nobody", "http://127.0.0.1:1/mcp"),
        remote("elsewhere", f"{answers}/404"),
        remote("locked", f"{answers}/405", headers={"Authorization": "wrong"}),
        remote("moved", f"{answers}/307"),
        remote("broken", f"{answers}/503"),
        remote("no events", f"{answers}/202", "sse"),
        remote("page", f"{answers}/page"),
        remote("no tls", f"https{answers[4:]}/mcp"),
        remote("off", "http://127.0.0.1:1/off") | {"disabled": True},
        remote("open", "http://127.0.0.1:1/${input:path}"),
        inputs=[{"id": "path", "type": "command", "command": "echo x"}],
    )
    status, said = examine("--config", file, "--url", hub.url)
    assert status == 1
    for words in (
        f"✓ server 'well': {answers}/405?*** answers\n",
        f"✓ server 'events': {answers}/sse answers\n",
        "✗ server 'nobody': http://127.0.0.1:1/mcp: nothing answers at its address\n    start it",
        "has nothing at this path (HTTP 404)\n    correct the path",
        "refuses access (HTTP 401)\n    correct its headers",
        "has moved (HTTP 307)",
        "fails (HTTP 503)",
        "not as an SSE server (HTTP 202)",
        f"✗ server 'page': {answers}/page answers with a web page; it is not an MCP server\n    correct its url",
        f"✗ server 'no tls': https{answers[4:]}/mcp: it does not speak TLS\n    its url in the config should begin",
        "✓ server 'open': its URL depends on inputs",
    ):
        assert words in said, said
    assert "'off'" not in said
    assert "hunter2" not in said


def test_an_mcp_server_whose_certificate_is_not_trusted_is_said_to_have_one(hub: Running, tmp_path: Path) -> None:
    certificate = self_signed(tmp_path, "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert, certificate.key)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as web:
        web.socket = context.wrap_socket(web.socket, server_side=True)
        threading.Thread(target=web.serve_forever, daemon=True).start()
        file = write(tmp_path / "config.json", remote("secure", f"https://127.0.0.1:{web.server_port}/405"))
        status, said = examine("--config", file, "--url", hub.url)
        assert status == 1
        assert "/405: its certificate is not trusted: self-signed certificate\n    SSL_CERT_FILE names a file" in said
        plain = write(
            tmp_path / "plain.json", remote("insecure", f"http://127.0.0.1:{web.server_port}/mcp?key=hunter2")
        )
        said = examine("--config", plain, "--url", hub.url)[1]
        assert f"http://127.0.0.1:{web.server_port}/mcp?*** speaks TLS\n    write https:// in its url" in said
        assert examine("--config", file, "--url", hub.url, SSL_CERT_FILE=certificate.cert)[0] == 0
        web.shutdown()


def test_an_mcp_server_that_cannot_be_asked_is_a_finding_like_others(hub: Running, tmp_path: Path) -> None:
    file = write(
        tmp_path / "config.json",
        remote("header", "http://127.0.0.1:1/mcp", headers={"X-Y": "ü"}),
        remote("control", "http://127.0.0.1:1/\u0001"),
        remote("half", "http://127.0.0.1:1/\ud83d"),
    )
    status, said = examine("--config", file, "--url", hub.url)
    assert status == 1
    assert "server 'header': http://127.0.0.1:1/mcp: its URL or a header has a character that" in said
    assert "is not a valid URL\n    correct its url" in said
    assert "server 'half': " in said
    assert f"{hub.url} answers" in said
    file = write(tmp_path / "config.json", remote("proxy", "http://192.0.2.1/mcp"))
    for proxy in ("socks5://127.0.0.1:1", "gopher://127.0.0.1:1"):
        status, said = examine("--config", file, "--url", hub.url, ALL_PROXY=proxy)
        assert status == 1
        assert "server 'proxy': http://192.0.2.1/mcp cannot be reached: " in said
        assert f"{hub.url} answers" in said


# --- the server, looked at in this process


def look(capsys: pytest.CaptureFixture[str], url: str, office: str | None = None, **more: Any) -> dict[str, Any]:
    """What it says about the server, for programs, without what it says about Python."""
    status = doctor.examine(doctor.Examination(LinkOptions(url, **more), office=office), as_json=True)
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert said["ok"] is (status == 0)
    assert said["findings"].pop(0)["about"] == "python"
    return said


def test_a_program_reads_every_finding_as_json(hub: Running, capsys: pytest.CaptureFixture[str]) -> None:
    said = look(capsys, hub.url)
    what = f"{hub.url} answers, and needs no key; connected by websocket, direct"
    assert said == {"ok": True, "findings": [{"about": "server", "ok": True, "what": what, "advice": ""}]}
    (finding,) = look(capsys, "http://127.0.0.1:1")["findings"]
    assert finding["ok"] is False and "start it with `a2c server`" in finding["advice"]


def test_a_web_server_of_another_kind_is_said_to_be_one(answers: str, capsys: pytest.CaptureFixture[str]) -> None:
    (finding,) = look(capsys, answers)["findings"]
    assert finding["what"] == f"{answers} is a web server, but not an A2C server (HTTP 200)"
    assert "correct the host and the port of --url" in finding["advice"]
    (finding,) = look(capsys, f"https{answers[4:]}")["findings"]
    assert finding["what"] == f"https{answers[4:]} does not speak TLS"
    assert finding["advice"] == f"use http: --url {answers}"


def test_a_server_that_speaks_tls_is_said_to_when_it_is_asked_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tls_serving(self_signed(tmp_path, "127.0.0.1")) as port:
        (finding,) = look(capsys, f"http://127.0.0.1:{port}", api_key="right")["findings"]
    assert finding["what"] == f"http://127.0.0.1:{port} speaks TLS"
    assert finding["advice"] == f"use https: --url https://127.0.0.1:{port}"


PLAIN, SECURE = "http://host:7000", "https://host:7000"


@pytest.mark.parametrize(
    ("url", "tls", "plain", "what"),
    [
        (PLAIN, WebAnswer(404), None, "speaks TLS"),
        (PLAIN, WebAnswer(404), WebAnswer(400), "speaks TLS"),
        (PLAIN, WebAnswer(404), WebAnswer(404), "is a web server"),
        (PLAIN, None, WebAnswer(404, "not\x1b found"), r"is a web server, .* \(HTTP 404: not\\u001b found\)"),
        (PLAIN, None, WebAnswer(403, "another host"), r"refuses access \(HTTP 403: another host\)"),
        (SECURE, None, WebAnswer(200), "does not speak TLS"),
        (SECURE, WebAnswer(502), WebAnswer(200), "fails"),
        (SECURE, WebAnswer(200, '0{"sid":"x"}'), None, None),
        (SECURE, None, None, None),
    ],
)
def test_what_answers_instead_is_told_by_two_answers(
    url: str, tls: WebAnswer | None, plain: WebAnswer | None, what: str | None
) -> None:
    found = describe_answers(url, tls, plain)
    assert (found is None) is (what is None)
    if found is not None and what is not None:
        assert re.search(what, found[0]) and found[1]


def test_a_url_without_a_port_keeps_its_port_when_its_scheme_is_changed() -> None:
    assert other_scheme("https://host/x?y") == "http://host:443/x?y"
    assert other_scheme("http://[::1]") == "https://[::1]:80"
    assert other_scheme("http://host:7000") == "https://host:7000"


def test_an_office_is_looked_at_and_left(capsys: pytest.CaptureFixture[str]) -> None:
    keys = [Key(name="all", key="all"), Key(name="some", key="some", roles=frozenset({"computer"}))]
    with (
        async_server(APIKeyAuthentication(keys), LIMITS) as hub,
        SMCPAgentClient(hub.url, name="ada", api_key="all") as agent,
    ):
        for _ in range(2):  # the first one has left
            findings = look(capsys, hub.url, "lab", api_key="all")["findings"]
            assert [each["about"] for each in findings] == ["server", "office"]
            assert findings[1]["what"] == "office 'lab' can be joined; its computers: none"
        (_, refused) = look(capsys, hub.url, "lab", api_key="some")["findings"]
        assert refused["what"].startswith("office 'lab' does not take an agent with this key: ") and refused["advice"]
        agent.join_office("lab")
        said = look(capsys, hub.url, "lab", api_key="all")
        only_one = "office 'lab' has an agent already, so nobody else can look into it: the office has an agent: 'ada'"
        assert said["ok"] and said["findings"][1]["what"] == only_one


@pytest.mark.parametrize(
    ("version", "bounds", "well"),
    [
        ("2.3.0", ">=2.3,<3", True),
        ("2.10", ">=2.3,<3", True),
        ("2.2.9", ">=2.3,<3", False),
        ("3.0.0", "<3,>=2.3", False),
        ("3.0.0rc1", "<3,>=2.3", False),
        ("1", "", True),
    ],
)
def test_versions_are_compared_as_numbers(version: str, bounds: str, well: bool) -> None:
    assert doctor._within(version, bounds) is well
