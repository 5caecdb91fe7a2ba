# SPDX-License-Identifier: MIT
"""An HTTP client that trusts no answer: each is held against the contract first."""

import base64
import http.client
import json
import socket
import urllib.parse
import uuid

from . import contract

PATIENCE = 90  # seconds that an answer may take: a guard against hangs, never a measurement


class Answer:
    """One answer of the server: `status`, `headers`, the bytes `body` and its `json`."""

    def __init__(self, method, target, response, parsed=True):
        self.method = method
        self.target = target
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()
        self.json = contract.check_answer(
            method, target, self.status, self.headers, self.body, parsed)

    def __repr__(self):
        return f"<{self.method} {self.target[:80]}: {self.status} {self.body[:600]!r}>"

    @property
    def success(self):
        """True when the code ran to its end."""
        return self.json["success"]

    @property
    def outcome(self):
        """The object with output and files: `result`, or the answer of a failed execution."""
        return self.json["result"] if self.success else self.json

    @property
    def error(self):
        """The error object; None on success."""
        return self.json.get("error")

    @property
    def error_type(self):
        """The type of the error; None on success."""
        return self.error and self.error["type"]

    @property
    def value(self):
        """The final expression of code that ran to its end."""
        assert self.success, self
        return self.outcome["final_expression"]

    @property
    def value_type(self):
        """The name of the final expression's Python type, or None."""
        assert self.success, self
        return self.outcome["final_expression_type"]

    @property
    def std_out(self):
        """What reached file descriptor 1."""
        return self.outcome["std_out"]

    @property
    def std_err(self):
        """What reached file descriptor 2."""
        return self.outcome["std_err"]

    @property
    def files(self):
        """The output files: names to bytes, in the order of the answer."""
        entries = self.outcome["output_files"]
        return {entry["filename"]: base64.b64decode(entry["b64_data"]) for entry in entries}

    @property
    def left_out(self):
        """The files that did not come: names to their entries."""
        return {entry["filename"]: entry for entry in self.outcome.get("files_left_out", [])}

    @property
    def left_out_unnamed(self):
        """How many more files did not come than the answer names."""
        return self.outcome.get("more_files_left_out", 0)

    @property
    def truncated(self):
        """The names of what was cut."""
        return {name for name, cut in self.outcome.get("truncated", {}).items() if cut}

    @property
    def session(self):
        """The session block of an execution."""
        return self.json["session"]

    @property
    def lost(self):
        """What the session lost: none, variables or all."""
        return self.session["lost"]


def fresh_id():
    """A session id that nothing has used."""
    return f"s-{uuid.uuid4().hex}"


def exec_target(session):
    """The request target of POST /exec for the session id `session`, a text."""
    return "/exec?sessionId=" + urllib.parse.quote(session, safe="")


def session_target(session, action=""):
    """The target of what is done to the session id `session`, a text, besides running code."""
    return f"/sessions/{urllib.parse.quote(session, safe='')}{action}"


def b64(content):
    """Standard base64 of bytes, as a text."""
    return base64.b64encode(content).decode("ascii")


def file_entries(files):
    """The `files` member for a mapping, or a list of pairs, of names and bytes."""
    pairs = files.items() if isinstance(files, dict) else files
    return [{"filename": name, "b64_data": b64(content)} for name, content in pairs]


class Client:
    """Requests to one server; every one has a connection of its own. Usable from any thread.

    `prefix` comes before all targets, and `name` is what the server is called in place of its
    address.
    """

    def __init__(self, port, host="127.0.0.1", prefix="", name=None):
        self.host = host
        self.port = port
        self.prefix = prefix
        self.headers = {"Host": name} if name else {}

    def request(self, method, target, body=None, headers=None, timeout=PATIENCE):
        """Send one well-formed request and return its Answer."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            connection.request(method, self.prefix + target, body,
                               {**self.headers, **(headers or {})})
            return Answer(method, target, connection.getresponse())
        finally:
            connection.close()

    def get(self, target):
        """GET `target`."""
        return self.request("GET", target)

    def health(self):
        """GET /health."""
        return self.get("/health")

    def finds_it_healthy(self):
        """True when the whole chain answers and can start sandboxes."""
        try:
            return self.health().status == 200
        except (OSError, http.client.HTTPException):
            return False

    def sessions(self):
        """GET /sessions: the list, as a mapping of ids to entries."""
        listing = self.get("/sessions")
        assert listing.status == 200, listing
        return {entry["id"]: entry for entry in listing.json["sessions"]}

    def post(self, target, body, content_type="application/json", timeout=PATIENCE):
        """POST `body`: bytes as they are, anything else as JSON. No content type when None."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode("utf-8")
        headers = {} if content_type is None else {"Content-Type": content_type}
        return self.request("POST", target, data, headers, timeout)

    def exec(self, code, session, files=None, timeout_ms=None, stdin=None, timeout=PATIENCE):
        """Run `code` in `session`. `files` as for file_entries; what is None is not sent."""
        body = {"code": code}
        if files is not None:
            body["files"] = file_entries(files)
        if timeout_ms is not None:
            body["timeout_ms"] = timeout_ms
        if stdin is not None:
            body["stdin"] = stdin
        return self.post(exec_target(session), body, timeout=timeout)

    def interrupt(self, session, **how):
        """POST .../interrupt for the session id `session`."""
        return self.request("POST", session_target(session, "/interrupt"), **how)

    def end(self, session, **how):
        """DELETE the session of the id `session`."""
        return self.request("DELETE", session_target(session), **how)

    def connect(self, timeout=PATIENCE):
        """A bare connection to the server, for what no well-behaved client sends."""
        return socket.create_connection((self.host, self.port), timeout)

    def raw(self, pieces, method="GET", target="/", parsed=True, timeout=PATIENCE):
        """Send bytes, or an iterable of them, as they are; return the Answer that comes.

        `method`, `target` and `parsed` only say how to read the answer. The server may answer and
        close long before it has everything, so that a failing send is no failure of the request.
        """
        with self.connect(timeout) as connection:
            try:
                for piece in [pieces] if isinstance(pieces, bytes) else pieces:
                    connection.sendall(piece)
            except (BrokenPipeError, ConnectionResetError):
                pass
            response = http.client.HTTPResponse(connection, method=method)
            response.begin()
            return Answer(method, target, response, parsed)

    def session(self, name):
        """A Session that uses this client."""
        return Session(self, name)


class Session:
    """A client's view of one session: the id bound, so that tests read as what they run."""

    def __init__(self, client, name):
        self.client = client
        self.name = name

    @property
    def target(self):
        """The request target of this session's executions."""
        return exec_target(self.name)

    def exec(self, code, **members):
        """Run `code`; the Answer, whatever it says."""
        return self.client.exec(code, self.name, **members)

    def post(self, body, **how):
        """POST any body for this session."""
        return self.client.post(self.target, body, **how)

    def interrupt(self):
        """Interrupt its running call; True when there was one."""
        answer = self.client.interrupt(self.name)
        assert answer.status == 200, answer
        return answer.json["interrupted"]

    def end(self):
        """End it; True when a call of it was running."""
        answer = self.client.end(self.name)
        assert answer.status == 200, answer
        return answer.json["interrupted"]

    def state(self):
        """Whether it is idle or busy; None when there is none."""
        return self.client.sessions().get(self.name, {}).get("state")

    def value(self, code, **members):
        """Run code that must succeed; its final expression."""
        return self.exec(code, **members).value

    def output(self, code, **members):
        """Run code that must succeed; its std_out."""
        answer = self.exec(code, **members)
        assert answer.success, answer
        return answer.std_out
