"""The words of texts and of requests in the form in which a search compares them: stems, pairs of Chinese, Japanese and
Korean characters, and the other words that a request may mean. Pure.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from a2c_smcp.agent.for_models.search_words import ALIKE, CHINESE, IRREGULAR, LIGHT, SAME, SILENT

__all__ = ["OF_CONTENT", "all_stems", "is_mostly_cjk", "is_question", "is_to_see", "meanings", "stem", "words"]

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
#: Splits names such as URLs, HTMLParser, readFile and read_file into words as a person reads them.
_WORD: Final = re.compile(
    rf"[{_CJK}]+|[A-Z]{{2,}}(?=s?(?![a-z]))|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_A-Za-z{_CJK}]+", re.UNICODE
)
#: A name that is written as one word: BibTeX, GitHub.
_MIXED: Final = re.compile(r"[A-Za-z]*[a-z][A-Z][A-Za-z]*")
#: How much another word of the same meaning counts, and the second English word of a Chinese one.
_LESS: Final = 0.65
_SECOND: Final = 0.8

#: How much the words of a content count: what a request says to write, to send, or to name a thing.
OF_CONTENT: Final = 0.5
#: How much the verbs count that people use for everything.
_OF_LIGHT: Final = 0.6

#: How many characters of a request are looked at: the time to look for shapes grows faster than the text.
_MOST: Final = 1000
_QUESTION: Final = re.compile(
    r"^\W*(?:(?:in|on|at|of|for|from|to) )?"
    r"(?:what|which|who|whose|where|when|why|how|is|are|was|were|did|does|has|have|am|any)\b"
    "|什么|哪|谁|吗|多少|几|怎么|有没有|是不是",
    re.IGNORECASE,
)
#: An order that asks to see something, and to change nothing.
_TO_SEE: Final = re.compile(
    r"^\W*(?:(?:please|now|(?:can|could|would|will) you) )*"
    r"(?:show|find|search|look|read|list|see|view|summari[sz]e|explain|describe|(?:get|give|bring|tell|fetch) me)\b"
    r"(?! when\b| if\b)",
    re.IGNORECASE,
)
#: What may stand at a distance from an English verb: "roll the app back".
_PARTICLES: Final = frozenset(("up", "out", "back", "away", "off", "down", "aside", "over"))
#: What speakers put between the two characters of a Chinese verb: 截个图, 点了一下赞.
_GAP: Final = re.compile("了?[一几]?[个下次张条份篇]?")


def _shape(pattern: str, flags: int = re.IGNORECASE) -> "re.Pattern[str]":
    return re.compile(f"(?<![A-Za-z0-9_])(?:{pattern})(?![A-Za-z0-9_])", flags | re.ASCII)


#: Who changed something is in the history of a repository.
_WHO_CHANGED: Final = re.compile(
    r"\b(?:who|whose)\b.{0,20}\b(?:chang|touch|edit|modif|wrote|written|broke|commit|introduc)\w*"
    r"|谁.{0,6}(?:改|动过|写|提交|引入)",
    re.IGNORECASE,
)
#: What the person has changed is what is not in the repository yet.
_I_CHANGED: Final = re.compile(
    r"\b(?:have|did|do) (?:I|we)\b.{0,15}\b(?:chang|modif|edit|touch)\w*|我.{0,4}[改动]过?了?的", re.IGNORECASE
)
#: What is put somewhere else is moved.
_MOVED: Final = re.compile(
    r"\b(?:put|drop|bring|throw|place|sort|take)\b(?=.{1,60}\b(?:in|into|to|under) "
    r"(?:(?:the|an?|my|our)\b.{1,20}\b(?:folder|directory)\b|~?/\w|[\w-]+/\w))",
    re.IGNORECASE,
)
#: What the assistant knows is in its memory.
_YOU_KNOW: Final = re.compile(
    r"\byou (?:still )?(?:remember|recall)\b|\byou know(?: of| about)?(?= (?:me|my|our|us)\b|\W*$)"
    r"|\bI (?:ever |once )?told you\b",
    re.IGNORECASE,
)
#: What a request is about, by the shape of a part of it, such as a URL or the name of a file. That part is not looked
#: at again, so the first shape that fits is used.
_SHAPES: Final = (
    (_shape(r"as far as|so far|from now on|at the moment|any ?more|no longer|as soon as|as well|by the way"), ""),
    (re.compile("按(?=[^下钮键住了]{1,6}[排分筛统汇])"), ""),
    (_shape(r"(?:as|in) (?:an?|one) (?:picture|image|drawing)"), "chart diagram graph visualize"),
    (_shape(r"(?:code|number|id|key|pin) (?=[\w-]*\d)[\w-]+"), ""),
    (_shape(r"to be done|left to do"), "todo"),
    (_shape(r"(?:add|append|put|enter) (?:an?|another|one)(?: new)? (?:row|line|entry)"), "append write insert row"),
    (_shape(r"(?:make|turn)(?= (?:the|all|every|each|its?|this|that|these|those|my|our)\b)"), "change format"),
    (_shape(r"(?:take|bring) me(?= back\b| to\b)"), "navigate"),
    (_MOVED, "move"),
    (re.compile("截[^截图]{0,8}图"), "screenshot"),
    (_I_CHANGED, "diff status modified"),
    (_shape(r"(?:change|merge request|mr|pr) (?:number |no\. ?)?#?\d+"), "pull request"),
    (_shape(r"log (?:it|this|that)(?= (?:as|for)\b)"), "issue create"),
    (_shape(r"(?<=of |in |to |on )[a-z][\w-]*/[a-z][\w.-]*"), "repository branch"),
    (_shape(r"into (?:main|master|trunk)"), "merge"),
    (_shape(r"up to date"), "update latest"),
    (_shape(r"lines? of (?:development|work)"), "branch"),
    (_shape(r"(?:in|on|to|from) (?:staging|prod|production)"), "namespace cluster"),
    (_shape(r"(?:where|function|method|variable|class) (?:\w+ ){0,3}?[a-z]\w*(?:\(\)|_\w+)"), "code search"),
    (re.compile(r"哪[里些儿].{0,6}[A-Za-z]\w*(?:\(\)|_\w+)", re.ASCII), "code search"),
    (_shape(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "email mail send"),
    (_shape(r"https?://[!-~]+|(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|edu|gov|cn|de)"), "url page web navigate fetch"),
    (_shape(r"[\w.-]+\.(?:xls[xm]?|ods)"), "workbook excel spreadsheet"),
    (_shape(r"[\w.-]+\.(?:png|jpe?g|gif|svg|webp|mp[34]|wav)"), "image file media"),
    (_shape(r"(?:~|\.\.?)?/[\w./-]+|[\w-]*\.(?!\d)[a-z0-9]{1,5}"), "file path"),
    (_shape(r"\d{4}\.\d{4,5}"), "paper arxiv abstract"),
    (_shape(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}", 0), "commit"),
    (_shape(r"(?!UTF|ISO|RFC|UTC|COVID|SHA|GPT)[A-Z]{2,9}-[0-9]+", 0), "issue ticket task"),
    (_shape(r"(?:\d+|two|three|four|five|six|eight|ten|more|several) (?:copies|instances|replicas)"), "replica scale"),
    (_shape(r"#[a-z][\w-]*"), "channel"),
    (_shape(r"[A-Z]{1,2}[1-9][0-9]{0,3}", 0), "cell range sheet"),
    (_shape(r"\d{1,2}(?::\d\d| ?[ap]\.?m)"), "time timezone"),
    (_shape(r"(?:tell|let|notify|alert) (?:me|us)(?: know)? (?:when|if|once|whenever)"), "alert watch notify"),
    (re.compile(r"\blet\b.{1,40}\bknow\b", re.IGNORECASE), "notify message post"),
    (_WHO_CHANGED, "commit log blame history"),
    (
        _shape(r"(?:file|log|raise|report|open) (?:an?|the|this|another) (?:bug|issue|ticket|report|problem)"),
        "issue create",
    ),
    (_YOU_KNOW, "memory knowledge graph search"),
    (re.compile(r"\bin mind\b|\bfor later\b|\b(?:don't|do not|never) forget\b|别忘", re.IGNORECASE), "remember memory"),
    (_shape(r"-?\d+\.\d+\W{0,3}[NS]?\W{1,3}-?\d+\.\d+"), "coordinate latitude longitude"),
    (
        re.compile(r"\b(?:asks?|asking) (?:me )?(?:whether|if)\b|\bare you sure\b", re.IGNORECASE),
        "dialog confirm accept",
    ),
)

#: What a question asks for, by its first word, and how much that counts. Anything may be found in the web.
_ASKED: Final = (
    (re.compile(r"^\W*where\b", re.IGNORECASE), "search find locate", 1.0),
    (re.compile(r"^\W*who\b", re.IGNORECASE), "person user profile member wikipedia encyclopedia", 0.6),
    (_QUESTION, "web search", 0.1),
)

#: What a request gives to be written, sent or used as a name: in quotes, after a colon, after "called" or "say that".
#: The words of the group are no content. Verbs in the past are looked at in the same way: they say what has been done.
_CONTENT: Final = re.compile(
    r"(?:(?:说明|备注|留言)[写是为]?)?[\"“「『][^\"”」』]+[\"”」』]|(?<!\w)'[^']+'(?!\w)|(?::\s|：).*"
    r"|\b(?:called|named|titled|entitled)\s+\S+"
    r"|(\b(?:say|know|tell|mention|announce|remind|reply|answer|note|mind|remember|forget)\w*\b.{0,30}?)\bthat\b.*"
    rf"|\b(?:{'|'.join(IRREGULAR)})\b|(?<=\babout )(?!me\b|us\b|it\b)[^,.;?!]+|(?<=关于)[^，。的]+",
    re.IGNORECASE,
)


def words(text: str) -> Iterator[str]:
    """The words of a text in the form in which they are compared: lower case, without plurals, CJK as pairs."""
    for word in _WORD.findall(text):
        if "\u3040" <= word[0] <= "\ud7af" or "\uf900" <= word[0] <= "\ufaff":
            pairs = (word[at : at + 2] for at in range(max(1, len(word) - 1)))
            yield from (pair for pair in pairs if pair not in SILENT)
        elif (low := word.lower()) not in SILENT and len(low) > 1:
            yield _singular(low)


def all_stems(text: str) -> Iterator[str]:
    """The stems of a text. A name in mixed case counts as its words, and as one word."""
    yield from map(stem, words(text))
    yield from (_stem_of(name) for name in _MIXED.findall(text))


def is_mostly_cjk(text: str) -> bool:
    """Whether a text is mostly Chinese, Japanese or Korean."""
    return len(re.findall(f"[{_CJK}]", text)) * 2 > len(re.findall(r"[A-Za-z]", text))


def is_question(request: str) -> bool:
    """Whether a request is a question, and not an order."""
    return _QUESTION.search(request) is not None


def is_to_see(request: str) -> bool:
    """Whether a request is an order to show something, and not to change it."""
    return _TO_SEE.search(request) is not None


def meanings(request: str, known: Callable[[str], bool]) -> list[dict[str, float]]:
    """What each word of a request may be called, and how much each name counts. `known` says whether the texts that
    are searched have a stem.
    """
    found: dict[str, dict[str, float]] = {}
    request = request[:_MOST]
    for shape, meant in _SHAPES:
        request, times = shape.subn(" . ", request)
        if times and meant:
            found[meant] = _named(meant.split())
    for shape, meant, much in _ASKED:
        if shape.search(request):
            found[meant] = _times(much, _in_turn(meant.split()))
    about = _CONTENT.sub(lambda match: f"{match[1] or ''} . ", request)
    content = " . ".join(match[0].removeprefix(match[1] or "") for match in _CONTENT.finditer(request))
    for text, factor in ((about, 1.0), (content, OF_CONTENT)):
        for word, names in _of_words(text, known).items():
            found.setdefault(word, _times(factor, names))
    return list(found.values())


def _of_words(text: str, known: Callable[[str], bool]) -> dict[str, dict[str, float]]:
    """What the words of a part of a request may be called. A verb that people use for everything counts less."""
    found = {
        word: _times(_OF_LIGHT if word in _LIGHT_STEMS else 1.0, _with_others({word: 1.0}))
        for word in _stems(text, known)
    }
    for chinese in _chinese_words(text):
        found[chinese] = {**found.get(chinese, {}), **_named(CHINESE[chinese])}
    return found


def _times(factor: float, names: Mapping[str, float]) -> dict[str, float]:
    return {name: factor * much for name, much in names.items()}


def _named(names: Sequence[str]) -> dict[str, float]:
    return _with_others(_in_turn(names))


def _in_turn(names: Sequence[str]) -> dict[str, float]:
    first, *others = map(stem, names)
    return {first: 1.0, **dict.fromkeys(others, _SECOND)}


def _with_others(names: dict[str, float]) -> dict[str, float]:
    others = {other for name in names for other in _OTHERS.get(name, ())}
    return {**dict.fromkeys(others, _LESS), **names}


def _stems(request: str, known: Callable[[str], bool]) -> Iterator[str]:
    """The stems of a request. Two words count as one where that is a known word ("log in", "roll back"), and an unknown
    word counts as two known ones ("flowchart").
    """
    runs = re.findall(r"[A-Za-z]+|[^A-Za-z\s_]+", re.sub("(?<=[a-z])-(?=[a-z])", " ", request))
    skip = False
    for run, after in pairwise([*_apart(runs), ""]):
        one = _stem_of(run)
        two = _stem_of(run + after) if len(run) > 1 and (run + after).isascii() and after.isalpha() else ""
        if skip:
            skip = False
        elif len(two) > 4 and (two in _OTHERS or known(two)):
            yield two
            skip = two in _OTHERS
            if not skip:
                yield one
        elif run.lower() in _TELLING or (run.lower() not in SILENT and (one in _OTHERS or known(one))):
            yield one
        else:
            yield from _halves(run, known) or map(stem, words(run))


def _apart(runs: list[str]) -> Iterator[str]:
    """The words of a request, with the particle of a verb behind it: "roll back the app" for "roll the app back"."""
    for at, run in enumerate(runs):
        for far in range(at + 2, min(at + 7, len(runs))):
            if runs[far].lower() in _PARTICLES and _stem_of(run + runs[far]) in _OTHERS:
                runs.insert(at + 1, runs.pop(far))
        yield run


def _halves(word: str, known: Callable[[str], bool]) -> tuple[str, ...]:
    for at in range(3, len(word) - 2):
        halves = stem(word[:at].lower()), _stem_of(word[at:])
        if word.isascii() and all(half in _OTHERS or known(half) for half in halves):
            return halves
    return ()


def _stem_of(word: str) -> str:
    return stem(_singular(word.lower()))


def _chinese_words(query: str) -> list[str]:
    """The words of the table that a query has, the longest first at each place."""
    found = []
    for run in re.findall(f"[{_CJK}]+", query):
        at = 0
        while at < len(run):
            word, end = _chinese_word(run, at)
            found += [word] if word else []
            at = end
    return found


def _chinese_word(run: str, at: int) -> tuple[str, int]:
    """The word of the table that begins at a place, and where it ends; no word if there is none."""
    for end in range(at + _LONGEST, at + 1, -1):
        if run[at:end] in CHINESE:
            return run[at:end], end
    gap = _GAP.match(run, at + 1)
    apart = run[at] + run[gap.end() : gap.end() + 1] if gap else ""
    if gap and len(apart) == 2 and apart in CHINESE:
        return apart, gap.end() + 1
    return run[at] if run[at] in CHINESE else "", at + 1


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word


def stem(word: str) -> str:
    """The word without the endings of its grammatical forms: created, creating, creation and creates are one."""
    if not word.isascii():
        return word
    word = IRREGULAR.get(word) or SAME.get(word, word)
    word = _BRITISH.sub(lambda match: {"our": "or", "is": "iz", "ys": "yz"}[match[1]] + match[2], word)
    for ending, left in (("ing", 3), ("tion", 4), ("ed", 3)):
        base = word[: len(word) - len(ending)]
        if word.endswith(ending) and len(base) >= left and re.search("[aeiouy]", base):
            word = base + "t" if ending == "tion" else base
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    if word.endswith("y") and len(word) > 3:
        word = word[:-1] + "i"
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


#: colour, organised, analyse
_BRITISH: Final = re.compile("(?<=[a-z]{2})(our|is|ys)(|e|ed|ing|ation)$")
_OTHERS: Final[dict[str, set[str]]] = {}
for _line in ALIKE:
    _group = {stem(word) for word in _line.split()}
    for _word in _group:
        _OTHERS[_word] = _OTHERS.get(_word, set()) | _group - {_word}
#: Silent words that say something where they stand in the table: "about", "within".
_TELLING: Final = SILENT & {word for line in ALIKE for word in line.split()}
_LIGHT_STEMS: Final = frozenset(map(stem, LIGHT))
_LONGEST: Final = max(map(len, CHINESE))
