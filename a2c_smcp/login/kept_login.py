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
    scope: str | None = None
    """What was asked for, separated by blanks. `None`: kept by a release that asked nobody whether issuer, audience and
    client are right for this server. Such a login is not used."""

    @property
    def problem(self) -> str | None:
        """Why it is not used; `None` if it is."""
        if self.scope is not None:
            return None
        return (
            f"the sign-in at {self.url} is from an earlier release, which asked nobody whether the issuer {self.issuer}"
            f" and the audience {self.resource} are right for this server; it is not used"
        )

    def written(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, content: bytes) -> Self:
        """What `written` has made. Raises `ValueError` for anything else."""
        value = json.loads(content)
        texts = {each.name for each in fields(cls)} - {"expires_at"}
        optional = {"refresh_token", "revocation_endpoint", "scope"}
        if not isinstance(value, dict) or {*value, "scope"} != texts | {"expires_at"}:
            raise ValueError("not a kept login")
        for name in texts & {*value}:
            if not (isinstance(value[name], str) or (name in optional and value[name] is None)):
                raise ValueError(f"{name} is not text")
        if isinstance(value["expires_at"], bool) or not isinstance(value["expires_at"], int | float):
            raise ValueError("expires_at is not a number")
        return cls(**value)

    def _token_in(self, answer: Mapping[str, Any]) -> str | None:
        """The token for the server: the access token, or the ID token if only the issuer can read the access token.
        It must be for the audience that was agreed to: an issuer may give another one than was asked for, and the
        server could use that elsewhere.
        """
        given = [answer.get("access_token"), answer.get("id_token")]
        return next((each for each in given if isinstance(each, str) and self._is_meant(each)), None)

    def _is_meant(self, token: str) -> bool:
        if not looks_like_token(token):
            return False
        claims = token_claims(token)
        issuer, audience = claims.get("iss"), claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        is_of = isinstance(issuer, str) and issuer.rstrip("/") == self.issuer.rstrip("/")
        return is_of and self.resource in audiences

    def is_fresh(self, now: float) -> bool:
        """Whether the token has so much time left that it need not be renewed."""
        claims = token_claims(self.token)
        since = claims.get("iat")
        life = self.expires_at - since if isinstance(since, int | float) else _MOST_SECONDS
        return self.expires_at - now > min(_MOST_SECONDS, max(life, 0.0) * _LAST_PART)

    def with_answer(self, answer: Mapping[str, Any], now: float) -> Self | None:
        """The login with the tokens of an issuer's answer; `None` if none of them is what was asked for."""
        if (token := self._token_in(answer)) is None:
            return None
        refresh = answer.get("refresh_token")
        return replace(
            self,
            token=token,
            expires_at=_end_of(token, answer, now),
            refresh_token=refresh if isinstance(refresh, str) and refresh else self.refresh_token,
        )


def _end_of(token: str, answer: Mapping[str, Any], now: float) -> float:
    seconds = answer.get("expires_in")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and token == answer.get("access_token"):
        return now + float(seconds)
    # `expires_in` is about the access token. An ID token has its end in its claims.
    return float(token_claims(token)["exp"]) if renewal_pause(token, now) is not None else now
