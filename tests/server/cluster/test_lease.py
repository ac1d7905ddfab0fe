from a2c_smcp.server.cluster.tenure import Lease


def test_a_lease_is_counted_from_before_it_was_asked_for_and_ends_here_before_it_does_at_nats() -> None:
    lease = Lease("p", 15, asked_at=100, revision=1)
    assert not lease.is_over(113)
    assert lease.is_over(114.9)
    assert lease.is_over(1000)


def test_a_renewal_makes_it_last_from_then_on() -> None:
    lease = Lease("p", 15, asked_at=100, revision=1)
    lease.renew(asked_at=110, revision=7)
    assert not lease.is_over(115) and lease.is_over(125)
    assert lease.revision == 7 and lease.renewed_at == 110
