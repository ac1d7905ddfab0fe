"""What claims allow, when a token is replaced, and when an issuer is asked: decisions without a network."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.errors import ForbiddenError
from a2c_smcp.oidc.key_pacing import KeyPacing
from a2c_smcp.oidc.signing_keys import KeyBook, SigningKey
from a2c_smcp.oidc.token_rules import RulesFileError, TokenRules, load_rules
from a2c_smcp.server.offices import Grant
from a2c_smcp.utils.token_times import looks_like_token, renewal_pause, token_claims


def rules(*entries: dict[str, Any], **more: Any) -> TokenRules:
    return TokenRules.model_validate({"allow": entries, **more} if entries else more)


def test_without_entries_everybody_may_do_everything() -> None:
    allowed = rules().allowed({"sub": "x", "email": "x@example.com"})
    assert (allowed.name, sorted(allowed.roles)) == ("x@example.com", ["agent", "computer"])
    assert allowed.offices == ("*",)


@pytest.mark.parametrize(
    ("when", "fits"),
    [
        ({"groups": "staff"}, True),
        ({"groups": "st*"}, True),
        ({"groups": "Staff"}, False),
        ({"groups": "boss"}, False),
        ({"groups": "staff", "sub": "eve"}, False),
        ({"realm.roles": "a"}, True),
        ({"https://example.com/level": "3"}, True),
        ({"verified": "true"}, True),
        ({"missing": "*"}, False),
        ({"realm": "*"}, False),
    ],
)
def test_claims_fit_by_value_list_pattern_and_path(when: dict[str, str], fits: bool) -> None:
    claims = {
        "sub": "ada",
        "groups": ["staff", "other"],
        "realm": {"roles": ["a", "b"]},
        "https://example.com/level": 3,
        "verified": True,
    }
    made = rules({"when": when})
    if fits:
        made.allowed(claims)
    else:
        with pytest.raises(ForbiddenError, match="ada"):
            made.allowed(claims)


def test_a_claim_in_an_office_is_a_text_and_never_a_pattern() -> None:
    made = rules({"offices": ["home-{sub}", "lab"]}, {"roles": ["agent"], "offices": ["guests"]})
    assert made.allowed({"sub": "a*[b]?"}).offices == ("home-a[*][[]b][?]", "lab")
    nested = rules({"offices": ["{team.name}"]}, {"offices": ["guests"]})
    assert nested.allowed({"sub": "a", "team": {"name": "red"}}).offices == ("red",)
    assert nested.allowed({"sub": "a", "team": {"name": ["red"]}}).offices == ("guests",)


def test_a_claim_in_a_name_is_a_text_and_never_a_pattern() -> None:
    made = rules({"names": ["{email}", "bot-{sub}-*"]}, {"names": ["guest"]}, {})
    assert made.allowed({"sub": "a*[b]?", "email": "ada@example.com"}).names == (
        "ada@example.com",
        "bot-a[*][[]b][?]-*",
    )
    assert made.allowed({"sub": "ada"}).names == ("guest",)
    assert rules({}).allowed({"sub": "ada"}).names is None
    star = Grant(names=rules({"names": ["{sub}"]}).allowed({"sub": "*"}).names)
    assert star.bound and star.allows_name("*") and not star.allows_name("librarian")


def test_a_name_is_shown_on_one_line_and_is_not_long() -> None:
    shown = rules(name="nick").allowed({"sub": "a", "nick": "x\n\x1b[31m" + "y" * 500}).name
    assert "\n" not in shown
    assert "\x1b" not in shown
    assert len(shown) < 100


@pytest.mark.parametrize(
    "text",
    [
        "allow = 7",
        "[[allow]]\nrole = 'agent'",
        "leeway = 4000",
        "not toml",
        "[[allow]]\nnames = []",
        "[[allow]]\nnames = 'a'",
        "[[allow]]\nwhen = 3",
    ],
)
def test_a_file_with_a_mistake_is_refused_by_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(text)
    with pytest.raises(RulesFileError, match=r"rules\.toml"):
        load_rules(file)


def _token(**claims: Any) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'RS256'})}.{part(claims)}.c2ln"


def test_a_token_is_replaced_in_the_last_quarter_of_its_life() -> None:
    assert renewal_pause(_token(iat=1000, exp=1400), 1000) == 300
    assert renewal_pause(_token(iat=1000, exp=1400), 1500) is None
    assert renewal_pause(_token(iat=1000, exp=1400), 0) == 300  # the clock of this machine is late
    assert renewal_pause(_token(exp=True), 0) is None
    assert renewal_pause(_token(), 0) is None
    assert renewal_pause("a-key", 0) is None
    assert renewal_pause(None, 0) is None
    assert token_claims("aaaa.bbbb.cccc") == {}
    assert not looks_like_token("a.b")
    assert not looks_like_token("aaaa." + "b" * 40_000 + ".c")


def test_when_an_issuer_is_asked() -> None:
    book, key = KeyBook(KeyPacing(fresh=100, pause=5, retry=30, kept=1000)), SigningKey("a", frozenset({"RS256"}), None)
    assert book.pause(0.0) == 0
    book.asking(0.0)
    book.take([key], 0.0)
    assert book.find("a", "RS256", 50.0) == key
    assert book.find(None, "RS256", 50.0) == key
    assert book.find("a", "ES256", 50.0) is None
    assert book.find("b", "RS256", 50.0) is None
    assert book.pause(2.0) == 3
    assert not book.wants_refresh(99.0)
    assert book.wants_refresh(101.0)
    book.asking(101.0)
    book.failed("away")
    assert not book.wants_refresh(120.0)
    assert book.wants_refresh(132.0)
    assert book.find("a", "RS256", 900.0) == key
    assert book.find("a", "RS256", 1001.0) is None  # an outage of a day
