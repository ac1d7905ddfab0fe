"""Which files may be documents."""

import os
from pathlib import Path

import pytest

from a2c_smcp.docs.walking import include_rules, walk


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")


def found(root: Path, most: int = 1000) -> list[str]:
    return list(walk(str(root), most).files)


def test_files_of_all_folders_are_found_in_the_order_of_their_paths(tmp_path: Path) -> None:
    make(tmp_path, "b.md", "a/z.txt", "a/b/c.py")
    assert found(tmp_path) == ["a/b/c.py", "a/z.txt", "b.md"]
    assert set(walk(str(tmp_path), 10).folders) == {"", "a", "a/b"}


def test_hidden_files_links_pipes_archives_and_what_editors_leave_are_not(tmp_path: Path) -> None:
    make(tmp_path, "a.md", ".b.md", ".git/c.md", "d.zip", "~$e.docx", "f.md~", "g.swp")
    (tmp_path / "link.md").symlink_to("a.md")
    (tmp_path / "up").symlink_to("/")
    os.mkfifo(tmp_path / "pipe.md")
    assert found(tmp_path) == ["a.md"]


def test_ignored_files_are_not_and_an_inner_ignore_file_has_the_last_word(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "a.log", "build/b.md", "in/a.log", "in/keep.log", "in/secret.md", "node/x/build/y.md")
    (tmp_path / ".gitignore").write_text("*.log\nbuild/\n")
    (tmp_path / "in" / ".gitignore").write_text("!keep.log\n/secret.md\n")
    assert found(tmp_path) == ["a.md", "in/keep.log"]


def test_an_ignore_file_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    make(root, "a.md")
    (tmp_path / "rules").write_text("*.md\n")
    (root / ".gitignore").symlink_to("../rules")
    assert found(root) == ["a.md"]


def test_files_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    make(tmp_path, *(f"{number}.md" for number in range(5)))
    assert (len(found(tmp_path, 3)), walk(str(tmp_path), 3).left_out.total) == (3, 2)


def test_a_root_that_is_gone_is_an_error_and_a_folder_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "in/b.md")
    (tmp_path / "in").chmod(0)
    try:
        assert "a.md" in found(tmp_path)
    finally:
        (tmp_path / "in").chmod(0o700)
    with pytest.raises(OSError):
        walk(str(tmp_path / "none"), 10)


def test_what_is_left_out_has_a_reason(tmp_path: Path) -> None:
    make(
        tmp_path,
        "a.md",
        ".b.md",
        ".git/c",
        "d.zip",
        "e.md~",
        "f.log",
        "node_modules/g.md",
        "server.PEM",
        "x/id_rsa.txt",
    )
    make(tmp_path, "prod.env", ".env.local", ".netrc", "keys.kdbx", "x/ok.md")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "link.md").symlink_to("a.md")
    os.mkfifo(tmp_path / "pipe")
    seen = walk(str(tmp_path), 1000)
    assert list(seen.files) == ["a.md", "x/ok.md"]
    secrets = ("server.PEM", "x/id_rsa.txt", "prod.env", ".env.local", ".netrc", "keys.kdbx")
    assert seen.left_out.reasons == {
        ".b.md": "hidden",
        ".git/": "hidden",
        ".gitignore": "hidden",
        "d.zip": "a kind that is no document",
        "e.md~": "left behind by an editor",
        "f.log": "named by a .gitignore",
        "link.md": "a link",
        "node_modules/": "packages of others",
        "pipe": "not a plain file",
        **dict.fromkeys(secrets, "may hold a secret"),
    }
    assert seen.left_out.counts["may hold a secret"] == 6
    assert seen.left_out.total == 15


def test_a_pattern_brings_back_what_is_left_out_by_its_name(tmp_path: Path) -> None:
    make(tmp_path, "a.md", ".env", "server.pem", "node_modules/g.md", ".github/w.md", "f.log", "in/key.pem")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "link.pem").symlink_to("server.pem")
    rules = include_rules([".env", "/*.pem", "node_modules/", ".github/", "*.log"])
    seen = walk(str(tmp_path), 1000, rules)
    assert set(seen.files) == {"a.md", ".env", "server.pem", "node_modules/g.md", ".github/w.md", "f.log"}
    assert seen.left_out.reasons == {
        ".gitignore": "hidden",
        "in/key.pem": "may hold a secret",
        "link.pem": "a link",
    }
