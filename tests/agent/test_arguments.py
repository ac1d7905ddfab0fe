"""A tool's parameters as a person types them."""

import io
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.agent.arguments import read_params


@pytest.mark.parametrize(
    ("words", "params"),
    [
        ([], {}),
        (['{"text": "hi", "n": [1]}'], {"text": "hi", "n": [1]}),
        (["text=hi", "n=3", "deep=true", "list=[1, 2]"], {"text": "hi", "n": 3, "deep": True, "list": [1, 2]}),
        (["text=", "formula=a=b", "id=007"], {"text": "", "formula": "a=b", "id": "007"}),
        (['text="3"', "nan=NaN"], {"text": "3", "nan": "NaN"}),
    ],
)
def test_parameters_in_every_form(words: list[str], params: dict[str, Any]) -> None:
    assert read_params(words) == params


def test_parameters_from_a_file_and_from_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "params.json").write_text('{"text": "你好"}', "utf-8")
    assert read_params([f"@{tmp_path / 'params.json'}"]) == {"text": "你好"}
    monkeypatch.setattr("sys.stdin", io.StringIO('{"a": 1}'))
    assert read_params(["@-"]) == {"a": 1}


@pytest.mark.parametrize("words", [["hi"], ["{"], ["[1]"], ["=1"], ["a=1", "a=2"], ['{"a": 1}', "b=2"], ["a=1", "@f"]])
def test_anything_else_is_refused(words: list[str]) -> None:
    with pytest.raises(ValueError):
        read_params(words)


def test_a_file_that_holds_no_object_or_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(ValueError):
        read_params([f"@{tmp_path / 'list.json'}"])
    with pytest.raises(OSError, match="missing"):
        read_params([f"@{tmp_path / 'missing'}"])
