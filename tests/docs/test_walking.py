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


#: Files that hold secrets, and files with similar names that hold none.
SECRETS = """passwords.csv passwords.xlsx team-passwords.docx secrets.yaml secrets.json credentials credentials.json
    aws-credentials.csv service-account.json service-account-prod.json my-service-account.json client_secret_12.json
    kubeconfig prod.kubeconfig terraform.tfstate terraform.tfstate.backup prod.tfvars wallet.dat
    UTC--2024-01-01T00-00-00Z--abc .git-credentials .htpasswd .npmrc .pgpass KEYS.KDBX old.kdb data.1pif
    1PasswordExport-1.1pux bitwarden_export_2024.csv bitwarden_export_2024.json lastpass_export.csv dashlane.csv
    keepass.csv keepass.xml id_ed25519.pub server.key AuthKey_1.p8""".split()  # noqa: SIM905
HARMLESS = """password-policy.md secretary.md on-secrets.md credits.csv accounts.json services.json tokens.md
    walleting.md keepers.csv state.md kube.md""".split()  # noqa: SIM905
#: As browsers, file managers and editors name copies.
COPIES = ["passwords (1).xlsx", "secrets - Copy.yaml", "server.pem.bak", "server.key~", "credentials.json.txt"]
COPIES += ["kubeconfig.old", "wallet-backup.dat", "Terraform (2) copy.tfstate.20240101", "service-account (3).json"]
NO_COPIES = ["notes (1).md", "plan - Copy.md", "bak.txt", "budget.2024.md", "password-policy (1).md"]
EXPORTS = {
    "Chrome Passwords.csv": "name,url,username,password,note\n",
    "chrome-export.csv": "name,url,username,password,note\n",
    "firefox.csv": '\ufeff"url","username","password","httpRealm"\n',
    "vault.csv": "folder,favorite,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp\n",
    "db.csv": '"Account","Login Name","Password","Web Site","Comments"\r\n',
    "one.csv": "Title,Url,Username,Password,OTPAuth,Favorite\n",
}


def test_files_with_secrets_are_left_out_by_their_names_and_tables_by_their_columns(tmp_path: Path) -> None:
    make(tmp_path, *SECRETS, *HARMLESS, "vault.opvault/band.js", "credentials-course/a.md")
    for name, head in EXPORTS.items():
        (tmp_path / name).write_text(head + "x,https://x,ada,hunter2\n")
    (tmp_path / "people.csv").write_text("name,username,note\nada,ada,forgot her password\n")
    (tmp_path / "rules.csv").write_text("password,length\nadmin,12\n")
    seen = walk(str(tmp_path), 1000)
    assert set(seen.files) == {*HARMLESS, "people.csv", "rules.csv", "credentials-course/a.md"}
    assert {path for path, why in seen.left_out.reasons.items() if why == "may hold a secret"} == {
        *SECRETS,
        *EXPORTS,
        "vault.opvault/",
    }


def test_copies_of_files_with_secrets_are_left_out_too(tmp_path: Path) -> None:
    make(tmp_path, *COPIES, *NO_COPIES)
    seen = walk(str(tmp_path), 1000)
    assert set(seen.files) == set(NO_COPIES)
    assert {path for path, why in seen.left_out.reasons.items() if why == "may hold a secret"} == set(COPIES)
    assert set(walk(str(tmp_path), 1000, include_rules(["passwords (1).xlsx", "*.csv"])).files) == {
        *NO_COPIES,
        "passwords (1).xlsx",
    }


def test_files_with_secrets_come_back_on_purpose_only(tmp_path: Path) -> None:
    make(tmp_path, "passwords.csv", "credentials.json", "in/secrets.yaml", "server.pem", "in/a.md")
    (tmp_path / "export.csv").write_text("name,url,username,password\n")
    for wide in ("*", "*.csv", "*.json", "in/", "**", "in/*.yaml"):
        assert set(walk(str(tmp_path), 1000, include_rules([wide])).files) == {"in/a.md"}, wide
    meant = include_rules(["passwords.csv", "/credentials.json", "in/secrets.*", "*.pem", "export.csv"])
    assert len(walk(str(tmp_path), 1000, meant).files) == 6


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
