"""What the commands see before they import the package. `tests/test_distribution.py` has them at work."""

import pytest

from a2c_office import problem_of

BOTH = "pip uninstall a2c-smcp && pip install --force-reinstall ."


@pytest.mark.parametrize(
    "beside",
    [["a2c_office-0.2.0.dist-info"], ["a2c_smcp.egg-info"], ["a2c_smcp_tools-1.0.dist-info"], ["a2c_smcp"], []],
)
def test_nothing_is_wrong_without_the_other(beside: list[str]) -> None:
    assert problem_of("/there/a2c_smcp/__init__.py", beside) is None


@pytest.mark.parametrize("name", ["a2c_smcp-0.1.2.dist-info", "A2C.SMCP-1.dist-info", "a2c_smcp-0.1.2-py3.11.egg-info"])
def test_the_other_is_known_by_its_metadata_however_it_was_installed(name: str) -> None:
    assert BOTH in str(problem_of("/there/a2c_smcp/__init__.py", ["a2c_office-0.2.0.dist-info", name]))


def test_a_package_without_its_first_file_was_removed() -> None:
    assert str(problem_of(None, [])).endswith("run: pip install --force-reinstall .")
