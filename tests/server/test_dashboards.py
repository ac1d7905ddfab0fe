"""The dashboard and the alert rules of `deploy/` ask only for what a live server shows."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from a2c_smcp.server import OpenAuthentication
from a2c_smcp.server.boundary import outcome_of
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.port import DISCONNECT_REASONS
from tests.nats_server import NatsServer
from tests.server.cluster.test_app_on_nats import get
from tests.server.conftest import MakePeer
from tests.server.harness import async_server, eventually

DEPLOY = Path(__file__).parents[2] / "deploy"
#: Prometheus itself adds these to every sample.
ADDED = {"job", "instance"}
PAGE = (Path(__file__).parents[2] / "docs" / "operating.md").read_text("utf-8")


def dashboard_queries() -> Iterator[str]:
    for panel in json.loads((DEPLOY / "grafana" / "a2c-servers.json").read_text("utf-8"))["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


QUERIES = [*dashboard_queries(), *(rule["expr"] for rule in alerts())]


def nodes_of(query: str) -> list[Any]:
    found: list[Any] = []

    def note(node: Any) -> bool:
        found.append(node)
        return True

    # Grafana puts a variable's value into the text before Prometheus sees it.
    promql_parser.walk(promql_parser.parse(query.replace("$job", ".*")), note)
    return found


def selectors_of(query: str) -> dict[str, set[str]]:
    """The metrics of a query, each with the labels that the query asks of it."""
    found: dict[str, set[str]] = defaultdict(set)
    for node in nodes_of(query):
        if isinstance(node, promql_parser.MatrixSelector):
            node = node.vector_selector
        if isinstance(node, promql_parser.VectorSelector) and node.name:
            found[node.name] |= {matcher.name for matcher in node.matchers.matchers}
    return found


def grouping_of(query: str) -> set[str]:
    return {label.strip() for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", query) for label in labels.split(",")}


async def live_metrics(tmp_path: Path, make_peer: MakePeer) -> dict[str, set[str]]:
    """What a server on NATS shows after a call, a refusal and an end of a connection: metrics with their labels."""
    nats = NatsServer(tmp_path)
    nats.start()
    try:
        with async_server(OpenAuthentication(), cluster=ClusterOptions((nats.url,))) as server:
            await eventually(lambda: get(server, "/readyz")[0] == 200)
            agent = await make_peer(server)
            computer = await make_peer(server, setup=lambda peer: peer.answer("client:tool_call", lambda _: {}))
            await agent.call("server:join_office", {"role": "agent", "name": "a", "office_id": "o"})
            await computer.call("server:join_office", {"role": "computer", "name": "c", "office_id": "o"})
            call = {"agent": "a", "req_id": "1", "computer": "c", "tool_name": "t", "params": {}, "timeout": 5}
            await agent.call("client:tool_call", call)
            await agent.call("client:dance", {})
            text = get(server, "/metrics")[1]
    finally:
        nats.kill()
    shown: dict[str, set[str]] = defaultdict(set)
    for line in text.splitlines():
        if match := re.match(r"# TYPE (\w+) counter", line):
            shown[match[1]]  # a counter without a child yet has no line of its own
        elif match := re.match(r"(\w+)(?:\{(.*)\})? ", line):
            shown[match[1]] |= set(re.findall(r"(\w+)=\"", match[2] or ""))
    return shown


#: Counters that a healthy process on its own has no sample of. Their labels are checked by the tests of the bus.
UNSEEN = {"a2c_messages_dropped_across_total": {"reason"}, "a2c_messages_across_total": {"direction", "kind"}}


async def test_every_metric_and_label_of_every_query_is_shown_by_a_live_server(
    tmp_path: Path, make_peer: MakePeer
) -> None:
    shown = await live_metrics(tmp_path, make_peer)
    for name, labels in UNSEEN.items():
        assert name in shown, name
        shown[name] |= labels
    for query in QUERIES:
        metrics = selectors_of(query)
        assert metrics, query
        for name, labels in metrics.items():
            assert name in shown, f"{name} of {query}"
            assert labels - ADDED <= shown[name], f"{name} of {query}"
            assert grouping_of(query) - ADDED <= shown[name], f"{name} of {query}"


def test_queries_ask_for_outcomes_and_reasons_that_exist() -> None:
    known = {"answered", "error", "joined", "404", "500", "408", "other", "computer_gone", "process_gone"}
    known.add(outcome_of(None))
    for query in QUERIES:
        for outcomes in re.findall(r'outcome=~?"([^"]*)"', query):
            assert set(outcomes.split("|")) <= known
        for reason in re.findall(r'reason="([^"]*)"', query):
            assert reason in DISCONNECT_REASONS


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: str(rule["alert"]))
def test_every_alert_has_a_sentence_and_a_row_on_the_page(rule: dict[str, Any]) -> None:
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert f"`{rule['alert']}`" in PAGE
