"""Which requests come in, by the headers that a page cannot choose."""

import pytest

from a2c_smcp.web.hosts import OwnOrigins
from a2c_smcp.web.page_gate import policy, refusal

OURS = OwnOrigins({"http://127.0.0.1:8000", "http://localhost:8000"})


def status(method: str = "GET", *, is_api: bool = True, **headers: str) -> int | None:
    given = [(name.replace("_", "-"), value) for name, value in {"host": "127.0.0.1:8000", **headers}.items()]
    found = refusal(given, OURS, method=method, is_api=is_api)
    return None if found is None else found.status


def test_our_own_page_comes_in() -> None:
    assert status() is None
    assert status(sec_fetch_site="same-origin") is None
    assert status("POST", origin="http://127.0.0.1:8000", sec_fetch_site="same-origin") is None
    assert status(host="LOCALHOST:8000", origin="http://localhost:8000") is None


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:8001", "127.0.0.1:8000.evil.example", ""])
def test_another_name_or_port_in_host_is_refused(host: str) -> None:
    assert status(host=host) == 421


def test_a_request_needs_exactly_one_host() -> None:
    assert refusal([], OURS, method="GET", is_api=False) is not None
    two = [("host", "127.0.0.1:8000"), ("host", "localhost:8000")]
    assert refusal(two, OURS, method="GET", is_api=False) is not None


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "http://127.0.0.1:8001", "https://127.0.0.1:8000", "null", "http://localhost:8000"],
)
def test_a_page_of_another_origin_is_refused(origin: str) -> None:
    assert status(origin=origin) == 403
    assert status("POST", origin=origin) == 403


def test_what_changes_something_says_where_it_comes_from() -> None:
    assert status("POST") == 403
    assert status("DELETE") == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_page_asks_for_is_refused_but_a_link_to_the_page_is_not(site: str) -> None:
    assert status(sec_fetch_site=site) == 403
    assert status(sec_fetch_site=site, is_api=False) is None


def test_the_policy_allows_our_own_files_and_nothing_inline_but_the_import_map() -> None:
    rules = dict(rule.split(" ", 1) for rule in policy("abc=").split("; "))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["script-src"] == "'self' 'sha256-abc='"
    assert rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["img-src"] == "'self' data:"
