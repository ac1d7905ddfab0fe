"""Finding tools by words, among those of public MCP servers."""

import json
from pathlib import Path

import pytest

from a2c_smcp.office_mcp.search import SearchIndex, is_mostly_cjk, words

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
