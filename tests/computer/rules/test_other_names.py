"""A deny knows other names for the same file or host, an allow takes none of them; and what is looked up for that."""

import os
import random
import re
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from a2c_smcp.computer.rules.conditions import lexical
from a2c_smcp.computer.rules.deciding import Moment, RuleCounters, RuledCall, RuledTool, decide
from a2c_smcp.computer.rules.lookups import addresses_of, folds_case, known_now
from a2c_smcp.computer.rules.paths import Known
from a2c_smcp.computer.rules.rule import Effect, Rule, parse_rules
from a2c_smcp.computer.rules.store import RuleStore
from tests.computer.fakes.computers import DEADLINE

NOW = Moment(1.8e9, 600, 100.0)
TOOL = RuledTool("files", "read", "read")
ENV = "/srv/app/.env"


def rule(effect: Effect, condition: Mapping[str, Any]) -> Rule:
    rules, problems = parse_rules([{"effect": effect, "args": {"x": dict(condition)}}])
    assert not problems, [str(problem) for problem in problems]
    return rules[0]


def effect_of(condition: Mapping[str, Any], value: Any, known: Known, *, of: Effect = "deny") -> bool:
    """Whether a rule with this condition matches."""
    return decide((rule(of, condition),), RuledCall(TOOL, {"x": value}), NOW, RuleCounters(), known) is not None


def known(links: Mapping[str, str] | None = None, folding: str = "\0") -> Known:
    """Links by their places, and a folder below which case does not count."""

    def real_path(path: str) -> str:
        path = lexical(path)
        for link, target in (links or {}).items():
            if path == link or path.startswith(f"{link}/"):
                return target + path[len(link) :]
        return path

    return Known(real_path, lambda path: lexical(path).startswith(folding))


CONDITIONS: list[Mapping[str, Any]] = [
    {"equals": ENV},
    {"one_of": ["/a", ENV]},
    {"glob": "*.env"},
    {"glob": "/srv/app/.e*"},
    {"glob": "/srv/*/.env"},
    {"under": ENV},
]
SPELLINGS = [
    *(f"{ENV}/", f"{ENV}/.", f"{ENV}//", "//srv/app/.env", "///srv/app/.env", "/srv//app/.env", "/srv/./app/.env"),
    *("/srv/app/x/../.env", "/../srv/app/.env", "/srv/app/.env/x/..", f" {ENV}", f"{ENV} ", f"{ENV}\n", f"{ENV}\0.txt"),
    *("/proc/self/cwd/app/.env", "/./proc/7/root/srv/app/.env", "/dev/fd/../fd/3/.env", "/srv\\app/.env"),
    *("../app/.env", "./.env", "~/.env", "~ada/.env", "app/.env", ".env"),
    *(f"file://{ENV}", f"FILE://localhost{ENV}", f"file:{ENV}#x", "file:///srv/app/%2eenv?x=1", f" file://{ENV}"),
    *("/dev/fd/3", "/proc/self/fd/../fd/3"),
]


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
@pytest.mark.parametrize("value", SPELLINGS)
def test_a_deny_takes_every_spelling_of_a_path(condition: Mapping[str, Any], value: str) -> None:
    assert effect_of(condition, value, known())
    if value.strip() != ENV:  # the path itself
        narrow = "equals" in condition or "one_of" in condition
        assert not (narrow and effect_of(condition, value, known(), of="allow"))


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
@pytest.mark.parametrize(
    "value",
    ["/srv/app/x.environment/a", "/srv/app/env", "/srv/app/notes.md", "notes.md", "/", "", "hello world", "a/b"],
)
def test_a_deny_does_not_take_what_is_something_else(condition: Mapping[str, Any], value: str) -> None:
    if condition == {"under": ENV} and not value.startswith("/"):
        assert effect_of(condition, value, known())  # where it begins is the server's affair, as before
    else:
        assert not effect_of(condition, value, known())


