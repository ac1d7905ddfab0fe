"""What a client is given to reach its server: checked before it tries."""

from typing import Any

import pytest

from a2c_smcp.errors import BadRequestError
from a2c_smcp.link.interface import LinkOptions


@pytest.mark.parametrize("options", [{"url": None}, {"url": "http://x", "api_key": 5}])
def test_options_that_are_no_texts_are_refused_at_once(options: Any) -> None:
    with pytest.raises(TypeError, match="must be a text"):
        LinkOptions(**options)


@pytest.mark.parametrize(
    "url",
    ["", "/", "http://", "http:///x", "ftp://x", "http://h:99999", "http://h:0", "http://h:x", "http://[::1", "http:x"],
)
def test_a_url_that_nothing_can_reach_is_refused_at_once(url: str) -> None:
    with pytest.raises(BadRequestError, match=r"must be an http:// or https:// URL with a host$"):
        LinkOptions(url)


@pytest.mark.parametrize("url", ["localhost:7000", "127.0.0.1:7000", "office.example", "[::1]:7000/behind/a/proxy"])
def test_without_a_scheme_the_url_that_was_meant_is_named(url: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        LinkOptions(url)
    assert refused.value.message.endswith(f"; did you mean http://{url}?")


@pytest.mark.parametrize("url", ["ada:hunter2@office.example", "office.example?key=hunter2", "ftp://ada:hunter2@h"])
def test_what_may_be_a_password_is_not_shown(url: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        LinkOptions(url)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("url", ["http://h", "HTTPS://h:443/x", "http://[::1]:7000", "http://ada:pw@h?x=1", "wss://h"])
def test_other_urls_are_for_the_connection_to_judge(url: str) -> None:
    assert LinkOptions(url).url == url
