"""The measure of foreign documents: its definitions, what it collects, and a run of our reader on two tiny files."""

import io
import tarfile
from pathlib import Path

from bench.documents.collecting import unpack
from bench.documents.measuring import Measured, compare
from bench.documents.reading import OURS, readings
from bench.documents.table import with_table
from bench.documents.words import agreed, grams, recall, words
from bench.report import documents_part


def test_words_are_the_same_however_a_reader_writes_them() -> None:
    assert list(words("A divi-\nded word, well-known")) == list(words("A divided word, wellknown"))
    assert list(words("12.5 %, 1,250, 0")) == ["1.25", "1.25"] == list(words("0.125 and 1250 1e-09"))[::2]
    assert list(words("2024-01-02 00:00:00.25")) == list(words("2024-01-02")) == list(words("09:30"))
    assert list(words('see [here](/a/b.html "x") or https://example.com/a, (#top) now')) == ["see", "here", "or", "now"]
    assert list(words("年度 report")) == ["年", "度", "report"]
    assert list(words("step ❶ of ② parts")) == ["step", "❶", "of", "2", "parts"]


def test_a_gram_counts_if_two_families_of_readers_found_it() -> None:
    one, other = grams("a b c d e f"), grams("b c d e f g")
    assert agreed([[one, one], [grams("x y")]]) == frozenset()
    assert agreed([[one], [other]]) == one & other
    assert recall(one, agreed([[one], [other]])) is None, "too little to judge by"


def test_a_reader_is_judged_by_the_others_only() -> None:
    text = " ".join(f"w{letter}x{other}" for letter in "abcdefghij" for other in "abcdefghij")
    answers = {OURS: {"error": "broken"}, "docx2python": {"text": text}, "mammoth": {"text": text}}
    assert compare("docx", answers) == {OURS: None}, "unreadable for us, though two others read it"
    answers[OURS] = {"text": text[: len(text) // 2]}
    shares = compare("docx", answers)
    assert shares[OURS] is not None
    assert 0.4 < shares[OURS] < 0.6
    assert shares["mammoth"] == 1.0, "judged by the others, of which ours is one"
    assert compare("docx", {**answers, "mammoth": {"error": "broken"}}) == {"mammoth": None}, "one reader is no measure"


def test_documents_of_a_source_package_are_collected_once(tmp_path: Path) -> None:
    archive = tmp_path / "some-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("some/tests/report.HTM", "some/copy.html", "some/code.py"):
            info = tarfile.TarInfo(name)
            info.size = 5
            tar.addfile(info, io.BytesIO(b"words"))
    assert unpack(archive, "some", tmp_path / "found") == 2
    assert [path.name.split("-")[:2] for path in (tmp_path / "found" / "html").iterdir()] == [["some", "report"]]


def test_our_reader_is_measured_and_its_answers_are_kept(tmp_path: Path) -> None:
    files = [tmp_path / "a.html", tmp_path / "b.csv"]
    files[0].write_text("<h1>Seeds</h1><p>They need rain.")
    files[1].write_text("bed,seeds\n1,beans\n")
    told = readings(OURS, files, tmp_path / "kept")
    assert "They need rain." in told[files[0]]["text"]
    assert "beans" in told[files[1]]["text"]
    assert told[files[0]]["mib"] > 1
    assert readings(OURS, files, tmp_path / "kept") == told


def test_the_table_takes_the_place_of_the_old_one() -> None:
    row = Measured("pdf", 2, 2, 1, {OURS: 1}, {OURS: 0.9, "pypdf": 0.8}, 0.5, 0.7, 60)
    once = with_table("# Page\n", [row])
    assert "| pdf | 2 | 1 | 1 | 0.900 of 2 | – | pypdf 0.800 | 0.50 | 0.7 | 60 |" in once
    twice = with_table(once, [row, row])
    assert twice.startswith("# Page\n")
    assert twice.count("| pdf |") == 2
    assert documents_part(twice) in twice
    assert documents_part("# Page\n") == ""
    assert "busy" not in once
    assert "11 processes shared 2\ncores" in with_table("# Page\n", [row], load=11.2, cores=2)


def test_marks_of_readers_and_numbers_of_list_items_are_no_words() -> None:
    ours = "1. one\n2. two\n[图片: a pump]\n[annotation: see there]"
    theirs = "one\ntwo\n![a pump](pump.png)\n### Notes:\nsee there"
    assert list(words(ours)) == list(words(theirs)) == ["one", "two", "see", "there"]
