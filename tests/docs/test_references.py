"""doc_ref: short, URL-safe, readable, and the same for the same path."""

import re
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.docs.references import doc_ref, doc_refs

PATHS = st.lists(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1), min_size=1)


def test_what_can_be_read_of_a_name_is_in_its_reference() -> None:
    assert re.fullmatch(r"annual-report-2024-pdf-[a-z2-7]{6}", doc_ref("papers", "x/Annual Report_2024.PDF"))
    assert re.fullmatch(r"plans-md-[a-z2-7]{6}", doc_ref("papers", "plans/年度报告.md"))
    assert re.fullmatch(r"file-[a-z2-7]{6}", doc_ref("papers", "年度报告"))


@given(PATHS.map("/".join))
def test_a_reference_is_short_safe_in_urls_and_always_the_same(path: str) -> None:
    reference = doc_ref("papers", path)
    assert reference == doc_ref("papers", path) == quote(reference, safe="")
    assert re.fullmatch(r"[a-z0-9-]+", reference)
    assert doc_ref("others", path) != reference


@given(st.sets(PATHS.map("/".join)))
def test_every_path_has_a_reference_of_its_own(paths: set[str]) -> None:
    assert sorted(doc_refs("papers", paths).values()) == sorted(paths)
