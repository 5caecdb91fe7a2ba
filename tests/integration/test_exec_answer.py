# SPDX-License-Identifier: MIT
"""What an answer says of the execution as a whole: outcome, counts, clocks, the session block."""

import pytest

from support.client import exec_target


def test_success(session):
    answer = session.exec("print(2 + 2)")
    assert answer.status == 200
    assert answer.json["success"] is True
    assert answer.outcome["std_out"] == "4\n"
    assert answer.outcome["std_err"] == ""
    assert answer.outcome["final_expression"] is None
    assert answer.outcome["output_files"] == []
    assert answer.session == {
        "id": session.name, "created": True, "lost": "none", "execution_count": 1,
        "checkpoint": None,
    }


def test_failure_is_answered_as_work_done(session):
    session.exec("1")
    answer = session.exec("print(x)")
    assert answer.status == 200
    assert answer.json["success"] is False
    assert answer.error_type == "NameError"
    assert answer.outcome["output_files"] == []
    assert answer.session == {
        "id": session.name, "created": False, "lost": "none", "execution_count": 2,
        "checkpoint": answer.session["checkpoint"],  # tests of their own look at it
    }


def test_every_execution_counts_once(session):
    counts = [session.exec(code).session["execution_count"] for code in ("1", "1/0", "x =", "1")]
    assert counts == [1, 2, 3, 4]


def test_only_the_first_call_created_the_session(session):
    created = [session.exec("1/0").session["created"] for _ in range(3)]
    assert created == [True, False, False]


def test_the_runtime_is_that_of_the_code(session):
    session.exec("import time")
    quick = session.exec("1").outcome["code_runtime"]
    slow = session.exec("time.sleep(1)").outcome["code_runtime"]
    assert 990 <= slow < 30_000
    assert quick < 990


def test_the_runtime_of_failed_code(session):
    answer = session.exec("import time; time.sleep(0.5); 1/0")
    assert answer.error_type == "ZeroDivisionError"
    assert 490 <= answer.outcome["code_runtime"] < 30_000


def test_members_that_the_contract_does_not_know_are_ignored(session):
    answer = session.post({"code": "6 * 7", "language": "python", "options": {"x": [None]}})
    assert answer.value == 42


def test_optional_members_may_be_empty(session):
    assert session.post({"code": "6 * 7", "files": [], "stdin": ""}).value == 42


@pytest.mark.parametrize("code, value", [
    ("", None),
    ("\n\n", None),
    ("# nothing but a comment", None),
    ("x = 1\r\ny = 2\r\nx + y\r\n", 3),
    ("\ufeffx = 1\nx", 1),
    ("'ü☕😀'", "ü☕😀"),
    ("# -*- coding: latin-1 -*-\n'ü'", "ü"),
    ("if True:\n\tz = 5\nz", 5),
])
def test_forms_of_code(shared, code, value):
    answer = shared.exec(code)
    assert answer.success, answer
    assert answer.value == value


def test_the_session_id_comes_back_as_it_was_meant(client):
    name = "report 7/ü+😀%&=?#"
    answer = client.request(
        "POST", exec_target(name), b'{"code": "1"}', {"Content-Type": "application/json"})
    assert answer.session["id"] == name
