"""What browsers are called: words of ours, and each name once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2c_smcp.computer.console.device_names import DeviceNames, device_name
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS

_MOZILLA = "Mozilla/5.0"
_CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0"


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (f"{_MOZILLA} (X11; Linux x86_64) {_CHROME} Safari/537.36", "Chrome on Linux"),
        (f"{_MOZILLA} (X11; Linux x86_64) AppleWebKit/537.36 HeadlessChrome/140.0 Safari/537.36", "Chrome on Linux"),
        (f"{_MOZILLA} (Windows NT 10.0; Win64; x64) {_CHROME} Safari/537.36 Edg/140.0", "Edge on Windows"),
        (f"{_MOZILLA} (X11; CrOS x86_64 14541.0.0) {_CHROME} Safari/537.36", "Chrome on ChromeOS"),
        (f"{_MOZILLA} (Linux; Android 15; SM-S928B) {_CHROME} Mobile Safari/537.36", "Chrome on Android"),
        (f"{_MOZILLA} (Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0", "Firefox on Android"),
        (f"{_MOZILLA} (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile Safari/604.1", "Safari on iPhone"),
        (f"{_MOZILLA} (iPhone; CPU iPhone OS 18_0 like Mac OS X) CriOS/140.0 Safari/604.1", "Chrome on iPhone"),
        (f"{_MOZILLA} (Macintosh; Intel Mac OS X 10_15_7) Version/18.0 Safari/605.1.15", "Safari on macOS"),
        ("curl/8.5.0", "Unknown browser"),
        ("", "Unknown browser"),
        ("<b>terminal</b>\n\u202eLinux", "Unknown browser on Linux"),
    ],
)
def test_a_name_is_made_of_known_words(header: str, name: str) -> None:
    assert device_name(header) == name


@given(st.text(max_size=300))
@settings(deadline=None, derandomize=True)
def test_no_header_gets_its_own_words_into_a_name(header: str) -> None:
    name = device_name(header)
    assert name.isascii() and name.replace(" ", "").isalpha() and len(name) < CONSOLE_LIMITS.device_name_characters


def test_a_name_is_given_once_and_never_one_that_a_device_has() -> None:
    names = DeviceNames(["Chrome on Linux (2)"])
    given = [names.new("Chrome on Linux") for _ in range(3)]
    assert given == ["Chrome on Linux", "Chrome on Linux (3)", "Chrome on Linux (4)"]
    assert names.new("Firefox on Linux") == "Firefox on Linux"
