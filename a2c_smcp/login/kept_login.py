"""What is kept of a sign-in at a server, as JSON. Pure: the clock is handed in."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, Self

from a2c_smcp.utils.token_times import looks_like_token, renewal_pause, token_claims

__all__ = ["KeptLogin"]

#: A token is renewed when less than this part of its life is left, but not earlier than so many seconds before its end.
_LAST_PART: Final = 0.3
_MOST_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class KeptLogin:
    """A sign-in at one server. Every address in it came from that server's issuer, when the person signed in."""

    url: str
    issuer: str
    client_id: str
    token_endpoint: str
    resource: str
    token: str = field(repr=False)
    expires_at: float
    """In seconds since 1970, by the clock of this machine."""
    refresh_token: str | None = field(default=None, repr=False)
    revocation_endpoint: str | None = None

    def written(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, content: bytes) -> Self:
        """What `written` has made. Raises `ValueError` for anything else."""
        value = json.loads(content)
        texts = {each.name for each in fields(cls)} - {"expires_at"}
        optional = {"refresh_token", "revocation_endpoint"}
        if not isinstance(value, dict) or set(value) != texts | {"expires_at"}:
            raise ValueError("not a kept login")
        for name in texts:
            if not (isinstance(value[name], str) or (name in optional and value[name] is None)):
                raise ValueError(f"{name} is not text")
        if isinstance(value["expires_at"], bool) or not isinstance(value["expires_at"], int | float):
            raise ValueError("expires_at is not a number")
        return cls(**value)

    def is_fresh(self, now: float) -> bool:
        """Whether the token has so much time left that it need not be renewed."""
        claims = token_claims(self.token)
        since = claims.get("iat")
        life = self.expires_at - since if isinstance(since, int | float) else _MOST_SECONDS
        return self.expires_at - now > min(_MOST_SECONDS, max(life, 0.0) * _LAST_PART)

    def with_answer(self, answer: Mapping[str, Any], now: float) -> Self | None:
        """The login with the tokens of an issuer's answer; `None` if it has no token that a server could check."""
        if (token := _usable_token(answer)) is None:
            return None
        refresh = answer.get("refresh_token")
        return replace(
            self,
            token=token,
            expires_at=_end_of(token, answer, now),
            refresh_token=refresh if isinstance(refresh, str) and refresh else self.refresh_token,
        )


def _usable_token(answer: Mapping[str, Any]) -> str | None:
    """The token for the server: the access token, or the ID token if only the issuer can read the access token; `None`
    if there is neither.
    """
    given = [answer.get("access_token"), answer.get("id_token")]
    return next((each for each in given if isinstance(each, str) and looks_like_token(each)), None)


def _end_of(token: str, answer: Mapping[str, Any], now: float) -> float:
    seconds = answer.get("expires_in")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and token == answer.get("access_token"):
        return now + float(seconds)
    # `expires_in` is about the access token. An ID token has its end in its claims.
    return float(token_claims(token)["exp"]) if renewal_pause(token, now) is not None else now
