"""Which proxy: the option, the environment, and what they leave out."""

from typing import Any

import pytest

from a2c_smcp.errors import BadRequestError
from a2c_smcp.link.proxies import Proxy, find_proxy

OFFICE = "https://office.example"
P = "http://proxy.corp:3128"


def found(url: str = OFFICE, wanted: str | None = None, **environ: str) -> str | None:
    proxy = find_proxy(url, wanted, environ)
    return None if proxy is None else str(proxy)


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        (OFFICE, {}, None),
        (OFFICE, {"HTTPS_PROXY": P}, P),
        (OFFICE, {"https_proxy": P, "HTTPS_PROXY": "http://other"}, P),
        ("wss://office.example", {"HTTPS_PROXY": P}, P),
        (OFFICE, {"HTTP_PROXY": P}, None),
        (OFFICE, {"ALL_PROXY": P}, P),
        (OFFICE, {"ALL_PROXY": "socks5://s:1", "HTTPS_PROXY": P}, P),
        ("http://office.example", {"HTTPS_PROXY": P}, None),
        ("http://office.example", {"http_proxy": P}, P),
        ("http://office.example:7000", {"all_proxy": P}, P),
        (OFFICE, {"HTTPS_PROXY": "  "}, None),
        (OFFICE, {"HTTPS_PROXY": "proxy.corp:3128"}, P),
        (OFFICE, {"HTTPS_PROXY": "https://[2001:db8::1]"}, "https://[2001:db8::1]:443"),
        ("http://127.0.0.1:7000", {"ALL_PROXY": P}, None),
        ("http://localhost:7000", {"ALL_PROXY": P}, None),
        ("https://[::1]:7000", {"ALL_PROXY": P}, None),
        ("https://office.example:port", {"ALL_PROXY": P}, None),
    ],
)
def test_the_environment_says_which(url: str, environ: Any, proxy: str | None) -> None:
    assert found(url, **environ) == proxy


@pytest.mark.parametrize(
    ("no_proxy", "url", "direct"),
    [
        ("office.example", OFFICE, True),
        (".example", OFFICE, True),
        ("*.example", OFFICE, True),
        ("example", "https://EXAMPLE.", True),
        ("a.corp, office.example ,b.corp", OFFICE, True),
        ("a.corp office.example", OFFICE, True),
        ("*", OFFICE, True),
        ("office.example:443", OFFICE, True),
        ("office.example:8443", OFFICE, False),
        ("ice.example", OFFICE, False),
        ("office.example.org", OFFICE, False),
        ("", OFFICE, False),
        (".", OFFICE, False),
        ("10.0.0.0/8", "https://10.1.2.3", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.1.2.3", "https://10.1.2.3", True),
        ("2.3", "https://10.1.2.3", False),
        ("10.1.2.3:8443", "https://10.1.2.3", False),
        ("[2001:db8::1]:443", "https://[2001:db8::1]", True),
        ("2001:db8::1", "https://[2001:db8::1]", True),
        ("2001:db8::/32", "https://[2001:db8::2]", True),
        ("not/a/network", "https://10.1.2.3", False),
    ],
)
def test_no_proxy_leaves_hosts_out(no_proxy: str, url: str, direct: bool) -> None:
    assert (found(url, ALL_PROXY=P, NO_PROXY=no_proxy) is None) is direct


def test_the_option_overrides_the_environment_also_for_this_machine() -> None:
    assert found(OFFICE, P, HTTPS_PROXY="http://other", NO_PROXY="*") == P
    assert found("http://127.0.0.1:7000", P) == P
    assert found(OFFICE, "", HTTPS_PROXY=P) is None


@pytest.mark.parametrize("text", ["socks5://u:hunter2@h:1", "http://u:hunter2@", "http://u:hunter2@h:port", "http://["])
def test_a_proxy_that_cannot_be_used_is_an_error_that_says_where_it_stands_and_shows_no_password(text: str) -> None:
    for wanted, environ, where in ((text, {}, "the proxy "), (None, {"all_proxy": text}, "the proxy in all_proxy ")):
        with pytest.raises(BadRequestError, match=where) as caught:
            find_proxy(OFFICE, wanted, environ)
        assert "hunter2" not in str(caught.value)


def test_credentials_are_for_connecting_only() -> None:
    proxy = find_proxy(OFFICE, "http://ada:hunter2%40%3A@proxy.corp:3128", {})
    assert proxy == Proxy("http", "proxy.corp", 3128, "ada", "hunter2@:")
    assert "hunter2" not in f"{proxy} {proxy!r}"
    assert proxy is not None and proxy.url == "http://ada:hunter2%40%3A@proxy.corp:3128"
    assert Proxy("http", "h", 80, "ada").url == "http://ada:@h:80"
    assert Proxy("http", "h", 80).url == "http://h:80"
