"""The one table of which errors pass by themselves."""

import pytest

from a2c_smcp import errors
from a2c_smcp.relay.passing import RETRY_SECONDS, Passing, passes, passing_of


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (errors.InternalError("starting"), Passing.SOON),
        (errors.NameTakenError("taken"), Passing.SOON),
        (errors.ConnectionLostError("gone"), Passing.SOON),
        (errors.UncodedRefusalError("no"), Passing.SOON),
        (errors.NotFoundError("no such computer"), Passing.WITH_A_PEER),
        (errors.NotInRoomError("not in an office"), Passing.WITH_A_PEER),
        (errors.ForbiddenError("not for this key"), Passing.BY_A_PERSON),
        (errors.UnauthorizedError("wrong key"), Passing.BY_A_PERSON),
        (errors.SMCPError(4999, "a code without a class"), Passing.BY_A_PERSON),
    ],
)
def test_the_class_of_an_error_decides_how_it_passes(error: errors.SMCPError, passing: Passing) -> None:
    assert passing_of(error) is passing
    assert passes(error) is (passing is Passing.SOON)
    assert passing in RETRY_SECONDS


def test_a_subclass_without_a_row_is_like_its_parent() -> None:
    assert passing_of(errors.ProxyError("refused", "ask its administrator")) is Passing.SOON


def test_what_a_person_has_corrected_is_noticed_within_two_seconds() -> None:
    assert RETRY_SECONDS[Passing.BY_A_PERSON] <= 1.5  # and half a second to connect and join
