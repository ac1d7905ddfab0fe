"""Which addresses a server may send sign-ins to."""

import pytest

from a2c_smcp.oidc.addresses import Nearness, UnsafeAddressError, check_address, nearness


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("93.184.216.34", Nearness.PUBLIC),
        ("2606:2800:220:1::1", Nearness.PUBLIC),
        ("10.1.2.3", Nearness.PRIVATE),
        ("172.16.0.1", Nearness.PRIVATE),
        ("192.168.1.1", Nearness.PRIVATE),
        ("100.64.0.1", Nearness.PRIVATE),
        ("fd00::1", Nearness.PRIVATE),
        ("127.0.0.1", Nearness.LOOPBACK),
        ("::1", Nearness.LOOPBACK),
        ("::ffff:127.0.0.1", Nearness.LOOPBACK),
        ("::ffff:10.0.0.1", Nearness.PRIVATE),
        ("64:ff9b::a00:1", Nearness.PRIVATE),
        ("64:ff9b::5db8:d822", Nearness.PUBLIC),
        ("2002:7f00:1::", Nearness.LOOPBACK),
        ("169.254.169.254", Nearness.SPECIAL),
        ("fe80::1%eth0", Nearness.SPECIAL),
        ("0.0.0.0", Nearness.SPECIAL),
        ("::", Nearness.SPECIAL),
        ("224.0.0.1", Nearness.SPECIAL),
        ("255.255.255.255", Nearness.SPECIAL),
    ],
)
def test_how_near_an_address_is(address: str, expected: Nearness) -> None:
    assert nearness(address) is expected


@pytest.mark.parametrize("server", list(Nearness))
@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("93.184.216.34", Nearness.PUBLIC),
        ("10.0.0.1", Nearness.PRIVATE),
        ("127.0.0.1", Nearness.LOOPBACK),
        ("169.254.169.254", Nearness.SPECIAL),
    ],
)
def test_no_address_may_be_nearer_than_the_server(server: Nearness, address: str, place: Nearness) -> None:
    try:
        check_address("https://issuer.example/token", [address], server, has_secrets=True)
        is_allowed = True
    except UnsafeAddressError as error:
        assert "issuer.example" in str(error) and "/token" not in str(error)
        is_allowed = False
    assert is_allowed == (place <= server)


def test_one_inward_address_of_a_name_is_enough_to_refuse_it() -> None:
    with pytest.raises(UnsafeAddressError):
        check_address("https://two.example/", ["93.184.216.34", "127.0.0.1"], Nearness.PUBLIC, has_secrets=False)


def test_secrets_go_over_tls_but_to_this_computer() -> None:
    check_address("http://127.0.0.1:1/token", ["127.0.0.1"], Nearness.LOOPBACK, has_secrets=True)
    check_address("http://10.0.0.1/metadata", ["10.0.0.1"], Nearness.PRIVATE, has_secrets=False)
    with pytest.raises(UnsafeAddressError, match="https"):
        check_address("http://10.0.0.1/token", ["10.0.0.1"], Nearness.PRIVATE, has_secrets=True)
    with pytest.raises(UnsafeAddressError, match="https"):
        check_address("http://unknown.example/token", [], Nearness.PUBLIC, has_secrets=True)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "https://", "ftp://host/"])
def test_other_schemes_are_no_addresses(url: str) -> None:
    with pytest.raises(UnsafeAddressError):
        check_address(url, [], Nearness.LOOPBACK, has_secrets=False)