@pytest.mark.parametrize(
    "condition", [{"equals": "app/.env"}, {"one_of": ["./app/.env"]}, {"glob": "app/.e*"}], ids=str
)
def test_a_deny_of_a_relative_path_takes_every_path_that_may_be_it(condition: Mapping[str, Any]) -> None:
    """Only the server knows where it begins."""
    for value in (ENV, "app/.env", "/srv/./app/.env", "~/app/.env", f"file://{ENV}", "/srv/link"):
        assert effect_of(condition, value, known({"/srv/link": ENV})), value
        if value != "app/.env":
            assert not effect_of(condition, value, known(), of="allow"), value
    for value in ("/srv/app/x/.env", "/srv/xapp/.env", "other/app.env", "/app", "notes"):
        assert not effect_of(condition, value, known()), value


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_links_are_resolved_on_both_sides(condition: Mapping[str, Any]) -> None:
    # A link in the value leads to the file, and a link in the rule leads to where the value says that it is.
    assert effect_of(condition, "/tmp/x", known({"/tmp/x": ENV}))
    assert effect_of(condition, "/tmp/app/.env", known({"/tmp/app": "/srv/app"}))
    if condition != {"glob": "*.env"}:
        assert effect_of(condition, "/mnt/real/.env", known({"/srv/app": "/mnt/real"})) or "*/" in str(condition)
    assert not effect_of(condition, "/tmp/x", known({"/tmp/x": "/tmp/y"}))
    assert not effect_of(condition, "/tmp/x", known({"/tmp/x": ENV}), of="allow") or condition == {"under": ENV}


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
@pytest.mark.parametrize("value", ["/srv/app/.ENV", "/SRV/App/.env", "/srv/APP/./.Env/"])
def test_case_counts_only_where_the_file_system_says_so(condition: Mapping[str, Any], value: str) -> None:
    assert effect_of(condition, value, known(folding="/"))
    if condition != {"glob": "*.env"} or not value.endswith("env"):
        assert not effect_of(condition, value, known(folding="/"), of="allow")
        assert not effect_of(condition, value, known())


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_a_path_that_nobody_can_resolve_is_denied_and_not_allowed(condition: Mapping[str, Any]) -> None:
    unknown = Known(lambda _: None)
    assert effect_of(condition, "/dead/drive/x", unknown)
    assert not effect_of(condition, "/dead/drive/x", unknown, of="allow")


def test_an_allow_of_a_pattern_does_not_go_up() -> None:
    pattern = {"glob": "/home/ada/notes/*"}
    assert effect_of(pattern, "/home/ada/notes/a", known(), of="allow")
    assert effect_of(pattern, "/home/ada/notes/b/../a", known(), of="allow")
    for value in ("/home/ada/notes/../.ssh/id", "/home/ada/notes/a/../../../x"):
        assert not effect_of(pattern, value, known(), of="allow")
        assert effect_of(pattern, value, known())


# --- hosts


@pytest.mark.parametrize(
    ("host_class", "hosts"),
    [
        (
            "loopback",
            [
                *(
                    "127.0.0.1",
                    "127.255.0.3",
                    "0.0.0.0",
                    "0.1.2.3",
                    "[::1]",
                    "[::]",
                    "[::ffff:127.0.0.1]",
                    "[::ffff:0:0]",
                ),
                *("[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::1]"),
                *(
                    "2130706433",
                    "017700000001",
                    "0x7f000001",
                    "0x7f.0.0.1",
                    "0177.0.0.1",
                    "127.1",
                    "127.0.1",
                    "0",
                    "0x0",
                ),
                *("localhost", "LocalHost", "localhost.", "a.b.localhost", "localhost.localdomain", "127.0.0.1."),
            ],
        ),
        (
            "private",
            ["10.0.0.1", "172.16.3.4", "192.168.0.1", "100.64.0.1", "[fd12::1]", "[::ffff:192.168.0.1]", "10.1"],
        ),
        ("link_local", ["169.254.169.254", "[fe80::1]", "[fe80::1%25eth0]", "[::ffff:a9fe:a9fe]", "2852039166"]),
    ],
)
def test_a_class_of_hosts_has_every_spelling_of_an_address(host_class: str, hosts: list[str]) -> None:
    public = Known(addresses=lambda _: ("93.184.216.34",))
    for host in hosts:
        for url in (f"http://{host}/", f"https://u:p@{host}:8443/x", f"gopher://{host}/"):
            assert effect_of({"host": host_class}, url, public), url
    for host in ("93.184.216.34", "example.com", "172.32.0.1", "[2606:4700::1]", "xn--bcher-kva.example"):
        assert not effect_of({"host": host_class}, f"http://{host}/", public), host


