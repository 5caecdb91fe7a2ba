# SPDX-License-Identifier: MIT
"""The two wires of vivarium-executor as its client speaks them: executor_wire and session_wire.

Their numbers are written down here a second time, so that a change of the protocol shows.
"""

import array
import os
import socket
import struct

ANSWER_DEADLINE = 60

# executor_wire.h
MAGIC = 0x58564956
VERSION = 2
HEADER = struct.Struct("<IHHQ")
BYTES_MAX = 2048
ACQUIRE, ATTACH, RECORD, NEXT, END, STATUS = range(1, 7)

# error.h
OK, SYSTEM, BAD_GATEWAY, UNAVAILABLE = range(4)
CAPACITY, NOT_FOUND = 11, 12

# session_wire.h and frame.h
FRAME_MAGIC = 0x46564956
FRAME = struct.Struct("<IBBHII")
EXEC, FILE, DATA, RUN, INTERRUPT = range(1, 6)
REFUSED, OUTPUT, RESULT, FILE_END, LEFT_OUT, DONE = range(16, 22)
EXEC_FIXED = struct.Struct("<16sIIIIIIQQIBI")
DONE_FIXED = struct.Struct("<16sBBBBBBIIIIB")
(RAN, TIMED_OUT, CRASHED, OUT_OF_MEMORY, BROKE_PROTOCOL, OUT_OF_DISK,
 INTERRUPTED) = range(1, 8)


class Gone(Exception):
    """The other end closed the connection."""


def frame(kind, payload=b"", sequence=1, magic=FRAME_MAGIC, version=1, flags=0, length=None):
    """The bytes of a frame, right or wrong."""
    length = len(payload) if length is None else length
    return FRAME.pack(magic, version, kind, flags, sequence, length) + payload


def exec_payload(code, stdin=None, nonce=b"n" * 16, number=1, timeout_ms=20000, grace_ms=500,
                 max_output=1 << 20, max_result=1 << 16, max_output_files=100,
                 max_file_size=10 << 20, max_output_total=100 << 20):
    """The payload of an EXEC frame."""
    code = code.encode() if isinstance(code, str) else code
    given = b"" if stdin is None else stdin
    return EXEC_FIXED.pack(nonce, number, timeout_ms, grace_ms, max_output, max_result,
                           max_output_files, max_file_size, max_output_total, len(code),
                           stdin is not None, len(given)) + code + given


class Answer:
    """All that came for one call."""

    def __init__(self):
        self.output = [b"", b""]
        self.claims = None  # by tag, or None
        self.files = {}     # names to contents; those that FILE_END took back are not here
        self.left_out = []  # names with their reasons
        self.refused = None
        self.outcome = self.lost = self.truncated = self.signal = self.status = None
        self.runtime_ms = None

    def __repr__(self):
        return f"<{vars(self)}>"

    @property
    def out(self):
        """The standard output, as text."""
        return self.output[0].decode()

    @property
    def value(self):
        """The JSON text of the last expression, as text; None where there is none."""
        return self.claims[2].decode() if self.claims and 2 in self.claims else None

    @property
    def error(self):
        """The type of the exception, as text; None where there is none."""
        return self.claims[5].decode() if self.claims and 5 in self.claims else None


