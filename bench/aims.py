"""What the figures should come to: most of them are ratios of one run."""

from collections.abc import Callable, Mapping

from bench import hosts, record, rules
from bench.report import Aim, Group

CALLS = "A tool call"
OFFICE = "One office of 1000 computers"
SLOW_WINDOWS = "Desktop, 8 servers × 5 windows, 50 ms each"
MANY_WINDOWS = "Desktop, 1 server × 100 windows"
FIRST_PAGES = "A first page of ours, beside the whole file by markitdown"
INSIDE = "A tool call inside one process, with NATS"
ACROSS = "A tool call across two processes"
HOSTS = "A tool call by an MCP host, through a2c mcp"
RULES = "A tool call under rules, in one process"
RECORDED = "A tool call with a record"
RECORD = "A record of 100,000 calls"
BUILD = "A build of 20 s fails, and the agent finds out why"
TERMINAL = "A terminal at full speed"
OUTLINE = "The outline of a tab"
BOOT = "Boot, ten MCP servers, one of which hangs"


def _ratio(title: str, metric: str) -> Callable[[Mapping[str, Group]], float | None]:
    return lambda groups: groups[title].ratio(metric) if title in groups else None


def _bridge(way: str) -> Callable[[Mapping[str, Group]], float | None]:
    """A host's call through the office, by our agent's call and a call of the kit's own tool together."""

    def measure(groups: Mapping[str, Group]) -> float | None:
        if HOSTS not in groups:
            return None
        ours, agent, kit = (_p50(groups[HOSTS], name) for name in (hosts.OURS[way], hosts.AGENT, hosts.KIT[way]))
        return ours / (agent + kit) if ours and agent and kit else None

    return measure


def _by_proxy(way: str) -> Callable[[Mapping[str, Group]], float | None]:
    def measure(groups: Mapping[str, Group]) -> float | None:
        if HOSTS not in groups:
            return None
        ours, proxy = (_p50(groups[HOSTS], name) for name in (hosts.OURS[way], hosts.PROXY[way]))
        return ours / proxy if ours and proxy else None

    return measure


def _p50(group: Group, contestant: str) -> float | None:
    return group.value(contestant, "p50, 100 B, ms")


def _boot(groups: Mapping[str, Group]) -> float | None:
    if BOOT not in groups:
        return None
    alone = groups[BOOT].value("ours", "the slowest alone, s")
    ten = groups[BOOT].value("ours", "ten, one hanging, s")
    return ten / alone if ten and alone else None


def _recorded(groups: Mapping[str, Group]) -> float | None:
    """How much more CPU a call takes with rules and a record, in µs."""
    if RECORDED not in groups:
        return None
    plain, both = (groups[RECORDED].value(name, record.CPU) for name in (record.WITHOUT, record.BOTH))
    return both - plain if plain and both else None


def _of_record(metric: str) -> Callable[[Mapping[str, Group]], float | None]:
    return lambda groups: groups[RECORD].value("ours", metric) if RECORD in groups else None


def _ours(title: str, metric: str) -> Callable[[Mapping[str, Group]], float | None]:
    return lambda groups: groups[title].value("ours", metric) if title in groups else None


def _thousand(groups: Mapping[str, Group]) -> float | None:
    return groups[RULES].value(rules.MANY, "deciding alone, ms") if RULES in groups else None


AIMS = [
    Aim("p50, 100 B, one at a time", 0.48, _ratio(CALLS, "p50, 100 B, ms")),
    Aim("p50, 100 KB, one at a time", 0.48, _ratio(CALLS, "p50, 100 KB, ms")),
    Aim("calls/s, 100 B, 64 in flight", 2.2, _ratio(CALLS, "calls/s, 100 B, 64 in flight"), at_least=True),
    Aim("CPU of the three roles, 100 B", 0.45, _ratio(CALLS, "CPU s per 1,000 calls, all three")),
    Aim("a2c mcp over stdio, by our agent and the kit", 1.2, _bridge("stdio")),
    Aim("a2c mcp over HTTP, by our agent and the kit", 1.2, _bridge("http")),
    Aim("a2c mcp over stdio, by FastMCP's proxy", 0.9, _by_proxy("stdio")),
    Aim("a2c mcp over HTTP, by FastMCP's proxy", 0.9, _by_proxy("http")),
    Aim("ack of the 1,000th join", 0.05, _ratio(OFFICE, "ack of the last join, ms")),
    Aim("broadcast to 999, server CPU", 0.4, _ratio(OFFICE, "broadcast, server CPU, ms")),
    Aim("desktop, 8 × 5 windows of 50 ms", 0.05, _ratio(SLOW_WINDOWS, "p50, ms")),
    Aim("desktop, 1 × 100 windows", 0.4, _ratio(MANY_WINDOWS, "p50, ms")),
    Aim("first page of a PDF, by markitdown's whole file", 0.2, _ratio(FIRST_PAGES, "PDF of 500 pages, ms")),
    Aim("first page of a sheet, by markitdown's whole file", 0.2, _ratio(FIRST_PAGES, "sheet of 100,000 rows, ms")),
    Aim("p50 inside one process, with NATS by without", 1.05, _ratio(INSIDE, "p50, 100 B, ms")),
    Aim("p50 across two processes, by one", 1.7, _ratio(ACROSS, "p50, 100 B, ms")),
    Aim("CPU of both servers, by one", 2.5, _ratio(ACROSS, "CPU s per 1,000 calls, servers")),
    Aim("deciding by 1,000 rules", 5, _thousand, unit=" ms"),
    Aim("CPU of a call more with rules and record", 50, _recorded, unit=" µs"),
    Aim("search in a record of 100,000 calls", 50, _of_record(record.NOTHING_FOUND), unit=" ms"),
    Aim("size of a record of 100,000 calls", 40, _of_record("MB"), unit=" MB"),
    Aim("boot of ten, one hanging, by the slowest alone", 1.1, _boot),
    Aim("100 MB through a terminal", 60, _ours(TERMINAL, "100 MB through a terminal, s"), unit=" s"),
    Aim(
        "CPU of the computer meanwhile, of a core",
        5,
        _ours(TERMINAL, "CPU of the computer meanwhile, % of a core"),
        unit=" %",
    ),
    Aim("the outline of a tab of 5,000 nodes", 50, _ours(OUTLINE, "5,000 nodes, ms"), unit=" ms"),
    Aim("the outline of a tab of 200,000 nodes", 50, _ours(OUTLINE, "200,000 nodes, ms"), unit=" ms"),
]