@pytest.mark.parametrize(
    ("found", "denied"),
    [
        (("127.0.0.1",), True),
        (("93.184.216.34", "::1"), True),
        (("fe80::1%eth0",), False),
        (("::ffff:127.0.0.1",), True),
        (("93.184.216.34",), False),
        ((), False),
        (None, True),  # nobody knows
    ],
)
def test_a_name_is_where_it_leads_for_a_deny_and_never_for_an_allow(
    found: tuple[str, ...] | None, denied: bool
) -> None:
    looked_up = Known(addresses={"name.example": found}.get)
    assert effect_of({"host": "loopback"}, "http://name.example/", looked_up) is denied
    assert effect_of({"host": "loopback"}, "http://name.example/", looked_up, of="ask") is denied
    assert not effect_of({"host": "loopback"}, "http://name.example/", looked_up, of="allow")
    assert effect_of({"host": "loopback:8080"}, "http://localhost:8080/", looked_up, of="allow")
    assert not effect_of({"host": "loopback:8080"}, "http://localhost:8081/", looked_up, of="allow")


@pytest.mark.parametrize(
    "address",
    ["ben@example.com", "BEN@example.com", "ben+x@EXAMPLE.com", "<ben@example.com>", "a@b.org, ben@example.com"],
)
def test_a_deny_of_a_mailbox_knows_its_spellings(address: str) -> None:
    assert effect_of({"mail": "ben@example.com"}, address, known())
    assert effect_of({"mail": "ben@example.com"}, address, known(), of="allow") == (address == "ben@example.com")
    assert not effect_of({"mail": "ben@example.com"}, "ann@example.com", known())
    assert not effect_of({"mail": "*@*.example.com"}, "ann@example.com", known())
    assert effect_of({"mail": "*@*.example.com"}, "ann@a.b.example.com", known(), of="allow")


# --- what is looked up


def test_real_links_and_real_names_are_followed(tmp_path: Path) -> None:
    secret, link, folder = tmp_path / "secret" / ".env", tmp_path / "readme.md", tmp_path / "docs"
    secret.parent.mkdir()
    secret.write_text("KEY=1")
    link.symlink_to(secret)
    folder.symlink_to(secret.parent)
    by_name = rule("deny", {"glob": "*.env"})
    by_link = rule("deny", {"glob": f"{folder}/*"})
    for rules, path in [((by_name,), link), ((by_name,), f"{folder}/.env/"), ((by_link,), secret), ((by_link,), link)]:
        call = RuledCall(TOOL, {"x": str(path)})
        assert decide(rules, call, NOW, RuleCounters(), known_now(rules, call)) is not None
    call = RuledCall(TOOL, {"x": str(tmp_path / "other.md")})
    assert decide((by_name,), call, NOW, RuleCounters(), known_now((by_name,), call)) is None


def test_no_way_to_a_file_gets_past_a_deny(tmp_path: Path) -> None:
    """Whatever the system itself opens as the secret is denied, by each way to say so."""
    root = tmp_path / "r"
    secret = root / "app" / ".env"
    secret.parent.mkdir(parents=True)
    secret.write_text("KEY=1")
    (root / "notes").mkdir()
    (root / "link").symlink_to(root / "app")
    (root / "notes" / "up").symlink_to("../link/.env")
    (root / "app" / "self").symlink_to(".")
    denies = [
        rule("deny", {"glob": "*/.env"}),
        rule("deny", {"glob": f"{root}/link/*"}),
        rule("deny", {"equals": str(secret)}),
        rule("deny", {"one_of": [str(root / "notes" / "up")]}),
        rule("deny", {"under": str(root / "link")}),
    ]
    steps = ["app", "link", "self", "notes", "up", "..", ".", "", ".env", "r"]
    ways, chance = 0, random.Random(3)
    for _ in range(20_000):
        text = "/".join([str(root), *chance.choices(steps, k=chance.randint(1, 6))])
        text += chance.choice(["", "/", "/.", "//"])
        trimmed = re.sub(r"(/\.?)+$", "", text)  # many programs cut that off
        if any(os.path.exists(each) and os.path.samefile(each, secret) for each in (text, trimmed)):
            ways += 1
            call = RuledCall(TOOL, {"x": text})
            for each in denies:
                assert decide((each,), call, NOW, RuleCounters(), known_now((each,), call)) is not None, (text, each)
    assert ways > 50


