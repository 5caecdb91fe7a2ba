# SPDX-License-Identifier: MIT
"""What agents are told to send, sent as they are told, to a server with no setting changed."""

import shlex

import pytest

from support import examples

SIMPLE = r"""
curl -s -X POST "http://localhost:3080/exec?sessionId=default" \
  -H "Content-Type: application/json" \
  -d '{"code": "print(2 + 2)"}'
"""

UPLOAD = r"""
curl -s -X POST "http://localhost:3080/exec?sessionId=default" \
  -H "Content-Type: application/json" \
  -d '{
    "code": "import pandas as pd; df = pd.read_csv(\"data.csv\"); print(df.head())",
    "files": [{
      "filename": "data.csv",
      "b64_data": "bmFtZSxhZ2UKQWxpY2UsMzAKQm9iLDI1Cg=="
    }]
  }'
"""

HEALTH = "curl -s http://localhost:3080/health"
SESSIONS = "curl -s http://localhost:3080/sessions"
BASE = "http://localhost:3080"


def curl(client, command):
    """Send what a curl command line would send, to the server under test."""
    words = iter(shlex.split(command.replace("\\\n", "")))
    assert next(words) == "curl"
    method, target, headers, body = "GET", None, {"Accept": "*/*"}, None
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = next(words).encode()
        elif word != "-s":
            assert word.startswith(BASE), word
            target = word.removeprefix(BASE)
    return client.request(method, target, body, headers)


@pytest.fixture
def skilled(stock):
    """A client of the server as it comes."""
    return stock.client


def test_the_simple_execution(skilled):
    answer = curl(skilled, SIMPLE)
    assert answer.status == 200
    result = answer.json["result"]
    assert answer.json["success"] is True and result["success"] is True
    assert (result["std_out"], result["std_err"], result["output_files"]) == ("4\n", "", [])
    assert answer.session["id"] == "default"


def test_the_execution_with_a_file_upload(skilled):
    answer = curl(skilled, UPLOAD)
    assert answer.status == 200
    lines = [line.split() for line in answer.std_out.splitlines()]
    assert lines == [["name", "age"], ["0", "Alice", "30"], ["1", "Bob", "25"]]


def test_the_request_body_of_the_reference(skilled):
    answer = skilled.post("/exec?sessionId=analysis-1", {
        "code": "print('Hello, world!')", "files": [],
    })
    assert answer.std_out == "Hello, world!\n"


def test_a_failed_execution(skilled):
    answer = skilled.exec("print(x)", "plot-task")
    assert answer.status == 200
    assert answer.json["success"] is False
    assert answer.error["type"] == "NameError"
    assert answer.error["message"].startswith("PythonError: ")
    assert answer.error["message"].endswith(
        "name 'x' is not defined\n\nCode context:\n1: print(x)")
    assert (answer.std_out, answer.std_err) == ("", "")


def test_a_failed_validation(skilled):
    answer = skilled.post("/exec", {"code": "1"})
    assert answer.status == 422
    assert answer.error["type"] == "validation"
    assert answer.error["message"] == "sessionId query parameter is required"


@pytest.mark.parametrize("kind, body", [
    ("validation", {}),
    ("validation", {"code": 1}),
    ("NameError", {"code": "x"}),
    ("TypeError", {"code": "1 + 'a'"}),
    ("SyntaxError", {"code": "1 +"}),
    ("parsing", {"code": "1", "files": [{"filename": "a"}]}),
    ("parsing", {"code": "1", "files": [{"b64_data": "QQ=="}]}),
    ("resource_limit", {"code": "1", "files": [{"filename": str(n), "b64_data": ""}
                                               for n in range(11)]}),
    ("timeout", {"code": "while True: pass", "timeout_ms": 300}),
])
def test_the_table_of_error_types(skilled, session_id, kind, body):
    answer = skilled.session(session_id).post(body)
    assert answer.json["success"] is False
    assert answer.error["type"] == kind


def test_the_list_of_active_sessions(skilled):
    curl(skilled, SIMPLE)
    answer = curl(skilled, SESSIONS)
    assert answer.status == 200
    listed = {entry["id"]: entry for entry in answer.json["sessions"]}
    assert listed["default"]["createdAt"] <= listed["default"]["lastAccessedAt"]


def test_the_health_check(skilled):
    curl(skilled, SIMPLE)
    answer = curl(skilled, HEALTH)
    assert answer.status == 200
    assert answer.json["status"] == "healthy"
    assert answer.json["active_sessions"] >= 1


def test_the_file_system_layout(skilled, session_id):
    session = skilled.session(session_id)
    answer = session.exec(
        "import os; open('copy.bin', 'wb').write(open('/home/earth/in.bin', 'rb').read())\n"
        "os.getcwd()", files={"in.bin": b"\0\xff"})
    assert answer.value == "/home/earth"
    assert answer.files == {"copy.bin": b"\0\xff"}


@pytest.mark.parametrize("package", ["numpy", "matplotlib", "pandas"])
def test_the_pre_loaded_packages(skilled, session_id, package):
    session = skilled.session(session_id)
    assert session.value(f"import sys; '{package}' in sys.modules") is True
    assert session.value(f"import {package}; {package}.__name__") == package


@pytest.mark.parametrize("attempt, kinds", [
    ("import urllib.request; urllib.request.urlopen('http://127.0.0.1:9/')", {"URLError"}),
    ("import socket; socket.create_connection(('127.0.0.1', 9))", {"PermissionError", "OSError"}),
    ("import pip", {"ModuleNotFoundError"}),
    ("import subprocess; subprocess.run(['pip', 'install', 'six'])",
     {"PermissionError", "OSError"}),
    ("import subprocess; subprocess.run('ls', shell=True)", {"PermissionError", "OSError"}),
    ("import os; os.system('ls')", {"PermissionError", "OSError"}),
])
def test_the_limitations(skilled, session_id, attempt, kinds):
    session = skilled.session(session_id)
    session.exec("kept = 41")
    assert session.exec(attempt).error_type in kinds
    assert session.value("kept + 1") == 42


# contrib/skill/SKILL.md, which says more than this, from its first example to the last

def test_the_examples_of_the_skill_are_answered_as_shown(start, tmp_path):
    instance = start()
    found = examples.calls("contrib/skill/SKILL.md")
    assert len(found) > 7
    for example in found:
        examples.check(example, f"http://127.0.0.1:{instance.port}", tmp_path)
    assert (tmp_path / "figure_1.png").read_bytes().startswith(b"\x89PNG")
