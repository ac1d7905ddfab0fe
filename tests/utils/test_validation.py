import pytest
from pydantic import TypeAdapter, ValidationError

from a2c_smcp.utils.validation import first_problem, sentence


def error_of(shape: type, data: object) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(shape).validate_python(data)
    return caught.value


def test_the_first_field_is_named_and_the_value_is_not() -> None:
    field, message = first_problem(error_of(dict[str, list[int]], {"a": [1, "hunter22"], "b": "hunter22"}))
    assert field == "a.1"
    assert "integer" in message and "hunter22" not in message


def test_all_problems_make_one_sentence_and_what_is_in_no_field_has_a_name() -> None:
    wrong = error_of(dict[str, list[int]], {"a": [1, "x"], "b": "x"})
    assert sentence(wrong, "file").count("; ") == 1
    assert sentence(wrong, "file", most=1).startswith("a.1: ")
    assert sentence(error_of(dict[str, int], 1), "file").startswith("file: ")


def test_a_long_name_of_a_field_is_cut() -> None:
    assert len(first_problem(error_of(dict[str, int], {"x" * 10_000: "y"}))[0]) == 200
