# SPDX-License-Identifier: MIT
"""The shapes of all answers.

`check_answer` reads one answer and raises ContractError when anything in it is not as the
contract has it. The client runs it on every answer of every test, so that a test of, say,
uploads also notices a malformed session block. It knows shapes only: which answer a request
deserves is for the tests to say.
"""

import base64
import re

from . import strict_json

# type of error -> the statuses that the contract's table gives it
ERROR_STATUSES = {
    "validation": {400, 415, 422},
    "parsing": {422},
    "resource_limit": {413},
    "rate_limit": {429},
    "busy": {409},
    "interrupted": {409},
    "capacity": {503},
    "not_found": {404},
    "method": {405},
    "system": {500, 502, 503},
}
# types of failed executions, which are answered with status 200, besides Python's exceptions
FAILED_EXECUTIONS = {"timeout", "crash", "resource_limit", "interrupted"}
RETRY_TYPES = {"rate_limit", "busy", "capacity"}
RATE_HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
STREAMS = ("std_out", "std_err")
# why a checkpoint was not made
SKIPPED = {"threads", "open_files", "shared_memory", "memory", "refused"}


class ContractError(AssertionError):
    """An answer has a form that the contract does not know."""


def need(condition, *message):
    """Raise ContractError with `message` unless `condition` holds."""
    if not condition:
        raise ContractError(" ".join(str(part) for part in message))


def check_answer(method, target, status, headers, body, parsed=True):
    """Check one answer and return its JSON value, or None where it has no body.

    `headers` is a message as http.client makes it; `body` are the bytes of the body. Where the
    request could not be `parsed`, the web server answers before it thinks of adding headers.
    """
    for name in RATE_HEADERS:
        value = headers.get(name)
        need(value is None or value.isdigit(), name, "is not a number:", value)
    if method in ("HEAD", "OPTIONS"):
        need(body == b"", method, "is answered without a body")
        return None
    need(body != b"", "the body is empty, status", status)
    _check_headers(headers, parsed)
    try:
        document = strict_json.loads(body)
    except ValueError as error:
        raise ContractError(f"status {status}, not JSON: {error}: {body[:300]!r}") from error
    need(isinstance(document, dict), "not an object:", type(document).__name__)
    _check_document(target.partition("?")[0], status, headers, document)
    return document


def _check_headers(headers, parsed):
    kinds = [kind.lower().replace(" ", "") for kind in headers.get_all("Content-Type", [])]
    need(kinds in (["application/json"], ["application/json;charset=utf-8"]),
         "Content-Type:", kinds)
    sniffing = headers.get_all("X-Content-Type-Options", [])
    need(sniffing == ["nosniff"] or not parsed and not sniffing,
         "X-Content-Type-Options:", sniffing)


def _check_document(path, status, headers, document):
    if path == "/health" and (status == 200 or "status" in document):
        _check_health(status, document)
    elif status != 200:
        _check_refusal(status, headers, document)
    elif path == "/exec":
        _check_execution(document)
    elif path == "/sessions":
        _check_sessions(document)
    elif path.startswith("/sessions/"):
        need(document["success"] is True, "done, without success")
        member(document, "interrupted", bool)
    else:
        raise ContractError(f"status 200 at the unknown path {path}")


def member(document, name, kind):
    """The member `name` of `document`, which must be there and of type `kind`."""
    need(name in document, "member", name, "is missing in", sorted(document))
    value = document[name]
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    need(fits, name, "is of type", type(value).__name__)
    return value


def filled(document, name, kind=str):
    """The member `name` of `document`, of type `kind` and not empty."""
    value = member(document, name, kind)
    need(value, name, "is empty")
    return value


def _check_error(document):
    need(member(document, "success", bool) is False, "an error with success true")
    error = filled(document, "error", dict)
    filled(error, "type")
    filled(error, "message")
    return error


def _check_refusal(status, headers, document):
    error = _check_error(document)
    kind = error["type"]
    need(status >= 400, "status", status, "with an error")
    may_be = {name for name, statuses in ERROR_STATUSES.items() if status in statuses}
    need(not may_be or kind in may_be, kind, "with status", status)
    for name in ("result", "session", *STREAMS):
        need(name not in document, "a refusal has no", name)
    if kind in RETRY_TYPES:
        need(re.fullmatch(r"\d+", headers.get("Retry-After", "")), kind, "without Retry-After")
    if status == 405:
        need(headers.get("Allow"), "wrong method without Allow")
    if kind == "validation" and status == 422:
        filled(error, "details", list)
    for detail in error.get("details", []):
        need(isinstance(detail, dict), "a detail that is no object")
        need(member(detail, "on", str) in ("query", "path", "body"), "details.on:", detail["on"])
        path = member(detail, "path", str)
        need(path == "" or path.startswith("/"), "details.path:", path)
        filled(detail, "expected")
        filled(detail, "message")


