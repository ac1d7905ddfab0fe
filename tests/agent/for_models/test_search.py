"""Finding tools by words, among those of public MCP servers."""

import json
from pathlib import Path

import pytest

from a2c_smcp.agent.for_models.search import SearchIndex
from a2c_smcp.agent.for_models.search_text import is_mostly_cjk, meanings, stem, words
from bench.tool_search.measure import directory, measure

#: Server, name, description and parameters, as public MCP servers list them.
TOOLS: list[tuple[str, str, str, list[str]]] = [
    (server, name, description, parameters)
    for server, name, description, parameters in json.loads(
        (Path(__file__).parent / "public_tools.json").read_text("utf-8")
    )
]
INDEX = SearchIndex([{name: 3.0, text: 1.0, " ".join(more): 0.5} for _, name, text, more in TOOLS])

ENGLISH = {
    "take a picture of the web page that is open": {"browser_take_screenshot"},
    "send a message to a channel in Slack": {"slack_post_message"},
    "which SQL queries are slow?": {"get_top_queries"},
    "open a pull request": {"create_pull_request"},
    "read a file from disk": {"read_file"},
    "what will the weather be like": {"get_forecast"},
    "logs of a failed pod": {"pods_log"},
    "give a customer their money back: refund the payment": {"create_refund"},
    "put a meeting into my calendar": {"create-event"},
    "how long is the drive between two addresses, distance and travel time": {
        "maps_distance_matrix",
        "maps_directions",
    },
}
CHINESE = {
    "明天从北京到上海的火车票": {"get-tickets"},
    "今天天气怎么样": {"maps_weather"},
    "给群里发个消息": {"im.v1.message.create", "send_robot_message", "send_wechat_message"},
    "怎么开车去机场": {"maps_direction_driving"},
    "订单退款": {"refund-alipay-payment"},
    "我的快递到哪里了": {"query_express"},
    "附近有什么好吃的，搜索周边": {"maps_around_search"},
    "识别图片里的文字": {"recognize_text"},
    "创建一个日程并预订会议室": {"calendar.v4.calendarEvent.create"},
    "微博上的热搜": {"get_trendings"},
}


