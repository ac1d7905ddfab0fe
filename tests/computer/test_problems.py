"""Problems and where they are."""

import pickle

from a2c_smcp.computer.problems import InvalidConfigError, Problem, field_path


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
