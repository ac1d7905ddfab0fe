"""Which processes a computer that starts may end: those of a dead run of itself, and no others."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from a2c_smcp.computer.mcp_clients.pipes.leftovers import MARK, Owner, end_left_over, end_marked, is_left_over
from a2c_smcp.utils.system import HAS_GUARDIANS

ME = Owner(pid=100, started=5000, boot="b", namespace="n", computer="c")
DEAD = replace(ME, pid=50, started=400)


def processes(**started: int) -> Callable[[int], int | None]:
    """When the living processes have started."""
    return lambda pid: started.get(f"p{pid}")


@pytest.mark.parametrize(
    ("mark", "living", "ends"),
    [
        (DEAD.mark(1), {}, True),
        (DEAD.mark(7), {"p50": 401}, True),  # another process has its number now
        (DEAD.mark(1), {"p50": 400}, False),
        (ME.mark(1), {"p100": 5000}, False),
        (replace(DEAD, boot="before").mark(1), {}, False),
        (replace(DEAD, namespace="container").mark(1), {}, False),
        (replace(DEAD, computer="another").mark(1), {}, False),
        ("", {}, False),
        ("50.400.b.n.c", {}, False),
        ("-50.400.b.n.c.1", {}, False),
        ("x.y.b.n.c.1", {}, False),
        ("50.400.b.n.c.1.2", {}, False),
    ],
)
def test_only_what_a_dead_run_of_the_same_computer_left_is_ended(mark: str, living: dict[str, int], ends: bool) -> None:
    assert is_left_over(mark, ME, processes(**living)) is ends


def test_a_mark_tells_its_owner() -> None:
    assert Owner.of(ME.mark(3)) == ME


linux = pytest.mark.skipif(not HAS_GUARDIANS, reason="needs Linux")


def sleeping(mark: str | None) -> "subprocess.Popen[bytes]":
    program = "import sys, time; print(1, flush=True); time.sleep(3600)"
    env = {**os.environ, **({} if mark is None else {MARK: mark})}
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", program], env=env, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@linux
def test_names_and_folders_make_different_computers(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    here = Owner.here("pc")
    assert here == Owner.here("pc")
    assert here.computer != Owner.here("pc 2").computer
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert here.computer != Owner.here("pc").computer


@linux
def test_one_life_is_ended_and_no_other() -> None:
    me = Owner.here("a test of marks")
    with sleeping(me.mark(1)) as one, sleeping(me.mark(2)) as two, sleeping(None) as three:
        try:
            assert end_marked(me.mark(1)) == 1
            assert one.wait(30) < 0
            assert two.poll() is three.poll() is None
            assert end_marked(me.mark(1)) == 0
        finally:
            for each in (one, two, three):
                each.kill()


IN_A_TERMINAL = """
import os, subprocess, sys
from a2c_smcp.computer.mcp_clients.pipes.leftovers import Owner, end_left_over
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(3600)"])
try:
    print(end_left_over(Owner.here("a test of marks")), child.poll())
finally:
    child.kill()
"""


@linux
def test_a_computer_in_a_terminal_that_a_dead_one_showed_ends_neither_itself_nor_its_own() -> None:
    me = Owner.here("a test of marks")
    dead = replace(me, started=me.started - 1)
    with sleeping(dead.mark(1)) as left:
        program = [sys.executable, "-c", IN_A_TERMINAL]
        env = {**os.environ, MARK: dead.mark(1)}
        try:
            done = subprocess.run(program, env=env, stdout=subprocess.PIPE, timeout=60, check=True, text=True)
            assert done.stdout.split() == ["1", "None"]
            assert left.wait(30) < 0
        finally:
            left.kill()


@linux
def test_without_anything_left_nothing_is_ended() -> None:
    assert end_left_over(Owner.here("a test of marks")) == 0
