"""Real config files that are changed: in one step, where a link points, and never over somebody else's change."""

import os
import stat
from pathlib import Path

import pytest

from a2c_smcp.computer.config.files import load_config_files
from a2c_smcp.computer.config.writer import ConfigWriteError, ConfigWriter

TEXT = b'{\r\n\t// mine\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "x"} // the one\r\n\t}\r\n}\r\n'
ENTRY = '{\n  "command": "y"\n}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_bytes(TEXT)
    return path


def names(*paths: Path) -> list[str]:
    return [raw["name"] for raw in load_config_files(*paths).servers]


def test_a_server_goes_in_is_changed_and_goes_out_and_the_rest_of_the_bytes_stay(file: Path) -> None:
    file.chmod(0o640)
    writer = ConfigWriter([file], file)
    writer.write(writer.save({"b": ENTRY}, {}))
    assert file.read_bytes() == TEXT.replace(
        b"} // the one\r\n", b'}, // the one\r\n\t\t"b": {\r\n\t\t\t"command": "y"\r\n\t\t}\r\n'
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    writer.write(writer.save({"a": '{"command": "z"}'}, {}))
    writer.write(writer.remove("b"))
    assert file.read_bytes() == TEXT.replace(b'"x"', b'"z"')
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_link_stays_a_link_and_the_file_behind_it_changes(file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles"
    elsewhere.mkdir()
    real = file.rename(elsewhere / "mcp.json")
    file.symlink_to(real)
    writer = ConfigWriter([file], file)
    writer.write(writer.save({"b": ENTRY}, {}))
    assert file.is_symlink() and names(real) == ["a", "b"]


def test_a_read_only_file_and_what_is_no_file_are_refused(file: Path, tmp_path: Path) -> None:
    file.chmod(0o444)
    writer = ConfigWriter([file], file)
    with pytest.raises(ConfigWriteError, match="read-only; allow writing"):
        writer.save({"b": ENTRY}, {})
    with pytest.raises(ConfigWriteError, match="read-only; allow writing"):
        writer.remove("a")
    assert file.read_bytes() == TEXT
    with pytest.raises(ConfigWriteError, match="not an ordinary file"):
        ConfigWriter([tmp_path], tmp_path).save({"b": ENTRY}, {})
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigWriteError, match="not an ordinary file"):
        ConfigWriter([tmp_path / "pipe"], tmp_path / "pipe").save({"b": ENTRY}, {})


def test_a_change_of_somebody_else_is_not_overwritten(file: Path) -> None:
    writer = ConfigWriter([file], file)
    change = writer.save({"b": ENTRY}, {})
    file.write_bytes(TEXT.replace(b"mine", b"yours"))
    with pytest.raises(ConfigWriteError, match="changed meanwhile"):
        writer.write(change)
    assert b"yours" in file.read_bytes() and names(file) == ["a"]
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    gone = writer.save({"b": ENTRY}, {})
    file.unlink()
    with pytest.raises(ConfigWriteError, match="changed meanwhile"):
        writer.write(gone)
    assert not file.exists()


def test_a_file_that_is_not_there_is_made_for_its_owner_alone(file: Path) -> None:
    file.unlink()
    writer = ConfigWriter([file], file)
    writer.write(writer.save({"b": ENTRY}, {"k": '{"id": "k", "type": "promptString"}'}))
    assert names(file) == ["b"] and stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_server_is_changed_where_it_is_and_a_new_one_goes_to_the_first_file(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"mcpServers": {"b": {"command": "y"}}}')
    writer = ConfigWriter([file, other], file, prefix_tools=True)
    assert writer.save({"b": ENTRY}, {}).path == other
    assert writer.save({"c": ENTRY}, {}).path == file
    assert writer.save({"c": ENTRY}, {}).server("c")["tool_prefix"] == "c_"
    found = writer.find("b")
    assert found is not None and found.text == '{"command": "y"}' and "command" not in repr(found)
    with pytest.raises(ConfigWriteError, match="several files"):
        writer.save({"b": ENTRY, "c": ENTRY}, {})


def test_what_the_next_start_would_refuse_is_not_written(file: Path) -> None:
    writer = ConfigWriter([file], file)
    with pytest.raises(ConfigWriteError, match="no input 'k'"):
        writer.save({"b": '{"command": "${input:k}"}'}, {})
    change = writer.save({"b": '{"command": "${input:k}"}'}, {"k": '{"id": "k", "type": "promptString"}'})
    assert [definition.id for definition in change.files.inputs] == ["k"]
    with pytest.raises(ConfigWriteError, match="--config FILE"):
        ConfigWriter([], None).save({"b": ENTRY}, {})
