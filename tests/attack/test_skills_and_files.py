"""What strangers do with skills, blobs and uploads, beside an honest pair that must not notice."""

import base64
import hashlib
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attack.harness import Pair, Target, honest_pair, target
from tests.attack.processes import A2C, Started, started
from tests.attack.test_computers import evil, memory
from tests.attack.test_members import Member, member

MEBIBYTE = 2**20
OFFICE, VICTIM = "attacked", "victim"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Target, Pair, Started]]:
    """A server, an honest pair, and in another office a computer with a skill of 8 MiB and a folder for uploads."""
    folder: Path = tmp_path_factory.mktemp("skills")
    skill = folder / "skills" / "draw"
    skill.mkdir(parents=True)
    (folder / "uploads").mkdir()
    (skill / "SKILL.md").write_text("---\ndescription: Draws.\n---\n")
    (skill / "large.bin").write_bytes(bytes(8 * MEBIBYTE))
    for name in (".skillenv", ".env.production", "prod.env"):
        (skill / name).write_text("topsecret")
    (folder / "secret.txt").write_text("topsecret")
    (skill / "link.txt").symlink_to(folder / "secret.txt")
    config = folder / "victim.json"
    config.write_text(json.dumps({"servers": [], "skills": "skills", "uploads": "uploads"}))
    with target(folder) as server, honest_pair(server) as pair:
        place = ["--url", server.url, "--office", OFFICE, "--name", VICTIM]
        command = ["env", f"XDG_STATE_HOME={folder}", A2C, "computer", "run", "--headless", "--config", str(config)]
        with started([*command, *place], folder / "victim.log") as victim:
            victim.says("is in office")
            yield server, pair, victim


def asked(it: Member, event: str, **fields: Any) -> Any:
    return it.ask(event, {"agent": "mallory", "req_id": "1", "computer": VICTIM, **fields})[0]


def test_an_agent_that_reads_and_puts_without_end_fills_neither_memory_nor_disk(
    scene: tuple[Target, Pair, Started],
) -> None:
    server, pair, victim = scene
    uploads, names = (
        server.folder / "uploads",
        ("link.txt", ".skillenv", ".env.production", "prod.env", "../../secret.txt", "a/../../../x", "\ud800"),
    )
    numbers, before, seen = itertools.count(), memory(victim), set[str]()
    chunk = base64.b64encode(bytes(200_000)).decode()
    begins = {"chunk_offset": 0, "eof": False, "blob": chunk, "total_size": 100 * MEBIBYTE, "sha256": "0" * 64}

    with member(server, "agent", "mallory", OFFICE) as it:

        def attack() -> None:
            until = time.monotonic() + 2
            while time.monotonic() < until:
                said = asked(it, "client:get_skill", name="draw", rel_path=names[next(numbers) % len(names)])
                seen.add(json.dumps(said))
                asked(it, "client:get_skill", name="draw", rel_path="large.bin")
                asked(it, "client:get_blob", blob_handle=f"guess-{next(numbers)}", chunk_offset=2**40)
                asked(it, "client:put_blob", **begins, name_hint=f"../../{next(numbers)}")

        pair.unharmed_by(attack)
        assert all("error" in json.loads(said) and "topsecret" not in said for said in seen)
        # All blobs together have 128 MiB, and four uploads may be open.
        assert memory(victim) - before < 128 + 64
        assert 0 < len(list(uploads.iterdir())) <= 4
    until = time.monotonic() + 20
    while list(uploads.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert not list(uploads.iterdir()), "its agent has gone"
    assert "Traceback" not in victim.log.read_text()


def test_an_agent_learns_no_path_of_the_computer_from_its_skills(scene: tuple[Target, Pair, Started]) -> None:
    server, _, _ = scene
    with member(server, "agent", "curious", OFFICE) as it:
        said = asked(it, "client:get_skills")
    assert [(skill["name"], skill["path"]) for skill in said["skills"]] == [("draw", "draw")]
    assert str(server.folder) not in repr(said)


def test_a_computer_that_promises_bytes_and_sends_others_costs_the_agent_little(
    scene: tuple[Target, Pair, Started],
) -> None:
    server, pair, _ = scene
    said = {"total_size": 100 * MEBIBYTE, "sha256": hashlib.sha256(b"").hexdigest()}
    meta = {"a2c_blob_handle": "h", "a2c_total_size": said["total_size"], "a2c_sha256": said["sha256"]}
    image = {"type": "image", "mimeType": "image/png", "data": "", "_meta": meta}
    first = {**said, "blob_handle": "h", "mime_type": "image/png", "chunk_offset": 0, "eof": False, "req_id": None}
    answers = {
        "client:tool_call": json.dumps({"content": [image] * 500, "isError": False}),
        "client:get_blob": json.dumps({**first, "blob": base64.b64encode(bytes(262_144)).decode()}),
        "client:get_tools": '{"tools":[]}',
    }
    with evil(server, "promises", answers) as computer:

        def attack() -> None:
            words = len(pair.agent.log.read_text())
            pair.agent.tell("also promises 3")
            pair.agent.says(r"ALSO (.*)\n", after=words)

        attack()
        pair.unharmed_by(attack)
        before = memory(pair.agent)
        attack()
        assert memory(pair.agent) - before < 60
        # The second chunk does not fit, and the other contents are over the limit of one result.
        assert 0 < computer.asked.count("client:get_blob") <= 3 * computer.asked.count("client:tool_call")
