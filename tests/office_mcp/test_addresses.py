"""`a2c://<computer>/…`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.office_mcp.addresses import Address, address_of, desktop_address, parse_address


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64),
    st.sampled_from(["window", "dpe"]),
    st.text("a/?=%é", min_size=1),
)
def test_an_address_is_read_back_byte_for_byte(computer: str, scheme: str, rest: str) -> None:
    uri = f"{scheme}://{rest}"
    address = address_of(computer, uri)
    assert address is not None
    assert parse_address(address) == Address(computer, uri)
    assert parse_address(desktop_address(computer)) == Address(computer)


@pytest.mark.parametrize("uri", ["file:///x", "http://x", "window", "", "dpe:/x"])
def test_only_windows_and_documents_have_one(uri: str) -> None:
    assert address_of("laptop", uri) is None


@pytest.mark.parametrize(
    "uri", ["", "a2c://", "a2c:///desktop", "a2c://laptop", "a2c://laptop/", "a2c://laptop/file/x", "a2c://laptop/dpe/"]
)
def test_what_is_none(uri: str) -> None:
    assert parse_address(uri) is None
