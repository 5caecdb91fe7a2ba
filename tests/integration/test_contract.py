# SPDX-License-Identifier: MIT
"""The judge of all answers is itself held to good and bad ones; no server takes part."""

import copy
import http.client
import io
import json

import pytest

from support import strict_json
from support.contract import ContractError, check_answer

SESSION = {"id": "default", "created": True, "lost": "none", "execution_count": 1,
           "checkpoint": None}
SUCCESS = {
    "success": True,
    "result": {
        "success": True, "std_out": "4\n", "std_err": "", "final_expression": None,
        "output_files": [{"filename": "a/b", "b64_data": "QQ=="}], "code_runtime": 42,
        "files_left_out": [{"filename": "big", "size": 12, "reason": "too large"}],
        "truncated": {"std_out": True, "std_err": False},
    },
    "session": SESSION,
}
FAILURE = {
    "success": False,
    "error": {"type": "NameError", "message": "PythonError: Traceback", "line": 1},
    "std_out": "", "std_err": "", "output_files": [], "code_runtime": 15,
    "session": SESSION,
}
REFUSAL = {
    "success": False,
    "error": {
        "type": "validation", "message": "code is missing",
        "details": [{"on": "body", "path": "/code", "expected": "string", "message": "no"}],
    },
}
HEALTH = {
    "status": "healthy", "active_sessions": 1, "version": "0.1.0", "isolation": {"tier": "full"},
    "checkpoints": {"active": False, "reason": "checkpoint is off"},
}
LISTED = {
    "id": "default", "createdAt": 1705312200000, "lastAccessedAt": 1705312500000,
    "ageMinutes": 5.0, "idleMinutes": 0.5, "state": "idle", "execution_count": 3,
}
GOOD_HEADERS = {"Content-Type": "application/json", "X-Content-Type-Options": "nosniff"}


def error(kind, message="no"):
    """An error answer of the given type."""
    return {"success": False, "error": {"type": kind, "message": message}}


def judge(document, target="/exec?sessionId=x", status=200, method="POST", **more):
    """Let the contract judge an answer. `more` are headers, with _ for -, and None for none."""
    headers = {**GOOD_HEADERS, **{name.replace("_", "-"): value for name, value in more.items()}}
    text = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value is not None)
    message = http.client.parse_headers(io.BytesIO(text.encode() + b"\r\n"))
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return check_answer(method, target, status, message, body)


def changed(document, path, value):
    """A copy of `document` with the member at the dotted `path` replaced, or removed by `...`."""
    document = copy.deepcopy(document)
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place = document
    for step in way:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return document


def test_good_answers_pass():
    assert judge(SUCCESS) == SUCCESS
    judge(FAILURE)
    judge(SUCCESS, Content_Type="application/json; charset=utf-8")
    judge(REFUSAL, status=422)
    judge(error("parsing"), status=422)
    judge(error("timeout") | {key: FAILURE[key] for key in FAILURE if key != "error"})
    judge(error("busy"), status=409, Retry_After="2")
    judge(error("method"), status=405, Allow="POST")
    judge(error("anything"), status=431)
    judge(HEALTH, "/health", method="GET")
    judge(HEALTH | {"status": "unhealthy", "reason": "no"}, "/health", 503, "GET")
    judge({"sessions": [LISTED]}, "/sessions", method="GET")
    assert judge(b"", "/health", method="HEAD") is None


@pytest.mark.parametrize("document, path, value", [
    (SUCCESS, "success", "true"),
    (SUCCESS, "result", ...),
    (SUCCESS, "result.success", False),
    (SUCCESS, "result.std_out", None),
    (SUCCESS, "result.final_expression", ...),
    (SUCCESS, "result.code_runtime", 4.5),
    (SUCCESS, "result.code_runtime", True),
    (SUCCESS, "result.output_files", {}),
    (SUCCESS, "result.output_files.0.b64_data", "QQ"),
    (SUCCESS, "result.output_files.0.b64_data", "Q!=="),
    (SUCCESS, "result.output_files.0.filename", ""),
    (SUCCESS, "result.output_files", [{"filename": x, "b64_data": ""} for x in "ba"]),
    (SUCCESS, "result.output_files", [{"filename": x, "b64_data": ""} for x in "aa"]),
    (SUCCESS, "result.files_left_out.0.reason", ...),
    (SUCCESS, "result.truncated.std_out", 1),
    (SUCCESS, "session", ...),
    (SUCCESS, "session.lost", "some"),
    (SUCCESS, "session.execution_count", 0),
    (SUCCESS, "session.created", None),
    (FAILURE, "error", "no"),
    (FAILURE, "error.type", ""),
    (FAILURE, "error.type", "validation"),
    (FAILURE, "error.message", "Traceback"),
    (FAILURE, "error.line", 0),
    (FAILURE, "std_err", ...),
    (FAILURE, "session", ...),
    (FAILURE, "output_files", ...),
])
def test_malformed_executions_are_noticed(document, path, value):
    with pytest.raises(ContractError):
        judge(changed(document, path, value))


