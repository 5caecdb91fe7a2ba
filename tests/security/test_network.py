# SPDX-License-Identifier: MIT
"""Code that tries to reach a listener of the test: it does outside, and never from a session."""

import contextlib
import os
import socket
import threading
import uuid

import pytest

from support import outside
from support.program import program

OS_ERRORS = {"PermissionError", "OSError", "URLError"}
TCP = {
    "a socket": program("""
        import socket
        socket.create_connection(('127.0.0.1', PORT), 5).sendall(b'hello')
    """),
    "connect_ex": program("""
        import socket, os
        number = socket.socket().connect_ex(('127.0.0.1', PORT))
        if number: raise OSError(number, os.strerror(number))
    """),
    "any address": program("""
        import socket
        socket.create_connection(('0.0.0.0', PORT), 5)
    """),
    "a name": program("""
        import socket
        s = socket.socket()
        s.settimeout(5)
        s.connect(('localhost', PORT))
    """),
    "urllib": program("""
        import urllib.request
        urllib.request.urlopen('http://127.0.0.1:PORT/', timeout=5)
    """),
    "http.client": program("""
        import http.client
        http.client.HTTPConnection('127.0.0.1', PORT, timeout=5).request('GET', '/')
    """),
    "ftplib": program("""
        import ftplib
        ftplib.FTP().connect('127.0.0.1', PORT, 5)
    """),
    "pandas": program("""
        import pandas
        pandas.read_csv('http://127.0.0.1:PORT/a.csv')
    """),
    "asyncio": program("""
        import asyncio
        asyncio.run(asyncio.wait_for(asyncio.open_connection('127.0.0.1', PORT), 5))
    """),
    "XML-RPC": program("""
        import xmlrpc.client
        xmlrpc.client.ServerProxy('http://127.0.0.1:PORT/').x()
    """),
    "multiprocessing": program("""
        from multiprocessing.connection import Client
        Client(('127.0.0.1', PORT))
    """),
    "C": program("""
        import ctypes, os, struct
        libc = ctypes.CDLL(None, use_errno=True)
        address = struct.pack('=H', 2) + struct.pack('!H', PORT) + bytes([127, 0, 0, 1]) + bytes(8)
        if libc.connect(libc.socket(2, 1, 0), address, 16):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    """),
}


class Listener:
    """A socket that notes every message and every connection."""

    def __init__(self, listener):
        self.listener = listener
        self.visits = 0
        self._visited = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def port(self):
        """Where it listens."""
        return self.listener.getsockname()[1]

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
        code = code.replace("PORT", str(listener.port))
        assert_unreachable(session, code, listener, OS_ERRORS)
        assert_reachable(code, listener, tmp_path)


def test_a_listener_of_udp(session, tmp_path):
    with listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)) as listener:
        code = program(f"""
            import socket
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.sendto(b'hello', ('127.0.0.1', {listener.port}))
        """)
        assert_unreachable(session, code, listener, OS_ERRORS)
        assert_reachable(code, listener, tmp_path)


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_an_abstract_unix_socket(session, tmp_path, kind):
    name = f"\0viv-{uuid.uuid4().hex}"
    with listening(socket.AF_UNIX, getattr(socket, kind), name) as listener:
        code = program(f"""
            import socket
            s = socket.socket(socket.AF_UNIX, socket.{kind})
            s.connect({name!r}); s.send(b'hello')
        """)
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
    code = program(f"""
        import urllib.request
        print(urllib.request.urlopen('http://127.0.0.1:{server.port}/health', timeout=5).status)
    """)
    assert session.exec(code).error_type in OS_ERRORS
    assert outside.run(code, tmp_path).stdout == "200\n"


def test_a_listener_in_a_session_is_heard_by_nobody(session, new_session):
    answer = session.exec(program(r"""
        import socket
        s = socket.socket(socket.AF_UNIX)
        s.bind('\0viv-of-a-session'); s.listen()
    """))
    assert answer.error_type in OS_ERRORS
    answer = new_session().exec(program(r"""
        import socket
        socket.socket(socket.AF_UNIX).connect('\0viv-of-a-session')
    """))
    assert answer.error_type in OS_ERRORS


def test_what_needs_a_pair_of_sockets_within_the_process_works(session):
    received = session.value(program("""
        import socket
        a, b = socket.socketpair()
        a.sendall(b'x')
        b.recv(1).decode()
    """))
    assert received == "x"


def test_no_attempt_takes_long(session):
    for name in ("name.invalid", "example.invalid"):
        answer = session.exec(f"import socket\nsocket.gethostbyname('{name}')", timeout_ms=20_000)
        assert answer.error_type == "gaierror"
        assert answer.outcome["code_runtime"] < 5000