def test_a_file_system_that_takes_both_cases_for_one_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert not folds_case(str(tmp_path / "plain" / "none" / "x"))
    (tmp_path / "Both").write_text("x")
    os.link(tmp_path / "Both", tmp_path / "bOTH")  # what a file system without case shows
    assert folds_case(str(tmp_path / "Both"))
    (tmp_path / "Link").mkdir()
    (tmp_path / "lINK").symlink_to(tmp_path / "Link")
    assert not folds_case(str(tmp_path / "Link" / "x")), "a link says nothing about the file system"


def test_names_are_looked_up_and_a_name_without_an_address_is_unknown() -> None:
    found = addresses_of(["localhost", "no-such-name.invalid", "x" * 300, "\udc80"])
    assert found["localhost"] is not None and {"127.0.0.1", "::1"} & set(found["localhost"])
    assert [found[name] for name in list(found)[1:]] == [None, None, None]


def verdicts(
    find: Callable[[Sequence[str]], Mapping[str, tuple[str, ...] | None]], seconds: float = DEADLINE
) -> RuleStore:
    store = RuleStore(resolve_seconds=seconds, find_addresses=find)
    store.use_config(parse_rules([{"effect": "deny", "args": {"x": {"host": "loopback"}}}])[0])
    return store


async def test_only_names_are_looked_up_and_only_if_a_rule_needs_it() -> None:
    asked: list[str] = []

    def find(names: Sequence[str]) -> dict[str, tuple[str, ...] | None]:
        asked.extend(names)
        return dict.fromkeys(names, ("127.0.0.1",))

    store = verdicts(find)
    for value in ("http://127.0.0.1/", "http://8.8.8.8/", "http://localhost/", "http://0x7f.1/", "plain", 7, "/etc"):
        await store.verdict(RuledCall(TOOL, {"x": value}))
    assert asked == []
    verdict = await store.verdict(RuledCall(TOOL, {"x": "http://name.example/"}))
    assert verdict is not None and verdict.effect == "deny" and asked == ["name.example"]
    # A name server would learn of a call that is not made.
    classes, everything = {"effect": "deny", "args": {"x": {"host": "loopback"}}}, {"effect": "deny", "tool": "read"}
    store.use_config(parse_rules([classes, everything])[0])
    verdict = await store.verdict(RuledCall(TOOL, {"x": "http://my-secret.evil.example/"}))
    assert verdict is not None and verdict.effect == "deny" and asked == ["name.example"]
    store.use_config(parse_rules([{"effect": "allow", "args": {"x": {"host": "loopback"}}}])[0])
    assert await store.verdict(RuledCall(TOOL, {"x": "http://name.example/"})) is None
    assert asked == ["name.example"], "an allow never relies on it"


async def test_a_resolver_that_does_not_answer_holds_up_nobody_and_nothing_is_allowed() -> None:
    wait = threading.Event()

    def find(names: Sequence[str]) -> dict[str, tuple[str, ...] | None]:
        wait.wait(DEADLINE)
        return dict.fromkeys(names, ("93.184.216.34",))

    store = verdicts(find, seconds=0.05)
    store.use_config(
        parse_rules(
            [
                {"effect": "deny", "args": {"x": {"host": "loopback"}}},
                {"effect": "deny", "args": {"p": {"glob": "*.env"}}},
            ]
        )[0]
    )
    try:
        for _ in range(20):  # more than there are threads for names
            verdict = await store.verdict(RuledCall(TOOL, {"x": "http://name.example/"}))
            assert verdict is not None and verdict.effect == "deny"
        assert await store.verdict(RuledCall(TOOL, {"p": "/srv/readme.md"})) is None, "paths have threads of their own"
        with anyio.fail_after(DEADLINE):
            assert await anyio.to_thread.run_sync(lambda: 1) == 1
    finally:
        wait.set()


async def test_this_machine_is_denied_by_its_own_name() -> None:
    """With the real resolver: whatever it says about our name, or that it says nothing, no rule allows it."""
    store = RuleStore()
    store.use_config(
        parse_rules([{"effect": "deny", "args": {"x": {"host": ["loopback", "private", "link_local"]}}}])[0]
    )
    found = addresses_of([socket.gethostname()])[socket.gethostname()]
    verdict = await store.verdict(RuledCall(TOOL, {"x": f"http://{socket.gethostname()}:80/"}))
    is_near = found is None or any(
        address.startswith(("127.", "10.", "172.", "192.168.", "169.254.", "::1", "f")) for address in found
    )
    assert (verdict is not None) or not is_near
