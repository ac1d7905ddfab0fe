"""What secrets look like: the names of fields that hold them, and their shapes inside of any text. Pure.

Whoever shows, keeps or logs a text of somebody else asks this module; there is no other list. It knows well-known
tokens, private keys, passwords in URLs and on command lines, and values that are named like a secret. A long text costs
time in proportion to its length, whatever is in it.

What is hidden where is the caller's business. Results of tools, windows of other people's MCP servers and documents are
content: nobody hides a part of them on their way to an agent.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "MASK",
    "NAMED_LIKE_A_SECRET",
    "asks_for_secret",
    "follows_secret_option",
    "hidden",
    "holds_named_secret",
    "holds_secret",
    "is_named_like_a_secret",
    "named_value",
    "secret_spans",
    "starred",
    "stars",
    "without_userinfo",
]

#: Stands for a secret.
MASK: Final = "***"

# --- the names of fields

#: These are secrets wherever they stand in a name, as in `dbPassword2`.
_CERTAIN: Final = (
    r"api[_-]?key|(?:access[_-]|(?-i:access(?=K))|account[_-]?|client[_-]?|encryption[_-]?|master[_-]?|private[_-]?|secret[_-]?|shared[_-]?|signing[_-]?)key"
    r"|authorization|bearer"
    r"|cookie|credential|jwt|pass(?:code|phrase|wd|word)|pwd|secret(?!ar)|token(?!s|iz)"
)
#: These are secrets only as a word of a name, as in `proxy-auth`: an `author` is none, nor is a `compass`.
_AS_A_WORD: Final = r"(?:(?<![a-z])(?:auth|pass|pat|pin)|(?-i:(?<=[a-z])(?:Auth|Pass|Pat|Pin)))(?![a-z])"
#: The last word of a name that is about a secret, and does not hold it: `token_count`, `passwordFile`.
_ABOUT: Final = re.compile(
    r"(?:_|-|(?<=[a-z])(?=[A-Z]))(?i:count|dir|enabled|endpoint|expir\w*|field|file|format|hint|length|limit|name|path"
    r"|policy|prefix|required|rules|scheme|type|ur[il]|usage)\Z"
)
#: Of a variable, a header, or a key of a config. `key` alone is a secret there, and so is everything with `auth`.
NAMED_LIKE_A_SECRET: Final = re.compile(
    rf"{_CERTAIN}|auth|key|pass|pat$|pin$|private|session|signature|token", re.IGNORECASE
)
#: Of an argument of a tool. There `key` may be one of a piano, and `author` wrote a book.
_ARGUMENT: Final = re.compile(rf"{_CERTAIN}|{_AS_A_WORD}|密码|密碼|口令|密钥|パスワード", re.IGNORECASE)
#: Words that ask a person for a secret.
_ASKED_FOR: Final = re.compile(
    r"pass(?:word|phrase|code|wd)|\bpin\b|secret|credential|\btoken\b|api[ _-]?key|private[ _-]?key"
    r"|密码|口令|密钥|密碼|パスワード",
    re.IGNORECASE,
)


def is_named_like_a_secret(name: str) -> bool:
    """Whether an argument, or a field inside of one, has a name that promises a secret."""
    return _ARGUMENT.search(name) is not None and _ABOUT.search(name) is None


def asks_for_secret(*texts: str | None) -> bool:
    """Whether one of these texts seems to ask the person for a password."""
    return any(text is not None and _ASKED_FOR.search(text) is not None for text in texts)


# --- values

#: Values with more parts are looked at in part. A call of so many never becomes a rule.
_MOST_PARTS: Final = 100_000


def holds_named_secret(name: str, value: Any) -> bool:
    """Whether an argument is named like a secret, or a field inside its value is. A flag is no secret."""
    return _holds(name, value, _nothing, [_MOST_PARTS], 0)


def holds_secret(name: str, value: Any) -> bool:
    """Whether `holds_named_secret`, or a text inside the value, or its parts as a command line, quote a secret."""
    return _holds(name, value, _quotes, [_MOST_PARTS], 0)


def _nothing(value: str | Sequence[Any]) -> bool:
    return False


def _quotes(value: str | Sequence[Any]) -> bool:
    if isinstance(value, str):
        return bool(secret_spans(value))
    return any(follows_secret_option(value, at) for at in range(len(value)))


def _holds(name: str, value: Any, quotes: Callable[[str | Sequence[Any]], bool], left: list[int], depth: int) -> bool:
    """A value that has more than thousands of parts, or is very deep, is looked at in part."""
    left[0] -= 1
    if isinstance(value, bool | None) or left[0] < 0 or depth > 100:
        return False
    if is_named_like_a_secret(name):
        return True
    if isinstance(value, Mapping):
        named = named_value(value)
        return any(
            _holds(str(key), child, quotes, left, depth + 1) or (key == named and child is not None)
            for key, child in value.items()
        )
    if isinstance(value, list | tuple):
        return quotes(value) or any(_holds("", child, quotes, left, depth + 1) for child in value)
    return isinstance(value, str) and quotes(value)


def named_value(value: Mapping[Any, Any]) -> str | None:
    """The key of the secret in an object such as `{"name": "TOKEN", "value": "…"}`; `None` if it is no such object."""
    if "value" not in value:
        return None
    name = value.get("name", value.get("key"))
    return "value" if isinstance(name, str) and is_named_like_a_secret(name) else None


def follows_secret_option(items: Sequence[Any], at: int) -> bool:
    """Whether this item of a command line is the value of the option before it, as in `["--password", "…"]`."""
    before, item = items[at - 1] if at else None, items[at]
    if not isinstance(before, str) or not isinstance(item, str) or not 2 < len(before) < 60 or before[0] != "-":
        return False
    return "=" not in before and not item.startswith("-") and is_named_like_a_secret(before)


# --- texts


@dataclass(frozen=True, slots=True)
class _SecretShape:
    """One kind of secret. It is looked for only in texts that have one of the `hints`, in lower case. The group `s` is
    the secret, or the whole match. `counts` looks at the match again.
    """

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    counts: Callable[[re.Match[str]], bool] = bool


def _shape(hints: str, pattern: str, counts: Callable[[re.Match[str]], bool] = bool) -> _SecretShape:
    return _SecretShape(tuple(hints.split()), re.compile(pattern), counts)


def _has_digit(found: re.Match[str]) -> bool:
    return any(map(str.isdigit, found[0]))


def _is_mixed(found: re.Match[str]) -> bool:
    """Whether it is no word of a sentence such as `basic authentication`."""
    said = found["s"]
    return re.search(r"[0-9=._~+/]|[a-z][A-Z]", said.rstrip(".,:")) is not None or len(said) > 30


def _is_given(found: re.Match[str]) -> bool:
    """Whether it is a password, and no `PASSWORD` of an example, nor the group in `-u 1000:1000`."""
    said = found["s"]
    return not said.isdigit() and not said.isupper() and _NO_VALUE.fullmatch(said) is None


def _is_in_url(found: re.Match[str]) -> bool:
    said = found["s"]
    return "${" not in said and re.fullmatch(r"[*x…]+|PASSWORD|\{.*", said) is None


#: How the tokens of services begin, and what they consist of.
_PREFIXED: Final = (
    ("akia asia abia acca", r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    ("ghp_ gho_ ghu_ ghs_ ghr_", r"\bgh[pousr]_[A-Za-z0-9]{20,255}\b"),
    ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{20,255}\b"),
    ("glpat- gldt- glrt- glsoat- glcbt-", r"\bgl(?:pat|dt|rt|soat|cbt)-[A-Za-z0-9_-]{16,255}"),
    ("xox xapp-", r"\bx(?:ox[abceoprs]|app)-[A-Za-z0-9-]{10,255}"),
    ("hooks.slack.com/", r"\bhooks\.slack\.com/(?:services|workflows)/(?P<s>[A-Za-z0-9/_-]{16,255})"),
    ("_live_ _test_ whsec_", r"\b(?:[sr]k_(?:live|test)_|whsec_)[A-Za-z0-9+/=_]{10,255}"),
    ("aiza", r"\bAIza[A-Za-z0-9_-]{30,60}"),
    ("ya29. gocspx-", r"\b(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{16,1000}"),
    ("npm_", r"\bnpm_[A-Za-z0-9]{30,60}"),
    ("pypi-ag", r"\bpypi-Ag[A-Za-z0-9_-]{30,1000}"),
    ("hf_ gsk_ r8_", r"\b(?:hf|gsk|r8)_[A-Za-z0-9]{30,100}\b"),
    ("dckr_pat_ shpat_ shpss_ lin_api_", r"\b(?:dckr_pat|shpat|shpss|lin_api)_[A-Za-z0-9_-]{20,100}"),
    ("dop_v1_ doo_v1_ dor_v1_", r"\bdo[opr]_v1_[0-9a-f]{40,80}\b"),
    ("hvs. hvb.", r"\bhv[sb]\.[A-Za-z0-9_-]{20,500}"),
    ("dapi", r"\bdapi[0-9a-f]{32}\b"),
    ("sg.", r"\bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}"),
    ("age-secret-key-", r"\bAGE-SECRET-KEY-1[0-9A-Z]{50,60}\b"),
    (":aa", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b"),
)
#: A word that begins a value that is named like a secret, before `=` or `:`. It need not be the beginning of the name,
#: so that a text of many such words is still looked at only once.
_NAME: Final = (
    rf"(?i:(?:{_CERTAIN}|{_AS_A_WORD}|\bsig(?:nature)?|(?:php|j)sessid|x-amz-signature|密码|密碼|口令|密钥|パスワード)"
    r"(?>(?:[_-]?(?:access|b64|base64|confirm(?:ation)?|json|key|new|old|prod|ro|rw|string|text|value|[0-9]{1,3})){0,4}))"
)
_QUOTE: Final = r"\\{0,3}[\"']"
#: `TOKEN=`, `"token": `, `"token": ["`, `"name": "TOKEN", "value": `.
_SAID: Final = re.compile(
    rf"{_NAME}(?>(?:{_QUOTE})?\]?[ \t]{{0,4}}(?P<sign>:=|=>|=|:(?!:)|：|,\s{{0,9}}{_QUOTE}value{_QUOTE}\s{{0,4}}:)"
    rf"[ \t]{{0,4}}(?:\[\s{{0,9}}(?={_QUOTE}))?)"
)
#: `--password `, `"--password", `; also with a single dash. It looks once at a row of dashes, and not at each of them.
_OPTION: Final = re.compile(
    rf"(?<![\w-])--?(?>[A-Za-z0-9]{{1,20}}[_-])?{_NAME}"
    rf"(?P<sign>[ \t]{{1,4}}(?![-|>&<])|{_QUOTE},\s{{0,9}}(?={_QUOTE}(?!-)))",
    re.IGNORECASE,
)
#: So much of a value is enough to know whether it is a secret. What is none is looked at again from its next name on.
_ENOUGH: Final = 200
#: A value ends here at the latest.
_LONGEST_VALUE: Final = 100_000
_QUOTED: Final = re.compile(rf"(?P<open>\\{{0,3}}[\"'`])(?P<s>(?:(?!(?P=open))[^\n\r]){{1,{_ENOUGH}}})")
#: It ends at what is a line break or a quotation mark in JSON.
_BARE: Final = re.compile(rf"(?:[^\s\"'`,;\\]|\\(?![nrt\"])){{3,{_ENOUGH}}}")
_REST: Final = re.compile(rf"(?:[^\s\"'`,;\\]|\\(?![nrt\"])){{0,{_LONGEST_VALUE}}}+")
_IN_QUERY: Final = re.compile(r"[?&][\w.%-]{0,40}\Z")
_BARE_IN_QUERY: Final = re.compile(r"[^\s\"'`,;&#\\]{3,200}")
_SCHEME: Final = re.compile(r"(?i:basic|bearer|token|apikey)[ ]{1,4}")
#: What stands after ` = ` in a program.
_CODE: Final = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)+|[A-Za-z_][\w.]*[(\[].*|not")
#: After a colon a single word is a value, and the first of many words is a sentence.
_ENDS: Final = re.compile(r"\\[nrt\"']|\\?[ \t]*(?:\Z|[\r\n,;\"'`})\]|&])")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*[.:!?]?")
#: Values that refer to a secret, or say something about it.
_NO_VALUE: Final = re.compile(
    r"""[*x•.…#-]+ | \$\{.* | \$\(.* | \$[A-Z_][A-Z0-9_]* | %[A-Z_]+% | %\(?[a-z_]*\)?[sdr]? | [<{\[(].* | \.\.\..*
      | (?:os|process|env|config|settings|self|this|args|opts|options|getenv|get\w*|read\w*|input|load\w*)\b[.\[(].*
      | (?i:optional|union|list|secretstr)\[.* | (?i:your)\b.* | .*… | [A-Z]+(?:_[A-Z]+)+
      | (?i:any|and|apikey|argument|auto|basic|bearer|bool(?:ean)?|bytes|default|digest|disabled|empty|enabled|expired
          |false|flag|for|from|hidden|int(?:eger)?|invalid|key|masked|missing|nil|no|none|null|number|oauth2?|object|of
          |option(?:al)?|or|pass(?:word)?|path|redacted|required|secret|secretstr|str|string|text|the|token|true
          |undefined|unknown|unset|value|with|yes)""",
    re.VERBOSE,
)

_SHAPES: Final = (
    # The body of a key has no dash: the line of its end is never looked at twice.
    _shape(
        "private key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:\s{0,4}Proc-Type: [^\n]{0,100}\n\s{0,4}DEK-Info: [^\n]{0,200}\n)?"
        r"(?P<s>[A-Za-z0-9+/=\s\\:.,()@]{16,40000}+)",
    ),
    *(_shape(hints, pattern) for hints, pattern in _PREFIXED),
    _shape("sk-", r"\bsk-[A-Za-z0-9_-]{16,255}", _has_digit),
    # Where a word begins, not at each part of it: otherwise a long text of such parts would take seconds.
    _shape("eyj", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,4000}+\.[A-Za-z0-9_-]{4,8000}+\.[A-Za-z0-9_.-]{4,8000}"),
    _shape(
        "authorization",
        r"(?i:\bauthorization\\{0,3}[\"']?[ \t]{0,4}[=:][ \t]{0,4}\\{0,3}[\"']?)"
        r"(?:(?i:digest|aws4-hmac-sha256|oauth|signature)[ \t]{1,4}(?P<s>[^\r\n']{4,4000})"
        r"|(?i:[a-z0-9-]{3,20})[ \t]{1,4}(?P<t>[A-Za-z0-9+/=._~:-]{4,4000})(?=\\?[ \t]*(?:\Z|[\r\n,;\"'}\])])))",
    ),
    _shape("bearer basic", r"(?i:\b(?:bearer|basic)[ \t]{1,4})(?P<s>[A-Za-z0-9+/=._~-]{8,4000})", _is_mixed),
    _shape(
        "cookie",
        r"(?i:\b(?:set-)?cookie\\{0,3}[\"']?[ \t]{0,4}:[ \t]{0,4}\\{0,3}[\"']?)"
        r"(?P<s>[^\s=\"']{1,100}=[^\r\n\"']{1,4000})",
    ),
    _shape("://  :\\/\\/", r":(?:\\?/){2}[^\s/?#:@\\\"'<>]{0,200}:(?P<s>[^\s/?#\"'<>]{1,200})@", _is_in_url),
    _shape(":// :\\/\\/", r":(?:\\?/){2}(?P<s>[A-Za-z0-9_.~-]{20,255})@", _has_digit),
    # The programs that take a password this way; elsewhere `-p` is a port, a path, or `--print`.
    _shape(
        "mysql mariadb sshpass",
        r"\b(?:mysql|mariadb|sshpass)[a-z-]{0,20}\b[^\n;|&]{0,200}?[\s\"']-p(?P<s>(?![\s=\"'])[^\s\"',;]{1,200})",
    ),
    _shape(
        "sshpass docker podman redis-cli",
        r"\b(?:sshpass\b[^\n;|&]{0,200}?[\s\"']-p|redis-cli\b[^\n;|&]{0,200}?[\s\"']-a"
        r"|(?:docker|podman)[ \t]{1,4}login\b[^\n;|&]{0,200}?[\s\"']-p)[\"',]{0,2}[ \t]{1,4}[\"']?"
        r"(?P<s>[^\s\"',;-][^\s\"',;]{1,200})",
        _is_given,
    ),
    _shape(
        "-p",
        r"(?:\A|(?<=[\s\"']))-p(?P<s>(?=[^\s\"']*[0-9])(?=[^\s\"']*[A-Za-z])[A-Za-z0-9!@#$%^*+?._~-]{6,200})(?=\Z|[\s\"'])",
    ),
    _shape(
        "curl wget http",
        r"\b(?:curl|wget|https?)\b[^\n;|]{0,300}?[\s\"'](?:-u|--user|--proxy-user)[ =\"',]{0,4}"
        r"[^\s:\"'/]{1,100}:(?P<s>[^\s\"']{1,200})",
        _is_given,
    ),
)
_NAME_HINTS: Final = tuple(
    re.findall(
        r"\S+",
        "key auth bearer cookie credential jwt pass pwd secret token pat pin sig sessid 密码 密碼 口令 密钥 パスワード",
    )
)
#: The userinfo of a URL. Its slashes may be escaped, as in JSON, and the text may be cut before the `@`.
_USERINFO: Final = re.compile(r"(:(?:\\?/){2})[^\s/?#\\]+(@|…\Z)")


def _by_sign(hinted: Iterable[tuple[str, _SecretShape | None]]) -> dict[str, list[tuple[str, _SecretShape | None]]]:
    groups: dict[str, list[tuple[str, _SecretShape | None]]] = {}
    for hint, shape in hinted:
        sign = next((sign for sign in "_-.:" if sign in hint), "" if hint.isascii() else hint)
        groups.setdefault(sign, []).append((hint, shape))
    return groups


#: Where to look if a text has this in it; `None` stands for values with names. Most short texts have few of the signs
#: by which they are grouped.
_HINTED: Final = tuple(
    _by_sign(
        [
            *((hint, shape) for shape in _SHAPES for hint in shape.hints),
            *((hint, None) for hint in _NAME_HINTS),
        ]
    ).items()
)


def secret_spans(text: str) -> list[tuple[int, int]]:
    """Where the secrets of a text stand, in order and apart from each other."""
    if len(text) < 6:  # as most names are, of which records have many
        return []
    lowered = text.lower()
    spans: list[tuple[int, int]] = []
    hinted = [pair for sign, pairs in _HINTED if sign in lowered for pair in pairs]
    for shape in dict.fromkeys([shape for hint, shape in hinted if hint in lowered]):
        if shape is not None:
            spans += [_span(found) for found in shape.pattern.finditer(text) if shape.counts(found)]
            continue
        spans += _named(text, _SAID)
        if "-" in text:
            spans += _named(text, _OPTION)
    if text.startswith("-p") and _LONE_OPTION.fullmatch(text) and not _KNOWN_OPTION.match(text):
        spans.append((2, len(text)))
    return _merged(spans) if spans else spans


#: An item of a command line that is a password: `-phunter`. The others that begin so are options of common programs.
_LONE_OPTION: Final = re.compile(r"-p[^\s=:/]{4,200}")
_KNOWN_OPTION: Final = re.compile(
    r"-p(?:[0-9]+\Z|ackages?|arallel|arameters?|ass(?:in|out|logfile)?\Z|ath|edantic|erm|gm?\Z|ipe|ix_fmt|lugin|ort|osix|re|"
    r"rint|rivate|ro(?:d|file|file:\w+|gress|ject|mpt|perty|tocol|xy)|rune|thread|ublic|ull|ush)"
)  # fmt: skip


def hidden(text: str, mask: Callable[[str], str | None] = lambda _: MASK) -> str:
    """The text with each secret replaced by what `mask` makes of it. Where that is `None`, the secret stays."""
    if not (spans := secret_spans(text)):
        return text
    parts: list[str] = []
    end = 0
    for start, stop in spans:
        stands_for = mask(text[start:stop])
        parts += [text[end:start], text[start:stop] if stands_for is None else stands_for]
        end = stop
    return "".join([*parts, text[end:]])


def starred(text: str) -> str:
    """The text with an asterisk for each character of a secret, so that rows keep their length. Line ends stay."""
    return hidden(text, stars)


def stars(secret: str) -> str:
    """As many asterisks as a secret has characters. Line ends stay."""
    return re.sub(r"[^\n]", "*", secret)


def without_userinfo(text: str) -> str:
    """The text without users and passwords in URLs, also in one that is cut before its `@`."""
    return _USERINFO.sub(rf"\1{MASK}\2", text)


def _span(found: re.Match[str]) -> tuple[int, int]:
    return next((found.span(name) for name, value in found.groupdict().items() if value is not None), found.span())


def _named(text: str, names: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """The values of names that promise a secret."""
    at = 0
    while (name := names.search(text, at)) is not None:
        at = name.end()
        value = _value_at(text, name)
        if value is not None:
            yield value
            at = value[1]


def _value_at(text: str, name: re.Match[str]) -> tuple[int, int] | None:
    """Where the value of a name stands, if it is a secret."""
    if quoted := _QUOTED.match(text, name.end()):
        start = _SCHEME.match(text, quoted.start("s"), quoted.end("s"))
        begins, ends = quoted.start("s") if start is None else start.end(), quoted.end("s")
        if not _may_be_secret(text[begins:ends]) or _is_quoted_sentence(quoted["s"]):
            return None
        return begins, _end_of_line(text, ends, quoted["open"]) if len(quoted["s"]) == _ENOUGH else ends
    is_in_query = _IN_QUERY.search(text[max(0, name.start() - 40) : name.start()])
    if (bare := (_BARE_IN_QUERY if is_in_query else _BARE).match(text, name.end())) is None:
        return None
    said = bare[0].rstrip(")]}.:")
    own = name[0][: name.start("sign") - name.start()].strip("-\"'\\] ").lower()
    if not (_may_be_secret(bare[0]) and _may_be_secret(said)) or said.lower() == own:
        return None
    if said.lower().endswith((f".{own}", f"_{own}")) or (name.re is _OPTION and own.upper().endswith(said)):
        return None  # code that passes it on, or the help of a command
    if (name["sign"][0] in ":：" and _is_sentence(text, name, bare)) or (
        name[0].endswith(" = ") and _CODE.fullmatch(bare[0])
    ):
        return None
    rest = _REST.match(text, bare.end()) if len(bare[0]) == _ENOUGH else None
    return bare.start(), bare.start() + len(said) if rest is None else rest.end()


def _end_of_line(text: str, start: int, quote: str) -> int:
    """Where a long text in quotation marks ends, also if they are missing at its end."""
    ends = [text.find(each, start, start + _LONGEST_VALUE) for each in (quote, "\n", "\r")]
    return min((end for end in ends if end >= 0), default=min(len(text), start + _LONGEST_VALUE))


def _may_be_secret(value: str) -> bool:
    return len(value) > 2 and _NO_VALUE.fullmatch(value) is None


def _is_quoted_sentence(value: str) -> bool:
    """Whether quotation marks hold a sentence, or what is between two texts, as in `"Password:", "x"`."""
    return value[0] in " ,);:" or len(value.split(None, 5)) > 5


def _is_sentence(text: str, name: re.Match[str], bare: re.Match[str]) -> bool:
    """Whether a person wrote about a secret, as in `token: the token of your account` or `unexpected token: x`."""
    if text[max(0, name.start() - 12) : name.start()].lower().endswith(("unexpected ", "expected ")):
        return True
    return len(bare[0]) < _ENOUGH and _WORD.fullmatch(bare[0]) is not None and _ENDS.match(text, bare.end()) is None


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], stop)
        elif start < stop:
            merged.append((start, stop))
    return merged
