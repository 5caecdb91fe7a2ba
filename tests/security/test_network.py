# SPDX-License-Identifier: MIT
"""Code that tries to reach a listener of the test: it does outside, and never from a session."""

import contextlib
import os
import socket
import threading
import uuid

import pytest

from support import outside

OS_ERRORS = {"PermissionError", "OSError", "URLError"}
TCP = {
    "a socket": "import socket\nsocket.create_connection(('127.0.0.1', PORT), 5).sendall(b'hello')",
    "a socket and connect_ex": "import socket, os\nn = socket.socket().connect_ex(('127.0.0.1', PORT))\n"
                               "if n: raise OSError(n, os.strerror(n))",
    "any address": "import socket\nsocket.create_connection(('0.0.0.0', PORT), 5)",
    "localhost": "import socket\ns = socket.socket()\ns.settimeout(5)\ns.connect(('localhost', PORT))",
    "urllib": "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:PORT/', timeout=5)",
    "http.client": "import http.client\nc = http.client.HTTPConnection('127.0.0.1', PORT, timeout=5)\n"
                   "c.request('GET', '/')",
    "ftplib": "import ftplib\nftplib.FTP().connect('127.0.0.1', PORT, 5)",
    "pandas": "import pandas\npandas.read_csv('http://127.0.0.1:PORT/a.csv')",
    "asyncio": "import asyncio\nasync def main():\n    await asyncio.open_connection('127.0.0.1', PORT)\n"
               "asyncio.run(main())",
    "xmlrpc": "import xmlrpc.client\nxmlrpc.client.ServerProxy('http://127.0.0.1:PORT/').x()",
    "multiprocessing": "from multiprocessing.connection import Client\nClient(('127.0.0.1', PORT))",
    "C": "import ctypes, os, struct\nlibc = ctypes.CDLL(None, use_errno=True)\n"
         "s = libc.socket(2, 1, 0)\n"
         "a = struct.pack('=H', 2) + struct.pack('!H', PORT) + bytes([127, 0, 0, 1]) + bytes(8)\n"
         "if libc.connect(s, a, 16): raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))",
}


class Listener:
    """A socket that notes every message and every connection."""

    def __init__(self, listener):
        self.listener = listener
        self.visits = 0
        self._visited = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        stream = self.listener.type == socket.SOCK_STREAM
        with contextlib.suppress(OSError):
            while True:
                if stream:
                    visitor, _ = self.listener.accept()
                    visitor.close()
                else:
                    self.listener.recv(100)
                self.visits += 1
                self._visited.set()

    def visited(self, patience):
        """True as soon as something came; False when nothing did for `patience` seconds."""
        came = self._visited.wait(patience)
        self._visited.clear()
        return came


@contextlib.contextmanager
def listening(family, kind, address):
    """A Listener at `address`."""
    with socket.socket(family, kind) as listener:
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen(16)
        try:
            yield Listener(listener)
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def assert_unreachable(session, code, listener, kinds):
    """Assert that code fails in a session at once and that nothing came to the listener."""
    answer = session.exec(code, timeout_ms=10_000)
    assert answer.error_type in kinds, answer
    assert (answer.lost, listener.visited(0.2), listener.visits) == ("none", False, 0)


def assert_reachable(code, listener, directory):
    """Assert that the same code reaches the listener from outside."""
    result = outside.run(code, directory)
    assert listener.visited(10), result


@pytest.mark.parametrize("code", TCP.values(), ids=TCP.keys())
def test_a_listener_of_tcp(session, tmp_path, code):
    with listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)) as listener:
        code = code.replace("PORT", str(listener.listener.getsockname()[1]))
        assert_unreachable(session, code, listener, OS_ERRORS)
        assert_reachable(code, listener, tmp_path)


def test_a_listener_of_udp(session, tmp_path):
    with listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)) as listener:
        code = ("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                f"s.sendto(b'hello', ('127.0.0.1', {listener.listener.getsockname()[1]}))")
        assert_unreachable(session, code, listener, OS_ERRORS)
        assert_reachable(code, listener, tmp_path)


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_an_abstract_unix_socket(session, tmp_path, kind):
    name = f"\0viv-{uuid.uuid4().hex}"
    with listening(socket.AF_UNIX, getattr(socket, kind), name) as listener:
        code = (f"import socket\ns = socket.socket(socket.AF_UNIX, socket.{kind})\n"
                f"s.connect({name!r}); s.send(b'hello')")
        assert_unreachable(session, code, listener, OS_ERRORS)
        assert_reachable(code, listener, tmp_path)


def test_a_unix_socket_in_a_folder(session, tmp_path):
    path = f"/tmp/viv-{uuid.uuid4().hex[:8]}"
    with listening(socket.AF_UNIX, socket.SOCK_STREAM, path) as listener:
        try:
            code = f"import socket\nsocket.socket(socket.AF_UNIX).connect({path!r})"
            assert_unreachable(session, code, listener, OS_ERRORS | {"FileNotFoundError"})
            assert_reachable(code, listener, tmp_path)
        finally:
            os.unlink(path)


def test_the_server_itself(server, session, tmp_path):
    code = (f"import urllib.request\n"
            f"print(urllib.request.urlopen('http://127.0.0.1:{server.port}/health', timeout=5).status)")
    assert session.exec(code).error_type in OS_ERRORS
    assert outside.run(code, tmp_path).stdout == "200\n"


def test_a_listener_in_a_session_is_heard_by_nobody(session, new_session):
    code = "import socket\ns = socket.socket(socket.AF_UNIX)\ns.bind('\\0viv-of-a-session')\ns.listen()"
    assert session.exec(code).error_type in OS_ERRORS
    code = "import socket\nsocket.socket(socket.AF_UNIX).connect('\\0viv-of-a-session')"
    assert new_session().exec(code).error_type in OS_ERRORS


def test_what_needs_a_pair_of_sockets_within_the_process_works(session):
    code = ("import socket\na, b = socket.socketpair()\na.sendall(b'x'); got = b.recv(1)\n"
            "a.close(); b.close(); got.decode()")
    assert session.value(code) == "x"


def test_no_attempt_takes_long(session):
    for name in ("name.invalid", "example.invalid"):
        answer = session.exec(f"import socket\nsocket.gethostbyname('{name}')", timeout_ms=20_000)
        assert answer.error_type == "gaierror"
        assert answer.outcome["code_runtime"] < 5000
