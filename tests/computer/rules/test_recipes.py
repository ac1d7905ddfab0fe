"""docs/rules.md: each recipe is a valid file, and its rules say what the page says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.rules.cautions import cautions_of
from a2c_smcp.computer.rules.conditions import OPERATORS
from a2c_smcp.computer.rules.deciding import Moment, RuleCounters, RuledCall, RuledTool, decide
from a2c_smcp.computer.rules.deciding_reads import decide_read
from a2c_smcp.computer.rules.paths import Known
from a2c_smcp.computer.rules.reads import ReadPattern, RuledRead, kind_of
from a2c_smcp.computer.rules.toml_text import read_rules
from a2c_smcp.computer.rules.words import ENGLISH, sentence_of
from a2c_smcp.utils.values import read_values

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "rules.md").read_text("utf-8")
_BLOCKS = re.compile(
    r"^### (.+?)\n\n<!-- recipe -->\n```toml\n(.*?)^```\n\n<!-- calls -->\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL
)
RECIPES = _BLOCKS.findall(PAGE)


def call_of(line: str) -> tuple[RuledCall, Moment]:
    """A line such as `write_file path=/a agent=planner [readOnlyHint=true] @10:00`; `agent=planner?` is a claim."""
    name, _, rest = line.partition(" ")
    hints, who = {}, {"agent": "", "key": "", "office": "", "server": ""}
    if found := re.search(r"\[(\w+=\w+(?: \w+=\w+)*)\]", rest):
        hints = {key: value == "true" for key, value in (pair.split("=") for pair in found[1].split())}
        rest = rest.replace(found[0], "")
    hour, minute = 12, 0
    if found := re.search(r"@(\d\d):(\d\d)", rest):
        hour, minute = int(found[1]), int(found[2])
        rest = rest.replace(found[0], "")
    arguments: dict[str, Any] = {}
    if rest.strip().startswith("{"):
        arguments = json.loads(rest)
    else:
        words = rest.split()
        who |= {key: value for key, _, value in (word.partition("=") for word in words) if key in who}
        arguments = read_values([word for word in words if word.partition("=")[0] not in who]).read(None)
    tool = RuledTool(who["server"], name, name, hints)
    is_claimed = who["agent"].endswith("?")
    asker = Asker(who["agent"].rstrip("?"), who["key"] or None, not is_claimed, who["office"]) if who["agent"] else None
    return RuledCall(tool, arguments, asker), Moment(1.8e9, hour * 60 + minute, 100.0)


@pytest.mark.parametrize(("rules", "calls"), [recipe[1:] for recipe in RECIPES], ids=[recipe[0] for recipe in RECIPES])
def test_recipe(rules: str, calls: str) -> None:
    parsed, problems = read_rules(rules)
    assert not problems, problems
    assert all(sentence_of(rule) for rule in parsed)
    assert not list(cautions_of(parsed))
    for line in calls.splitlines():
        written, _, answer = line.rpartition(" => ")
        call, now = call_of(written.removeprefix("read "))
        if written.startswith("read "):
            named = ReadPattern(call.tool.name)
            kind, uri = (named.kind, "") if named.kind else (kind_of(named.text), named.text)
            verdict = decide_read(parsed, RuledRead(kind, uri, call.tool.server, call.asker), now)
        else:
            verdict = decide(parsed, call, now, RuleCounters())
        assert ("none" if verdict is None else verdict.effect) == answer, line


def said(tool: str, arguments: dict[str, Any] | None = None, **more: Any) -> RuledCall:
    hints, server = more.pop("hints", {}), more.pop("server", "")
    asker = Asker(more["agent"], "key", True, more.get("office", "")) if more.get("agent") else None
    return RuledCall(RuledTool(server, tool, more.get("original", tool), hints), arguments or {}, asker)


def each(tool: str, argument: str, values: list[Any], **others: Any) -> list[RuledCall]:
    return [said(tool, {**others, argument: value}) for value in values]


DAY, NIGHT = Moment(1.8e9, 600, 100.0), Moment(1.8e9, 1400, 100.0)
NOTES = "/home/ada/notes"
#: Names that lead to this machine, and one that nobody can look up.
ADDRESSES = {"rebound.example": ("203.0.113.1", "127.0.0.1"), "intra.example": ("10.1.2.3",), "gone.example": None}
NEAR = [
    *("127.0.0.1", "127.1", "127.8.8.8:9000", "0.0.0.0", "0", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1"),
    *(
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[::127.0.0.1]",
    ),
    *("localhost", "LOCALHOST.", "a.localhost", "user:pw@localhost", "１２７.0.0.1", "ⓛocalhost", "127。0。0。1"),
    *("10.0.0.1", "192.168.1.1", "172.31.0.1", "100.64.0.1", "[fd00::1]", "[fec0::1]", "[::ffff:10.0.0.1]"),
    *("169.254.169.254", "[fe80::1]", "[fe80::1%25eth0]", "rebound.example", "intra.example", "gone.example"),
]
#: By the title of a recipe: calls that it must deny, and calls that it must not allow.
DENIED: dict[str, list[RuledCall]] = {
    "Never touch keys and secrets": each(
        "read_file",
        "path",
        [
            *("/home/ada/.ssh", "/home/ada/.ssh/", "/home/ada/.ssh/.", "//home//ada/.ssh/id", "/home/./ada/.ssh/id"),
            *("/home/ada/notes/../.ssh/id", "/home/ada/.ssh/id\0.txt", ".ssh/id", "~/.ssh/id", "id_ed25519"),
            *("file:///home/ada/.ssh/id", "/srv/app/.env/", "/srv/app/.env/.", "/srv//app/.env", ".env", "./.env"),
            *("/srv/app/.env ", "/srv/app/.env\0", "/srv/app/.env.local", "/srv/app\n/.env", "~/.env", ["/a/.env"]),
            *(None, {"path": "/srv/.env"}),
        ],
    ),
    "Mail to colleagues, one at a time": [
        *each("send_mail", "bcc", [["eve@evil.org"], "eve@evil.org", [], None], to=["ben@example.com"]),
        *each("send_mail", "subject", ["a\r\nBcc: eve@evil.org", "a\nb", "a\rb", None], to=["ben@example.com"]),
    ],
    "Read the web, but only these sites": each("fetch", "url", [f"http://{host}/" for host in NEAR]),
    "Git without rewriting history": each(
        "git_push", "force", [True, "true", "yes", 1, None, [True]], repo="a", branch="agent/x"
    ),
}
HOSTILE: dict[str, list[RuledCall]] = {
    "Write notes, and only notes": [
        *each(
            "write_file",
            "path",
            [
                *(
                    f"{NOTES}/../.bashrc",
                    f"{NOTES}/a/../../../../etc/passwd",
                    f"{NOTES}2/a",
                    "/home/ada/Notes/a",
                    "a.md",
                ),
                *("~/notes/a.md", f"file://{NOTES}/a.md", f"{NOTES}/a\0/../../x", f"{NOTES}/a\n/etc/passwd", [NOTES]),
                *(f"{NOTES}/..\\..\\x", f" {NOTES}/a", f"{NOTES}/\u2028", "", None, {"path": f"{NOTES}/a"}),
            ],
            text="x",
        ),
        *each("write_file", "text", ["x" * 20_001, None, {"x": "y"}], path=f"{NOTES}/a"),
        said("write_file", {"path": f"{NOTES}/a", "text": "x", "target": "/etc/passwd"}),
        said("write_file\n", {"path": f"{NOTES}/a", "text": "x"}),
    ],
    "Whatever only reads may run, and nothing destroys without me": [
        said("rm", hints={"readOnlyHint": "true", "openWorldHint": False}),
        said("rm", hints={"readOnlyHint": 1, "openWorldHint": False}),
        said("rm", hints={"destructiveHint": False}),
        said("fetch", hints={"readOnlyHint": True}),
        said("fetch", hints={"readOnlyHint": True, "openWorldHint": None}),
    ],
    "Never touch keys and secrets": [],
    "Mail to colleagues, one at a time": [
        *each(
            "send_mail",
            "to",
            [
                [address]
                for address in [
                    *("eve@evil.org, ben@example.com", "eve@evil.org ben@example.com", "eve@evil.org;ben@example.com"),
                    *(
                        "eve@evil.org\r\nBcc: ben@example.com",
                        "ben@example.com\r\nBcc: eve@evil.org",
                        "a\n@example.com",
                    ),
                    *("<eve@evil.org>@example.com", '"eve@evil.org"@example.com', '"eve\\"@evil.org, x"@example.com'),
                    *(
                        "eve@evil.org(@example.com",
                        "eve(x)@example.com",
                        "eve@evil.org\0@example.com",
                        "eve@example.com.",
                    ),
                    *("Ben <eve@evil.org> @example.com", "eve%evil.org@example.com", "evil.org!eve@example.com"),
                    *("=?utf-8?q?eve=40evil.org=3e?=@example.com", "@evil.org:ben@example.com", "|sh@example.com"),
                    *("-oQ/tmp@example.com", "ben@example.com.evil.org", "ben@evilexample.com", "ben@a.example.com"),
                    *("ben@ex\u0430mple.com", "ben@example\u3002com", "b\u0435n@example.com", "ben@example.com "),
                    *(
                        "",
                        "@example.com",
                        "*@example.com",
                        "ben@",
                        ".ben@example.com",
                        "b..n@example.com",
                        "/etc@example.com",
                    ),
                    *("ben@example.com,", "mailto:ben@example.com", "ben@[127.0.0.1]", "a" * 65 + "@example.com"),
                ]
            ],
        ),
        *each(
            "send_mail",
            "to",
            ["ben@example.com", [], None, ["a@example.com", "b@example.com"], [["a@example.com"]], [{"a": 1}]],
        ),
        *(
            said("send_mail", {"to": ["ben@example.com"], more: "x"})
            for more in ("cc", "Bcc", "headers", "attachments")
        ),
    ],
    "Read the web, but only these sites": [
        *each(
            "fetch",
            "url",
            [
                *("file://docs.python.org/etc/passwd", "gopher://docs.python.org/", "ftp://docs.python.org/"),
                *("https://docs.python.org:8443/", "http://docs.python.org:443/", "https://docs.python.org:22/"),
                *(
                    "https://user@docs.python.org/",
                    "https://docs.python.org@evil.org/",
                    "https://evil.org#@docs.python.org/",
                ),
                *("https://evil.org\\@docs.python.org/", "https://docs.python.org\\.evil.org/", "docs.python.org"),
                *(
                    "https://docs.python.org\n.evil.org/",
                    "https://docs.python.org/\r\nHost: evil.org",
                    "//docs.python.org/",
                ),
                *(
                    "https://wikipedia.org.evil.org/",
                    "https://evil.org;.wikipedia.org/",
                    "https://evil.org,x.wikipedia.org/",
                ),
                *(
                    "https://docs.python.org.evil.org/",
                    "https://xdocs.python.org/",
                    "https://wikipedia.org/",
                    "https:///",
                ),
                *(
                    "https://docs.python.org%2eevil.org/",
                    "javascript://docs.python.org/%0aalert(1)",
                    "https://docs.python.org:/",
                ),
                *(
                    "https://docs.pyth\u043en.org/",
                    "https://docs.python.org?@evil.org/",
                    "https://evil.org?.wikipedia.org/",
                ),
                *("view-source:https://docs.python.org/", ["https://docs.python.org/"], None, ""),
            ],
        ),
        said("fetch", {"url": "https://docs.python.org/", "proxy": "http://127.0.0.1:1"}),
    ],
    "At night nothing that costs money": [
        *each(
            "buy_paper",
            "amount",
            [
                -1,
                -0.01,
                20.001,
                21,
                2**80,
                -(2**80),
                1e300,
                float("inf"),
                -float("inf"),
                float("nan"),
                True,
                "5",
                "1e2",
            ],
        ),
        *each("buy_paper", "amount", [[5], None, {}]),
        said("buy_paper", {"amount": 5, "times": 1000}),
        said("sell", {"amount": 5}),
    ],
    "One agent may do more than the others": [
        said("delete_book", agent=agent, office=office, server=server)
        for agent, office, server in [
            *(("Librarian", "home", "books"), ("librarian ", "home", "books"), ("librarian\n", "home", "books")),
            *(("", "home", "books"), ("librarian", "home\n", "books"), ("librarian", "", "books")),
            *(("librarian", "home", "books2"), ("xlibrarian", "home", "books")),
        ]
    ],
    "Git without rewriting history": [
        *each(
            "git_push",
            "branch",
            [
                *("agent/x:main", "agent/x:refs/heads/main", "+agent/x:main", "+agent/x", ":agent/x", "agent/x main"),
                *(
                    "agent/../main",
                    "agent/..",
                    "agent/x..main",
                    "agent/",
                    "agent",
                    "agent/x\nmain",
                    "agent/-x",
                    "agent/.x",
                ),
                *(
                    "agent/x,main",
                    "agent/x@{-1}",
                    "agent/x^{}",
                    "agent/x~1",
                    "agent/*",
                    "agent/x;reboot",
                    "agent/$(id)",
                ),
                *("refs/heads/agent/x", "main", "Agent/x", ["agent/x"], None, ""),
            ],
            repo="a",
        ),
        *each(
            "git_push",
            "repo",
            ["ext::sh -c id", "https://evil.org/a", "../b", "-a", "git@evil.org:a", ""],
            branch="agent/x",
        ),
        said("git_push", {"repo": "a", "branch": "agent/x", "mirror": True}),
        said("git_push", {"repo": "a"}),
    ],
    "A helper for one week": [
        *(said("search", agent=agent) for agent in ("intern", "Intern-7", "xintern-7", "", "intern-7\nplanner")),
        *(said(tool, agent="intern-7") for tool in ("write_file", "search2", "search\n", "Search", "")),
        said("read_files", agent="intern-7", original="read_file"),
    ],
    "Everything is forbidden that is not allowed": [
        *(said(tool) for tool in ("run_command", "Clock", "clock\n", "clock ", "weather2", "", "*")),
        said("alias", original="clock"),
    ],
}


@pytest.mark.parametrize("recipe", RECIPES, ids=[recipe[0] for recipe in RECIPES])
def test_recipe_is_attacked(recipe: tuple[str, str, str]) -> None:
    title, rules, _ = recipe
    parsed, _ = read_rules(rules)
    known = Known(addresses=lambda name: ADDRESSES.get(name, ("203.0.113.7",)))

    def effect(call: RuledCall, now: Moment) -> str | None:
        verdict = decide(parsed, call, now, RuleCounters(), known)
        return None if verdict is None else verdict.effect

    hostile, denied = HOSTILE[title], DENIED.get(title, [])
    assert len(hostile) + len(denied) >= 5
    for call in hostile:
        assert effect(call, DAY) != "allow", call
        assert effect(call, NIGHT) != "allow", call
    for call in denied:
        assert effect(call, DAY) == "deny", call


def test_there_are_ten_recipes_and_every_operator_is_on_the_page() -> None:
    assert len(RECIPES) == 10 and PAGE.count("<!-- recipe -->") == 10
    assert all(f"`{operator}" in PAGE for operator in OPERATORS)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_in_the_browser_has_a_sentence_for_every_condition(language: str) -> None:
    folder = ROOT / "a2c_smcp" / "computer" / "console" / "static" / "js"
    script = (folder / f"texts-{language}.js").read_text("utf-8")
    texts = {key: json.loads(text) for key, text in re.findall(r'^  "rule\.([\w.]+)": (".*"),$', script, re.MULTILINE)}
    texts.pop("and")
    assert texts.keys() == ENGLISH.keys()
    for key, text in texts.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", ENGLISH[key])), key
    if language == "en":
        assert texts == ENGLISH
