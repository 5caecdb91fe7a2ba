# SPDX-License-Identifier: MIT
"""The benchmark's HTTP client: one kept connection, requests made beforehand, little else.

What it needs itself is a row of the table, see own_cost().
"""

import base64
import itertools
import json
import re
import socket
import time

PATIENCE = 120  # seconds without a byte of an answer until the benchmark gives up
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
PIECE = 1 << 18

_ids = itertools.count(1)


def fresh_id():
    """A session id that no call of this run has named."""
    return f"bench-{next(_ids)}"


def request(code, session, files=None):
    """The bytes of one POST /exec. `files`: names to bytes."""
    members = {"code": code}
    if files:
        members["files"] = [{"filename": name, "b64_data": base64.b64encode(data).decode()}
                            for name, data in files.items()]
    body = json.dumps(members).encode()
    head = (f"POST /exec?sessionId={session} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
    return head.encode() + body


def own_request(method, target):
    """The bytes of a request without a body."""
    return f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def body_of(message):
    """The part of a request or an answer after its head."""
    return message[message.index(b"\r\n\r\n") + 4:]


class Connection:
    """A connected stream socket on which requests follow one another."""

    def __init__(self, stream):
        self.stream = stream

    @classmethod
    def to(cls, port):
        """A connection to 127.0.0.1."""
        stream = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(stream)

    def exchange(self, message):
        """Send a request; the whole answer, head and body."""
        self.stream.sendall(message)
        answer = self.stream.recv(PIECE)
        while (end := answer.find(b"\r\n\r\n")) < 0:
            answer += self._more()
        missing = end + 4 + int(LENGTH.search(answer, 0, end)[1]) - len(answer)
        if missing <= 0:
            return answer
        whole = bytearray(len(answer) + missing)
        whole[:len(answer)] = answer
        rest = memoryview(whole)[len(answer):]
        while rest:
            got = self.stream.recv_into(rest)
            if got == 0:
                raise ConnectionError("the server closed the connection in an answer")
            rest = rest[got:]
        return whole

    def _more(self):
        data = self.stream.recv(PIECE)
        if not data:
            raise ConnectionError("the server closed the connection without an answer")
        return data

    def timed(self, message):
        """Milliseconds from before the first byte sent to the last one received, and the answer.
        """
        began = time.perf_counter_ns()
        answer = self.exchange(message)
        return (time.perf_counter_ns() - began) / 1e6, answer

    def run(self, message):
        """As timed(), for code that must run to its end; the milliseconds and the JSON."""
        took, answer = self.timed(message)
        members = json.loads(body_of(answer))
        if members["success"] is not True:
            raise RuntimeError(f"a call failed: {answer[:2000].decode(errors='replace')}")
        return took, members

    def close(self):
        """End the connection."""
        self.stream.close()


def own_cost(message, answer, count):
    """Milliseconds that exchange() itself takes: the answer waits before the request is sent."""
    near, far = socket.socketpair()
    connection = Connection(near)
    samples = []
    with near, far:
        for _ in range(count):
            far.sendall(answer)
            samples.append(connection.timed(message)[0])
            far.recv(PIECE)
    return samples
