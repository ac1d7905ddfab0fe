"""`a2c://<computer>/…`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.agent.for_models.addresses import Address, Addresses, desktop_address

OFFICE, PC = Addresses(), Addresses("pc")


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64),
    st.sampled_from(["window://", "dpe://", "file:///", "ui://", "ui://a2c/", "a2c://", "urn:", "data:,", "", "~://"]),
    st.text("a/?=%é{}", min_size=1),
)
def test_an_address_is_read_back_byte_for_byte(computer: str, start: str, rest: str) -> None:
    uri = start + rest
    assert OFFICE.parse(OFFICE.of(computer, uri)) == Address(computer, uri)
    assert OFFICE.is_address(OFFICE.of(computer, uri))
    assert OFFICE.parse(desktop_address(computer)) == Address(computer)


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("window://fake/0?priority=1", "a2c://my%20pc/window/fake/0?priority=1"),
        ("test://template/{id}/data", "a2c://my%20pc/test/template/{id}/data"),
        ("file:///etc/hosts", "a2c://my%20pc/file//etc/hosts"),
        ("urn:isbn:1", "a2c://my%20pc/~/urn:isbn:1"),
        ("ui://shop/app.html", "ui://a2c/my%20pc/shop/app.html"),
    ],
)
def test_an_address_names_the_computer_and_keeps_the_rest(uri: str, address: str) -> None:
    assert OFFICE.of("my pc", uri) == address


@pytest.mark.parametrize(
    "uri",
    ["", "a2c://", "a2c:///desktop", "a2c://pc", "a2c://pc/", "a2c://pc//x", "a2c://pc/dpe/", "ui://a2c/pc", "x://y"],
)
def test_what_is_none(uri: str) -> None:
    assert OFFICE.parse(uri) is None


def test_the_resources_of_an_only_computer_keep_their_uris() -> None:
    for uri in ("test://x", "ui://shop/app.html", "ui://a2c/other/x", "urn:x", "window://a/b"):
        assert PC.of("pc", uri) == uri
        assert PC.parse(uri) == Address("pc", uri)
        assert PC.is_address(uri)
    assert PC.parse("a2c://pc/desktop") == Address("pc")
    assert PC.parse("a2c://pc/window/a") == Address("pc", "window://a")
    assert PC.parse("a2c://other/window/a") is None
    assert PC.parse("a2c://nonsense") is None