class Channel:
    """The client's end of a session channel."""

    def __init__(self, descriptor):
        self.socket = socket.socket(fileno=descriptor)
        self.socket.settimeout(ANSWER_DEADLINE)
        self.sequence = 0

    def close(self):
        """Leave."""
        self.socket.close()

    def send(self, data):
        """Bytes as they are."""
        self.socket.sendall(data)

    def _read(self, size):
        data = b""
        while len(data) < size:
            try:
                piece = self.socket.recv(size - len(data))
            except ConnectionResetError as error:
                raise Gone from error
            if not piece:
                raise Gone
            data += piece
        return data

    def receive(self):
        """The next frame: its type, sequence and payload."""
        magic, version, kind, flags, sequence, length = FRAME.unpack(self._read(FRAME.size))
        assert (magic, version, flags) == (FRAME_MAGIC, 1, 0)
        return kind, sequence, self._read(length)

    def is_closed(self):
        """True once the other end has closed; waits for that."""
        try:
            self._read(1)
        except Gone:
            return True
        return False

    def begin(self, code, files=(), **limits):
        """Send a whole call; its answer is for `finish`."""
        self.sequence += 1
        parts = [frame(EXEC, exec_payload(code, number=self.sequence, **limits), self.sequence)]
        for name, content in files:
            parts.append(frame(FILE, os.fsencode(name), self.sequence))
            parts.extend(frame(DATA, content[at:at + 200000], self.sequence)
                         for at in range(0, len(content), 200000))
        parts.append(frame(RUN, b"", self.sequence))
        self.send(b"".join(parts))

    def finish(self, nonce=b"n" * 16):
        """The answer to the call that was begun, checked against the order of the protocol."""
        answer = Answer()
        name = None
        while True:
            kind, sequence, payload = self.receive()
            assert sequence == self.sequence
            assert (kind in (DATA, FILE_END)) == (name is not None)
            if kind == OUTPUT:
                answer.output[payload[0] - 1] += payload[1:]
            elif kind == RESULT:
                assert answer.claims is None
                answer.claims = _claims(payload)
            elif kind == FILE:
                name, content = os.fsdecode(payload), b""
            elif kind == DATA:
                content += payload
            elif kind == FILE_END:
                if payload[0] == 0:
                    answer.files[name] = content
                else:
                    answer.left_out.append((name, payload[0]))
                name = None
            elif kind == LEFT_OUT:
                answer.left_out.append((os.fsdecode(payload[9:]), payload[0]))
            elif kind == REFUSED:
                answer.refused = struct.unpack("<BI", payload)
                return answer
            else:
                assert kind == DONE
                (told, answer.outcome, lost, out_cut, error_cut, answer.signal, answer.status,
                 answer.runtime_ms, _, answer.checkpoint, answer.restored_to,
                 answer.skipped) = DONE_FIXED.unpack(payload)
                assert told == nonce
                answer.lost, answer.truncated = bool(lost), (bool(out_cut), bool(error_cut))
                return answer

    def call(self, code, files=(), **limits):
        """One call from EXEC to DONE."""
        self.begin(code, files, **limits)
        return self.finish(limits.get("nonce", b"n" * 16))


def _claims(payload):
    claims = {}
    while payload:
        tag, size = struct.unpack_from("<BI", payload)
        claims[tag] = payload[5:5 + size]
        payload = payload[5 + size:]
    return claims


class Reply:
    """A reply of the executor."""

    def __init__(self, message, descriptors):
        magic, version, self.code, self.sandbox = HEADER.unpack_from(message)
        assert (magic, version) == (MAGIC, VERSION)
        self.bytes = message[HEADER.size:]
        self.descriptors = descriptors

    def __repr__(self):
        return f"<code {self.code} sandbox {self.sandbox} {self.bytes!r} {self.descriptors}>"


def request(operation, sandbox=0, data=b"", magic=MAGIC, version=VERSION):
    """The bytes of a request, right or wrong."""
    return HEADER.pack(magic, version, operation, sandbox) + data


class Connection:
    """A connection to the executor's socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(ANSWER_DEADLINE)
        self.socket.connect(str(path))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Leave."""
        self.socket.close()

    def send(self, data, descriptors=()):
        """One message as it is."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        self.socket.sendmsg([data], rights if descriptors else [])

    def receive(self):
        """The next reply."""
        message, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(16))
        if not message:
            raise Gone
        descriptors = array.array("i")
        for _, _, data in ancillary:
            descriptors.frombytes(data)
        return Reply(message, list(descriptors))

    def ask(self, *arguments, **keywords):
        """One request and its reply."""
        self.send(request(*arguments, **keywords))
        return self.receive()


def end_session(path, name):
    """Let the executor behind the socket `path` end what a session has.

    What it keeps of a session for vivarium-fcgi has the session's name in it.
    """
    with Connection(path) as connection:
        found = connection.ask(NEXT, 0)
        while found.sandbox and name.encode() not in found.bytes:
            found = connection.ask(NEXT, found.sandbox)
        if found.sandbox:
            connection.ask(END, found.sandbox)