@pytest.mark.parametrize("questions", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_nine_of_ten_questions_find_their_tool_among_the_first_five(questions: dict[str, set[str]]) -> None:
    assert len(TOOLS) >= 300
    found = {query: [TOOLS[number][1] for number in INDEX.best(query, 5)] for query in questions}
    missed = {query: found[query] for query, wanted in questions.items() if not wanted & set(found[query])}
    assert len(questions) == 10
    assert len(missed) <= 1, missed


@pytest.mark.parametrize(
    ("which", "chinese", "least"),
    [
        ("first", False, 25),
        ("first", True, 10),
        ("second", False, 25),
        ("second", True, 10),
        ("third", False, 25),
        ("third", True, 10),
        ("fourth", False, 24),
        ("fourth", True, 10),
        ("fifth", False, 25),
        ("fifth", True, 10),
        ("sixth", False, 23),
        ("sixth", True, 9),
        ("seventh", False, 25),
        ("seventh", True, 10),
        ("eighth", False, 21),
        ("eighth", True, 7),
    ],
)
def test_requests_that_were_written_before_the_tools_were_seen_find_them(which: str, chinese: bool, least: int) -> None:
    found = measure(which, chinese=chinese, tools=directory())
    few = which == "eighth"
    assert found.asked == ((8 if few else 10) if chinese else (22 if few else 25))
    assert found.found >= least, "look at the misses with --missed"


def test_grammatical_forms_of_a_word_are_one() -> None:
    index = SearchIndex([{"other things": 1.0}, {"Creates a navigation": 1.0}, {"nothing": 1.0}])
    for query in ("created", "creating", "creation", "navigate", "navigating"):
        assert index.best(query, 5) == [1], query
    assert SearchIndex([{"a string": 1.0}]).best("str", 5) == []
    assert SearchIndex([{"forget": 1.0}, {"other": 1.0}]).best("what I have forgotten", 5) == [0]


def test_a_word_counts_more_than_another_of_its_meaning() -> None:
    index = SearchIndex([{"remove it": 1.0}, {"delete it": 1.0}, {"else": 1.0}])
    assert index.best("delete", 5) == [1, 0]


def test_british_and_american_spellings_are_one_word() -> None:
    index = SearchIndex([{"organize colors": 1.0}, {"analyzing": 1.0}, {"other things": 1.0}])
    assert index.best("organised", 5) == index.best("colour", 5) == [0]
    assert index.best("analysing", 5) == [1]


def test_two_words_for_one_thing_are_one_word() -> None:
    index = SearchIndex([{"list of a directory": 1.0}, {"other things": 1.0}])
    assert index.ranked("folders", 5) == index.ranked("directory", 5) == [(0, 1.0)]


def test_a_hyphen_does_not_part_a_word() -> None:
    assert SearchIndex([{"dropdown": 1.0}, {"drop": 1.0}, {"down": 1.0}]).best("the drop-down", 1) == [0]


@pytest.mark.parametrize("asked", ["{}", "the tool {}", "use {} to do it"])
def test_a_tool_is_found_by_its_name(asked: str) -> None:
    tools = directory()
    for name in ("create_branch", "git_log", "API-post-page", "find_cells", "read_graph"):
        assert tools.search(asked.format(name), most=1)[0].tool["name"] == name


def test_of_two_tools_the_one_whose_whole_name_is_asked_for_comes_first() -> None:
    index = SearchIndex([{"update_pull_request_branch": 3.0}, {"update_pull": 3.0, "of a request": 1.0}])
    assert index.best("update the pull", 5) == [1, 0]


def test_two_words_are_one_where_that_is_a_known_word_and_one_is_two() -> None:
    index = SearchIndex([{"login": 1.0}, {"flow chart": 1.0}, {"log": 1.0}, {"sequentialthinking": 1.0}])
    assert index.best("log in", 1) == [0]
    assert index.best("flowchart", 5) == [1]
    assert index.best("sequential thinking", 1) == [3]


@pytest.mark.parametrize("asked", ["roll back the walrus", "roll the walrus back", "roll it all back"])
def test_a_verb_and_its_particle_may_stand_apart(asked: str) -> None:
    assert SearchIndex([{"revert": 1.0}, {"other": 1.0}]).best(asked, 1) == [0]


@pytest.mark.parametrize(
    ("asked", "found"),
    [("where is the walrus", [1]), ("who has a walrus", [2]), ("has she won", [3]), ("let her win", [])],
)
def test_a_question_is_answered_by_its_kind_of_tools_or_by_the_web(asked: str, found: list[int]) -> None:
    index = SearchIndex([{"walrus": 1.0}, {"search walrus": 1.0}, {"walrus profile": 1.0}, {"web search": 1.0}])
    assert index.best(asked, 1) == found


def test_two_words_that_a_tool_writes_as_one_count_as_they_are_too() -> None:
    index = SearchIndex([{"create_pivot_table": 1.0}, {"PivotTable": 1.0}, {"other": 1.0}])
    assert sorted(index.best("a pivot table", 5)) == [0, 1]


def test_a_word_that_says_nothing_is_not_taken_for_one_with_its_stem() -> None:
    index = SearchIndex([{"note": 1.0}, {"done": 1.0}, {"theme": 1.0}, {"quit": 1.0}, {"call": 1.0}])
    assert index.best("I don't quite like them, they are not called", 5) == []
    assert index.best("notes", 5) == [0]


def test_a_name_in_mixed_case_is_found_in_any_case() -> None:
    index = SearchIndex([{"BibTeX of a text": 1.0}, {"on GitHub": 1.0}, {"git": 1.0}])
    assert index.best("bibtex", 5) == [0]
    assert index.best("GitHub", 5) == index.best("github", 5) == [1]


@pytest.mark.parametrize(
    ("request_", "meant"),
    [
        ("look into notes.txt", "file"),
        ("look into ../drafts/notes", "file"),
        ("look into budget.xlsx", "workbook"),
        ("look into logo.png", "image"),
        ("go to example.com", "url"),
        ("go to https://example.museum/a?b=c", "url"),
        ("write to #support", "channel"),
        ("put 5 into B7", "cell"),
        ("at 48.2 N, 16.37 E", "coordinate"),
        ("at 3 pm", "time"),
        ("to ann@example.com", "mail"),
        ("what is in 1706.03762", "paper"),
        ("what is in 3f2a91c", "commit"),
        ("where is OPS-17", "issue"),
        ("add a row with 5", "append"),
        ("what did I change", "status"),
        ("file a bug", "issue"),
        ("show it as a picture", "chart"),
        ("what do you know about me", "memory"),
        ("we need four copies of it", "scale"),
        ("make the title red", "format"),
        ("put every letter into the folder Letters", "move"),
        ("put every letter into archive/letters", "move"),
        ("what is wrong with change #12", "pull"),
        ("the start page is empty, open a bug for it", "issue"),
        ("what is in octo/tool", "repository"),
        ("bring it into main", "merge"),
        ("bring it up to date", "update"),
        ("the walrus runs in production", "cluster"),
        ("tell me when the walrus is back", "watch"),
        ("where is take_note used", "code"),
        ("我们在哪里用到了take_note", "code"),
        ("我刚改的东西", "diff"),
        ("打开notes.txt", "file"),
    ],
)
def test_the_shape_of_a_word_says_what_it_is(request_: str, meant: str) -> None:
    named = [set(meaning) for meaning in meanings(request_, lambda word: False)]
    assert any(stem(meant) in names for names in named)
    assert not any("note" in names for names in named), "the name of a file is not what is asked for"


def test_a_question_means_tools_that_answer_it() -> None:
    index = SearchIndex([{"merge_branch": 3.0}, {"list_branch": 3.0}, {"other": 3.0}], ["list"])
    assert index.best("which branch am I on", 5) == [1, 0]
    assert index.best("the branch", 5) == [0, 1]


def test_what_changes_something_comes_later_for_a_question() -> None:
    index = SearchIndex([{"create_branch": 3.0}, {"look_at_branch": 3.0}], changing=["create"])
    assert index.best("which branch am I on", 5) == [1, 0]
    assert index.best("the branch", 5) == [0, 1]
    assert index.best("where do I create the branch", 5) == [0, 1]
    pages = [{"post_page": 3.0}, {"fetch_page": 3.0}, {"post_letter": 3.0}, {"post_card": 3.0}, {"post_picture": 3.0}]
    index = SearchIndex(pages, changing=["post"])
    assert index.best("what does the page say", 1) == [1], "to say may mean to post, but it is another word"
    assert index.best("what do I post on the page", 1) == [0]


@pytest.mark.parametrize("asked", ["show me the page that Ann wrote", "find the page", "in which city is the page"])
def test_what_changes_something_comes_later_for_an_order_to_see_something(asked: str) -> None:
    pages = [{"write_page": 3.0}, {"fetch_page": 3.0}, {"post_search_page": 3.0}]
    found = SearchIndex(pages, ["search"], changing=["write", "post"]).best(asked, 3)
    assert found.index(0) > found.index(1), "to have written is not to write, and to post a search is to search"


@pytest.mark.parametrize(("asked", "first"), [("the note", 1), ("delete the note", 0), ("throw away the note", 0)])
def test_what_deletes_comes_later_unless_the_request_says_so(asked: str, first: int) -> None:
    index = SearchIndex([{"delete_note": 3.0}, {"print_note_of_cell": 3.0}, {"other": 3.0}], deleting=["delete"])
    assert index.best(asked, 1) == [first]


@pytest.mark.parametrize(
    "asked",
    [
        'save a walrus with the text "zebra"',
        "save a walrus: the zebra is broken",
        "save a walrus called zebra",
        "tell the walrus that the zebra is late",
        "read the walrus about the zebra",
    ],
)
def test_what_is_to_be_written_counts_less_than_what_is_to_be_done(asked: str) -> None:
    assert SearchIndex([{"zebra": 1.0}, {"walrus": 1.0}, {"other": 1.0}]).best(asked, 5) == [1, 0]


def test_a_word_for_everything_counts_less() -> None:
    index = SearchIndex([{"open": 1.0}, {"walrus": 1.0}, {"other": 1.0}])
    assert index.best("open the walrus", 5) == [1, 0]


def test_of_an_endless_request_only_the_beginning_is_looked_at() -> None:
    index = SearchIndex([{"walrus": 1.0}])
    assert index.best("." * 1_000_000 + " walrus", 5) == []
    assert index.best("walrus " + "." * 1_000_000, 5) == [0]


def test_chinese_verbs_may_stand_apart() -> None:
    index = SearchIndex([{"take a screenshot": 1.0}, {"other": 1.0}])
    for query in ("截图", "截个图", "截一张图", "截了图", "截一张当前网页的图"):
        assert index.best(query, 5) == [0], query


def test_a_chinese_word_for_press_may_mean_by() -> None:
    index = SearchIndex([{"press a key": 1.0}, {"sort rows": 1.0}, {"other": 1.0}])
    assert index.best("按日期排序", 5) == [1]
    assert index.best("按一下按钮", 1) == [0]


def test_chinese_words_are_looked_for_in_english_and_in_chinese() -> None:
    index = SearchIndex([{"Post a message": 1.0}, {"查询天气": 1.0}, {"Get the weather": 1.0}, {"else": 1.0}])
    assert index.best("给同事发消息", 1) == [0]
    assert sorted(index.best("天气", 5)) == [1, 2]


def test_the_share_says_how_many_words_of_the_query_a_document_has() -> None:
    index = SearchIndex([{"create branch": 1.0}, {"create issue": 1.0}, {"walrus": 1.0}])
    assert index.ranked("create branch", 5) == [(0, 1.0), (1, 0.5)]
    assert index.ranked("create branch", 5, lambda number: number == 1) == [(1, 0.5)]


def test_names_come_apart_as_a_person_reads_them() -> None:
    assert list(words("searchJiraIssues")) == ["search", "jira", "issue"]
    assert list(words("HTMLParser of URLs")) == ["html", "parser", "url"]
    assert list(words("read_file-2 queries")) == ["read", "file", "query"]


def test_chinese_is_read_in_pairs_and_a_single_character_alone() -> None:
    assert list(words("查询天气")) == ["查询", "询天", "天气"]
    assert list(words("用 PDF 写")) == ["用", "pdf", "写"]


def test_what_has_none_of_the_words_is_not_found() -> None:
    assert INDEX.best("zyzzyva", 5) == []
    assert INDEX.best("", 5) == []
    assert SearchIndex([]).best("anything", 5) == []


def test_a_rare_word_counts_more_than_a_frequent_one() -> None:
    index = SearchIndex([{"list files": 1.0}, {"list walrus": 1.0}, {"list things": 1.0}])
    assert index.best("list walrus", 1) == [1]


def test_the_language_of_a_text() -> None:
    assert is_mostly_cjk("查询 12306 火车票 API")
    assert not is_mostly_cjk("Read a file (读取)")
    assert not is_mostly_cjk("")


@pytest.mark.parametrize("request_", ["Who changed this code last week", "who broke the build", "谁上周改了这段代码"])
def test_who_changed_something_is_in_the_history(request_: str) -> None:
    assert "list_commits" in [entry.tool["name"] for entry in directory().search(request_, most=5)]
