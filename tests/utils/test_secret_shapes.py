"""What looks like a secret and what does not, in values of arguments, log lines, configs and command lines."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.utils.secret_shapes import (
    hidden,
    holds_secret,
    is_named_like_a_secret,
    secret_spans,
    starred,
    without_userinfo,
)

#: Each begins like the tokens of a service. They are put together here, so that no scanner takes this file for a leak.
TOKENS = (
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "gho_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_" + "11ABCDEFG0abcdefghijkl_MNOPQRSTUVWXYZ",
    "glpat-" + "abcdefGHIJKL12345678",
    "sk-" + "proj-abcdefghijklmnop1234",
    "sk-" + "ant-api03-abcdefghijklmnop1234",
    "sk_" + "live_abcdefghijklmnop1234",
    "rk_" + "test_abcdefghijklmnop1234",
    "xoxb-" + "123456789012-abcdef",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "ya29." + "a0AfH6SMBabcdefghijklmnop",
    "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "dapi" + "0123456789abcdef" * 2,
    "hvs." + "CAESIabcdefghijklmnopqrstuvwx",
    "SG." + "abcdefghijklmnop1234." + "abcdefghijklmnopqrstuvwxyz",
    "123456789:AA" + "abcdefghijklmnopqrstuvwxyz0123456",
    "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
)
#: A text, and the same with its secrets hidden.
HIDDEN = (
    ("DB_PASSWORD=hunter22", "DB_PASSWORD=***"),
    ("MYSQL_PWD=hunter22 PGPASSWORD=hunter23 ./run", "MYSQL_PWD=*** PGPASSWORD=*** ./run"),
    ("export SECRET_KEY='two words'", "export SECRET_KEY='***'"),
    ('{"api_key": "abcd1234", "user": "ada"}', '{"api_key": "***", "user": "ada"}'),
    ('"{\\"password\\": \\"hunter22\\"}"', '"{\\"password\\": \\"***\\"}"'),
    ("password: hunter22", "password: ***"),
    ("password: hunter22 and more", "password: *** and more"),
    ('{"text": "password: hunter\\nuser: ada"}', '{"text": "password: ***\\nuser: ada"}'),
    ("clientSecret => 'hunter22'", "clientSecret => '***'"),
    ("dbPass=hunter22", "dbPass=***"),
    ("PIN=4711", "PIN=***"),
    ("auth=hunter22", "auth=***"),
    ("X-Api-Key: abcd1234", "X-Api-Key: ***"),
    ("密码：hunter22", "密码：***"),
    ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"),
    ("curl -H 'Authorization: Basic YWRhOnB3' x", "curl -H 'Authorization: Basic ***' x"),
    ('{"Authorization": "Bearer abcdefgh"}', '{"Authorization": "Bearer ***"}'),
    ("authorization: digest username=a, response=b", "authorization: digest ***"),
    ("sent bearer A1b2C3d4e5f6", "sent bearer ***"),
    ("Cookie: sid=abc; theme=dark", "Cookie: ***"),
    ("postgres://ada:s3cret@db/x", "postgres://ada:***@db/x"),
    ("http:\\/\\/ada:p@ss@db", "http:\\/\\/ada:***@db"),
    ("https://x/y?access_token=abc123&page=2", "https://x/y?access_token=***&page=2"),
    ("https://x/y?X-Amz-Signature=abc123&x=2", "https://x/y?X-Amz-Signature=***&x=2"),
    ("mysql -uroot -phunter db", "mysql -uroot -p*** db"),
    ("sshpass -phunter ssh host", "sshpass -p*** ssh host"),
    ("sshpass -p hunter ssh host -p 22", "sshpass -p *** ssh host -p 22"),
    ("docker login -u ada -p hunter registry", "docker login -u ada -p *** registry"),
    ('["docker login", "-p", "hunter"]', '["docker login", "-p", "***"]'),
    ("redis-cli -h db -a hunter ping", "redis-cli -h db -a *** ping"),
    ("git clone https://16C7e42F292c6912E7710c@host/x", "git clone https://***@host/x"),
    ("-phunter", "-p***"),
    ("tool -pHunter22!x", "tool -p***"),
    ("tool --password hunter", "tool --password ***"),
    ("tool --auth-token=hunter22", "tool --auth-token=***"),
    ("curl -u ada:s3cret https://x", "curl -u ada:*** https://x"),
    ('["deploy", "--password", "hunter", "--now"]', '["deploy", "--password", "***", "--now"]'),
    ('["deploy", "--password", "--now"]', '["deploy", "--password", "--now"]'),
    ('{"name": "DB_TOKEN", "value": "abc"}', '{"name": "DB_TOKEN", "value": "***"}'),
    ('{"auth": ["hunter"]}', '{"auth": ["***"]}'),
    ("https://hooks.slack.com/services/T0/B0/abcdefghijkl", "https://hooks.slack.com/services/***"),
)
#: Lines of real logs, configs, programs and pages: no part of them is a secret.
PLAIN = """\
commit 3fb3a5e041219550aa8f1d2b3c4d5e6f7a8b9c0d
index 1b2c3d4..5e6f7a8 100644
id 5b1d3c0e-8f1b-4a52-9d0e-2f4c6b8a0e13, etag "33a64df551425fcc55e4d42a148795d9f25f89d4"
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
a token is a word, and so is a password
max_tokens=4096 completion_tokens: 512 tokens=17 tokenizer=bpe
author=ada compass=north bypass: nothing authors: many
primary_key=12345 key=value sort_key: name
password = getpass.getpass()
api_key=os.environ["API_KEY"]
token: str = "", password: Optional[str] = None, secret=True
token = Keyword.Type
auth = DefaultAuth(options)
self.token = token
password: ${input:password} "Bearer ${env:TOKEN}" $PASSWORD %PASSWORD%
password: ******** token=<token> secret: {{ secrets.X }} api_key="your key"
token: the token of your account
Unexpected token: function
SyntaxError: Unexpected token } in JSON at position 14
use --password option, or --token TOKEN, or --auth
mkdir -pv /srv/x; find . -path x -print; docker run -p8080:80 -u 1000:1000
mysql -u root -p shop
docker run -p 8080:80 x; docker login --help; redis-cli -p 6379 -a; sshpass -p "$PASS" ssh x
ffmpeg -pix_fmt yuv420p -preset fast -profile:v main
basic authentication is used; the bearer authentication failed
https://example.com:8080/path?page=2&sort=name@asc
mail ada@example.com, ssh://git@github.com/x.git
http://[NAME:PASSWORD@]HOST:PORT, https://***:***@host, http://${env:U}:${env:P}@host
token_count: 12345, password_min_length=8, secretPath: kv/data
python3-minimal:amd64 (3.11.2-1), ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 ada@host
-----BEGIN PUBLIC KEY-----
-----BEGIN CERTIFICATE-----
std::token::value, a::secret::b
the sk-learn-contrib-extras-and-more, task-12345678901234567890
"Password:" "next"
<a accesskey="n" href="x">
AUTH=none auth: required password=null
""".splitlines()


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_of_services_are_hidden_in_any_text(token: str) -> None:
    for text in (token, f"before {token} after", f'{{"x":"{token}"}}', f"https://x/?y={token}&z=1"):
        assert token not in hidden(text)
        assert token[8:] not in hidden(text)
    assert hidden(f"before {token}, after") == "before ***, after"


@pytest.mark.parametrize(("text", "shown"), HIDDEN)
def test_values_that_are_given_as_secrets_are_hidden_and_the_rest_stays(text: str, shown: str) -> None:
    assert hidden(text) == shown
    assert hidden(shown) == shown
    assert len(starred(text)) == len(text)


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_no_secret_stays(text: str) -> None:
    assert hidden(text) == text


def test_a_private_key_is_hidden_over_its_lines_whatever_its_kind() -> None:
    body = "MIIEpAIBAAKCAQEA\n" * 3
    for kind in ("RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"):
        key = f"-----BEGIN {kind}-----\n{body}-----END {kind}-----"
        for text in (key, key.replace("\n", "\\n"), key[:60]):
            assert "MIIE" not in hidden(f"x {text} y")
        assert starred(key).count("\n") == key.count("\n")
    encrypted = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB-12\n\n" + body
    assert "MIIE" not in hidden(encrypted)


def test_a_long_value_is_hidden_to_its_end() -> None:
    for size in (199, 200, 201, 5000):
        secret = "a1" * size
        assert hidden(f"password={secret} x") == "password=*** x"
        assert hidden(f'{{"password": "{secret}", "x": 1}}') == '{"password": "***", "x": 1}'
        assert hidden(f"password='{secret}\nx") == "password='***\nx"
        assert hidden(f"password: {'a' * size}") == "password: ***"


def test_names_that_promise_a_secret() -> None:
    for name in ("auth", "pin", "passwd", "password", "token", "secret", "api_key", "apiKey", "dbPassword2", "x-auth"):
        assert is_named_like_a_secret(name), name
    for name in ("author", "pins", "compass", "tokens", "max_tokens", "token_count", "tokenizer", "secretary", "key"):
        assert not is_named_like_a_secret(name), name


@pytest.mark.parametrize(
    "value",
    [
        {"login": {"password": "x"}},
        {"env": [{"name": "DB_TOKEN", "value": "abc"}]},
        {"args": ["--user", "ada", "--password", "abc"]},
        {"text": ["curl", "https://ada:abc@host"]},
        {"deep": [[[[TOKENS[1]]]]]},
    ],
)
def test_a_value_holds_a_secret_by_a_name_by_a_text_or_as_a_part_of_a_command_line(value: object) -> None:
    assert holds_secret("", value)


@pytest.mark.parametrize(
    "value", [{"password": None, "has_token": True}, ["--password", "--verbose"], {"name": "size", "value": "9"}]
)
def test_a_value_without_secrets_holds_none(value: object) -> None:
    assert not holds_secret("", value)


def test_a_value_that_holds_itself_is_looked_at_in_part() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert not holds_secret("", endless)


def test_users_of_urls_are_left_out_where_they_must_not_leave() -> None:
    assert without_userinfo("http://ada:pw@host/x ssh://git@host cut: http://ada:p…") == (
        "http://***@host/x ssh://***@host cut: http://***…"
    )


@given(st.text(st.sampled_from("pPassword=:\"' \n\\-{}$&?@/tokenghp_sk-eyJ.123…"), max_size=200))
def test_what_is_hidden_has_its_place_and_its_length(text: str) -> None:
    spans = secret_spans(text)
    assert all(0 <= start < stop <= len(text) for start, stop in spans)
    assert all(before[1] < after[0] for before, after in pairwise(spans))
    assert len(starred(text)) == len(text)


#: Texts of these pieces make a careless pattern begin again at each place, or look at each part again and again.
PIECES = (
    "the quick brown fox ", "a-", "token-", "-eyJ", "eyJaaaaaaaaaaa.aaaaaaa.", "://a:", "://a:@b", "://a:b@@@",
    "http://a:b.c.d", "-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----AAAAAAAAAAAAAAAAAAA",
    "password=", "password='", 'password="x', "password:a ", "tokentoken:", "token" + " " * 10, "?a=b&token=",
    "authorization:", "authorization: digest ", "authorization: a aaaaa ", "bearer ", "basic aaaaaaaaa", "cookie: a",
    "cookie:", "mysql ", "mysql -", "mysql -u", "curl -u ", "http -u a:", "--password ", "--a-", "--token-token", "-",
    " -p1a", "-pabcd1", "pass", "key", "sk-", "xox", "\\", 'password\\\\\\"', "\n", "中", "密码=", "`", "=", ":",
    "token={", "token=$(", "token=get(a", "token: {a", "token='{", "token=a.token",
)  # fmt: skip


def seconds(piece: str, size: int) -> float:
    text = piece * (size // len(piece))
    began = time.process_time()
    secret_spans(text)
    return time.process_time() - began


@pytest.mark.parametrize("piece", PIECES)
def test_a_text_of_a_megabyte_takes_time_in_proportion_to_its_length(piece: str) -> None:
    small = min(seconds(piece, 125_000) for _ in range(2))
    large = seconds(piece, 1_000_000)
    assert large < 24 * small + 0.3  # linear is 8, squares are 64
    assert large < 5  # a quarter of it where nobody else works
