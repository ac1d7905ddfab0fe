"""Secrets in the text of an entry: never shown, and back in their places when the text is saved."""

import pytest

from a2c_smcp.computer.config.entry_secrets import masked_entry, unmasked_entry
from a2c_smcp.errors import BadRequestError

ENTRY = """{
  // keys of mine
  "command": "x",
  "env": {"KEY": "s3cret", /* from the vault */ "OTHER": "${input:other}", "url": "u:p@ss", "N": "n\\u00e9"}
}"""
REMOTE = '{"url": "https://me:pw@h.example/mcp?k=s3cret&t=${env:T}", "headers": {"Authorization": "Bearer s3cret"}}'


def test_values_are_hidden_and_placeholders_names_and_comments_are_shown() -> None:
    shown = masked_entry(ENTRY)
    assert shown == ENTRY.replace('"s3cret"', '"***"').replace('"u:p@ss"', '"***"').replace('"n\\u00e9"', '"***"')
    assert unmasked_entry(shown, ENTRY) == ENTRY


@pytest.mark.parametrize("entry", [REMOTE, f'{{"type": "sse", "server_parameters": {REMOTE}}}'])
def test_the_user_and_the_query_of_a_url_are_hidden_in_both_shapes(entry: str) -> None:
    shown = masked_entry(entry)
    assert "s3cret" not in shown and "pw" not in shown and "h.example/mcp" in shown and "${env:T}" in shown
    assert unmasked_entry(shown, entry) == entry


def test_the_secrets_of_oauth_are_hidden_and_its_other_keys_are_shown() -> None:
    oauth = '{"client_id": "me", "client_secret": "s3cret", "private_key": "${input:key}"}'
    entry = f'{{"url": "https://h.example/mcp", "oauth": {oauth}}}'
    shown = masked_entry(entry)
    assert shown == entry.replace("s3cret", "***")
    assert unmasked_entry(shown, entry) == entry


def test_what_was_typed_is_kept_and_what_was_left_alone_comes_back() -> None:
    shown = masked_entry(ENTRY)
    typed = shown.replace('"KEY": "***"', '"KEY": "new"').replace('"command": "x"', '"command": "y"')
    saved = unmasked_entry(typed, ENTRY)
    assert '"KEY": "new"' in saved and '"url": "u:p@ss"' in saved and '"command": "y"' in saved


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ('{"env": {"NEW": "***"}}', "env.NEW"),
        ('{"headers": {"KEY": "***"}}', "headers.KEY"),
        ('{"server_parameters": {"env": {"KEY": "***"}}}', "server_parameters.env.KEY"),
        ('{"env": {"OTHER": "***"}}', "env.OTHER"),
        ('{"url": "https://***@h.example"}', "url"),
    ],
)
def test_a_mask_at_a_place_that_had_no_secret_is_refused(typed: str, field: str) -> None:
    with pytest.raises(BadRequestError, match="type the value") as caught:
        unmasked_entry(typed, ENTRY)
    assert caught.value.details == {"field": field}
    with pytest.raises(BadRequestError, match="type the value"):
        unmasked_entry(typed, None)


def test_a_secret_of_one_address_is_not_sent_to_another() -> None:
    shown = masked_entry(REMOTE)
    with pytest.raises(BadRequestError, match="url"):
        unmasked_entry(shown.replace("h.example", "evil.example"), REMOTE)
