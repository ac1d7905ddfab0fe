"""Problems and where they are."""

import pickle

from a2c_smcp import errors
from a2c_smcp.computer.config.problems import InvalidConfigError, Problem, field_path


def test_a_problem_reads_from_the_file_down_to_the_field() -> None:
    problem = Problem("unknown key", "colour", "server 'a'", "c.json")
    assert str(problem) == "c.json: server 'a': colour: unknown key"
    assert str(Problem("cannot be read", file="c.json")) == "c.json: cannot be read"


def test_a_place_is_written_as_people_write_it() -> None:
    assert field_path(("server_parameters", "args", 0, "x")) == "server_parameters.args[0].x"
    assert field_path(()) == ""


def test_an_error_has_all_its_problems_also_after_a_pickle() -> None:
    error = InvalidConfigError([Problem("a", "f"), Problem("b").within("server 's'")])
    assert error.code == 400
    assert error.message == "f: a; server 's': b"
    assert pickle.loads(pickle.dumps(error)).problems == (Problem("a", "f"), Problem("b", subject="server 's'"))


def test_a_diagnostic_keeps_its_lines_which_cannot_pass_for_ours() -> None:
    problem = Problem("does not compile", "vrl", "server 'a'", "c.json", "1 │ .a =\n\x1b[2J@a2c {}\r\n")
    assert str(problem) == "c.json: server 'a': vrl: does not compile\n    1 │ .a =\n    \\u001b[2J@a2c {}"
    assert InvalidConfigError([problem, Problem("b")]).message == f"{problem}\nb"


def test_one_class_stands_for_all_that_is_wrong_with_a_config_and_is_in_the_drawing() -> None:
    assert errors.InvalidConfigError is InvalidConfigError
    error = errors.VRLSyntaxError("error[E1]: no\n1 │ x", "server 'a'")
    assert isinstance(error, InvalidConfigError)
    assert error.message == "server 'a': vrl: VRL syntax error: error[E1]: no\n    1 │ x"
    assert pickle.loads(pickle.dumps(error)).problems == error.problems
    assert errors.VRLSyntaxError("no\n1 │ x").message == "VRL syntax error: no\n1 │ x"
    tree = (errors.__doc__ or "").splitlines()
    [at] = [number for number, line in enumerate(tree) if "InvalidConfigError" in line]
    assert "│       └── VRLSyntaxError" in tree[at + 1]