def _check_execution(document):
    success = member(document, "success", bool)
    if success:
        need("error" not in document, "success with an error")
        outcome = member(document, "result", dict)
        need(member(outcome, "success", bool) is True, "result.success is not true")
        need("final_expression" in outcome, "result.final_expression is missing")
        kind = outcome.get("final_expression_type")
        need(kind is None or isinstance(kind, str), "final_expression_type:", kind)
    else:
        outcome = document
        need("result" not in document, "a failed execution with a result")
        _check_execution_error(_check_error(document))
    _check_outcome(outcome)
    _check_session(member(document, "session", dict))


def _check_execution_error(error):
    kind = error["type"]
    line = error.get("line")
    need(line is None or type(line) is int and line >= 1, "error.line:", line)
    if kind in FAILED_EXECUTIONS:
        return
    need(kind not in ERROR_STATUSES, kind, "with status 200")
    need(error["message"].startswith("PythonError: "), "message:", error["message"][:80])


def _check_outcome(outcome):
    for name in STREAMS:
        member(outcome, name, str)
    need(member(outcome, "code_runtime", int) >= 0, "code_runtime:", outcome["code_runtime"])
    names = []
    for entry in member(outcome, "output_files", list):
        need(isinstance(entry, dict), "an output file that is no object")
        names.append(filled(entry, "filename"))
        need(_is_base64(member(entry, "b64_data", str)), "not base64:", names[-1])
    need(names == sorted(set(names)), "output_files are not sorted and unique:", names[:20])
    for entry in outcome.get("files_left_out", []):
        need(isinstance(entry, dict), "a file left out that is no object")
        filled(entry, "filename")
        need(member(entry, "size", int) >= 0, "files_left_out.size:", entry["size"])
        filled(entry, "reason")
    if "more_files_left_out" in outcome:
        need(member(outcome, "more_files_left_out", int) > 0, "more_files_left_out is", 0)
    for name, value in outcome.get("truncated", {}).items():
        need(isinstance(value, bool), "truncated", name, "is", value)


def _is_base64(text):
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode() == text
    except ValueError:
        return False


def _check_session(session):
    filled(session, "id")
    member(session, "created", bool)
    lost = member(session, "lost", str)
    need(lost in ("none", "variables", "all"), "session.lost:", lost)
    count = member(session, "execution_count", int)
    need(count >= 1, "execution_count is not positive")
    need("checkpoint" in session, "no checkpoint")
    for name in ("checkpoint", "restored_to"):
        if session.get(name) is not None:
            need(0 < member(session, name, int) < count, name, "is", session[name])
    if "checkpoint_skipped" in session:
        need(session["checkpoint_skipped"] in SKIPPED, session["checkpoint_skipped"])
    if "restored_to" in session:
        need(lost != "all", "restored, and all is lost")


def _check_health(status, document):
    state = member(document, "status", str)
    need((status, state) in ((200, "healthy"), (503, "unhealthy")), status, state)
    need(member(document, "active_sessions", int) >= 0, "active_sessions is negative")
    need(re.match(r"\d+\.\d+", member(document, "version", str)), document["version"])
    _check_isolation(filled(document, "isolation", dict))
    checkpoints = filled(document, "checkpoints", dict)
    if not member(checkpoints, "active", bool) and state == "healthy":
        filled(checkpoints, "reason")
    if state == "unhealthy":
        filled(document, "reason")


def _check_isolation(isolation):
    filled(isolation, "tier")
    for name in ("landlock_abi", "slots"):
        if name in isolation:
            need(member(isolation, name, int) >= (name == "slots"), name, "is", isolation[name])
    for name, known in (("network", {"namespace", "seccomp", "unknown"}),
                        ("disk", {"quota", "watch", "unknown"})):
        if name in isolation:
            need(member(isolation, name, str) in known, name, "is", isolation[name])
    for name in ("controllers", "reasons"):
        for entry in isolation.get(name, []):
            need(isinstance(entry, str) and entry, name, "has", entry)
    need(set(isolation.get("controllers", [])) <= {"memory", "pids", "cpu"}, "controllers:",
         isolation.get("controllers"))


def _check_sessions(document):
    for entry in member(document, "sessions", list):
        need(isinstance(entry, dict), "a session that is no object")
        filled(entry, "id")
        created = member(entry, "createdAt", int)
        need(created <= member(entry, "lastAccessedAt", int), "accessed before creation")
        for name in ("ageMinutes", "idleMinutes"):
            need(member(entry, name, (int, float)) >= 0, name, "is negative")
        need(member(entry, "state", str) in ("idle", "busy"), "state:", entry["state"])
        need(member(entry, "execution_count", int) >= 0, "execution_count is negative")