@pytest.mark.parametrize("document, status, headers", [
    (REFUSAL, 200, {}),
    (REFUSAL, 413, {}),
    (changed(REFUSAL, "success", True), 422, {}),
    (changed(REFUSAL, "error.details", ...), 422, {}),
    (changed(REFUSAL, "error.details", []), 422, {}),
    (changed(REFUSAL, "error.details.0.on", "header"), 422, {}),
    (changed(REFUSAL, "error.details.0.path", "code"), 422, {}),
    (REFUSAL | {"std_out": ""}, 422, {}),
    (error("parsing", ""), 422, {}),
    (error("ValueError"), 422, {}),
    (error("rate_limit"), 429, {}),
    (error("rate_limit"), 429, {"Retry_After": "soon"}),
    (error("capacity"), 503, {"Retry_After": "1.5"}),
    (error("busy"), 503, {"Retry_After": "1"}),
    (error("method"), 405, {}),
    (error("not_found"), 404, {"Content_Type": "text/html"}),
    (error("not_found"), 404, {"Content_Type": None}),
    (error("not_found"), 404, {"X_Content_Type_Options": None}),
    (error("not_found"), 404, {"RateLimit_Limit": "ten"}),
    (b"", 404, {}),
    (b"<html>", 404, {}),
    (b"[]", 404, {}),
])
def test_malformed_refusals_are_noticed(document, status, headers):
    with pytest.raises(ContractError):
        judge(document, status=status, **headers)


@pytest.mark.parametrize("document, target, status", [
    (HEALTH, "/health", 503),
    (changed(HEALTH, "isolation", ...), "/health", 200),
    (changed(HEALTH, "isolation", {"landlock_abi": 7}), "/health", 200),
    (changed(HEALTH, "isolation", {"tier": "confined", "slots": 0}), "/health", 200),
    (changed(HEALTH, "isolation", {"tier": "full", "disk": "tape"}), "/health", 200),
    (changed(HEALTH, "isolation", {"tier": "full", "controllers": ["io"]}), "/health", 200),
    (changed(HEALTH, "isolation", {"tier": "minimal", "reasons": [""]}), "/health", 200),
    (changed(HEALTH, "version", 1), "/health", 200),
    (HEALTH | {"status": "unhealthy"}, "/health", 503),
    (HEALTH | {"status": "unhealthy", "reason": "no"}, "/health", 200),
    ({}, "/health", 200),
    ({"sessions": {}}, "/sessions", 200),
    ({"sessions": [changed(LISTED, "createdAt", 1e12)]}, "/sessions", 200),
    ({"sessions": [changed(LISTED, "createdAt", 1805312200000)]}, "/sessions", 200),
    ({"sessions": [changed(LISTED, "state", "dead")]}, "/sessions", 200),
    ({"sessions": [changed(LISTED, "idleMinutes", ...)]}, "/sessions", 200),
    (SUCCESS, "/execute", 200),
])
def test_other_malformed_answers_are_noticed(document, target, status):
    with pytest.raises(ContractError):
        judge(document, target, status, "GET")


def test_an_answer_to_head_has_no_body():
    with pytest.raises(ContractError):
        judge(HEALTH, "/health", method="HEAD")


@pytest.mark.parametrize("text", [
    b'{"a": NaN}', b'{"a": -Infinity}', b'{"a": 1e999}', b'{"a": 1, "a": 1}', b'{"a": "\xff"}',
    b'{"a": "\\ud800"}', b'{"a": 1} {}', b"\xef\xbb\xbf{}", b"{'a': 1}", b'{"a": "\n"}',
])
def test_what_is_not_strictly_json_is_refused(text):
    with pytest.raises(ValueError):
        strict_json.loads(text)


def test_strict_json_reads_all_that_is_json():
    text = '{"a": [1, -2.5e3, true, null, "ü\\u0000\\ud83d\\ude00"]}'
    assert strict_json.loads(text.encode()) == {"a": [1, -2500.0, True, None, "ü\0😀"]}
