"""Loggers are named like their modules, under `a2c_smcp`; the commands show them on stderr."""

import json
import logging
import re
from pathlib import Path

import pytest

import a2c_smcp
from a2c_smcp.utils.log_fields import with_fields
from a2c_smcp.utils.logs import LogFormat, configure_logging, say_in_json

PACKAGE = Path(a2c_smcp.__file__).parent
SOME_MODULE = logging.getLogger("a2c_smcp.some.module")


def test_every_logger_is_named_like_its_module_or_below_it() -> None:
    named = {
        (str(path.relative_to(PACKAGE)), name)
        for path in PACKAGE.rglob("*.py")
        for name in re.findall(r" = logging\.getLogger\((.*?)\)", path.read_text())
    }
    assert len(named) > 20
    assert {name for _, name in named} == {"__name__", 'f"{__name__}.libraries"'}, named


@pytest.mark.usefixtures("_own_handlers")
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_line_of_a_command_says_which_module_wrote_it(
    log_format: LogFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("info", log_format)
    SOME_MODULE.info("joined %s", "lab")
    logging.getLogger("another.library").info("not shown")
    [line] = capsys.readouterr().err.splitlines()
    if log_format == "json":
        said = json.loads(line)
        assert (said["logger"], said["level"], said["message"]) == ("a2c_smcp.some.module", "info", "joined lab")
    else:
        assert re.fullmatch(r"\d\d:\d\d:\d\d INFO    a2c_smcp\.some\.module: joined lab", line)


@pytest.mark.usefixtures("_own_handlers")
def test_the_level_of_the_package_holds_for_its_modules(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("error")
    SOME_MODULE.warning("too low")
    SOME_MODULE.error("high enough")
    logging.getLogger("a2c_smcp").setLevel(logging.DEBUG)
    SOME_MODULE.debug("now this too")
    said = [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == ["high enough", "now this too"]


@pytest.mark.usefixtures("_own_handlers")
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_words_of_others_have_no_power_over_who_reads_the_log(
    log_format: LogFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "a\x1b]0;b\x07\x9b\u202e\U000e0041"
    configure_logging("info", log_format)
    SOME_MODULE.info("they said %s", said)
    [line] = capsys.readouterr().err.splitlines()
    assert "they said a\\u001b]0;b\\u0007\\u009b\\u202e\\udb40\\udc41" in line
    assert log_format == "text" or json.loads(line)["message"] == f"they said {said}"


@pytest.mark.usefixtures("_own_handlers")
def test_fields_are_keys_of_a_json_line_and_replace_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("warning", "json")
    SOME_MODULE.warning("refused", extra=with_fields(office="lab", code=404, level="none", req_id=None, odd={1}))
    assert say_in_json(SOME_MODULE, "ready on http://x", event="ready")  # whatever the level
    line, announced = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["office"], line["code"], line["level"], line["odd"]) == ("lab", 404, "warning", "{1}")
    assert "req_id" not in line
    assert line["process"].startswith(f"{line['host']}:")
    assert (announced["event"], announced["level"]) == ("ready", "info")


@pytest.mark.usefixtures("_own_handlers")
def test_a_log_for_people_leaves_announcements_to_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    SOME_MODULE.info("joined", extra=with_fields(office="lab"))
    assert not say_in_json(SOME_MODULE, "ready")
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith("joined")


@pytest.mark.usefixtures("_own_handlers")
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_line_has_a_secret_of_somebody_else(log_format: LogFormat, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", log_format)
    SOME_MODULE.info(
        'cannot reach http://ada:hunter2@host with {"password": "%s\\\\"} or token=%s', "hunter3", "hunter4"
    )
    try:
        raise ValueError("Authorization: Bearer hunter5-hunter6")
    except ValueError:
        SOME_MODULE.exception("failed")
    said = capsys.readouterr().err
    assert "hunter" not in said
    assert "http://ada:***@host" in said
    if log_format == "json":
        assert all(json.loads(line)["level"] for line in said.splitlines())
