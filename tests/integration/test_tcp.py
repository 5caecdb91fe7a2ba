# SPDX-License-Identifier: MIT
"""vivarium-fcgi at an address of TCP, for a web server on another host."""

import os
import socket
import subprocess

import pytest

from support.client import Client, fresh_id
from support.executor import Executor
from support.other_servers import OTHER_SERVERS, PREFIX, free_port
from support.tiers import build_file
from support.together import eventually


@pytest.fixture(scope="module")
def executor():
    """A vivarium-executor that the applications of all tests use in turn."""
    started = Executor()
    try:
        yield started.start()
    finally:
        started.discard()


class Application:
    """One vivarium-fcgi as its own process; a context manager."""

    def __init__(self, executor, log, address, **settings):
        self.log = log
        self.port = free_port()
        self.address = f"tcp:{address}:{self.port}"
        flags = [f"--{name}={value}" for name, value in settings.items()]
        self.command = [
            build_file("vivarium-fcgi"), "-f", os.devnull, f"--listen={self.address}",
            f"--executor_socket={executor.path}", "--rate_limit=0", *flags]
        self.process = None

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stderr=log)
        eventually(lambda: "event=listening" in self.messages() or self.process.poll() is not None)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(30) == 0

    def messages(self):
        """What it has logged so far."""
        return self.log.read_text()

    def takes(self, source):
        """Whether it keeps a connection from that address, which it would not answer yet."""
        with socket.socket() as connection:
            connection.bind((source, 0))
            connection.settimeout(3)
            connection.connect(("127.0.0.1", self.port))
            try:
                return connection.recv(1) != b""
            except TimeoutError:
                return True
            except ConnectionResetError:
                return False


@pytest.mark.parametrize("kind", OTHER_SERVERS)
def test_a_web_server_reaches_it(executor, tmp_path, kind):
    with Application(executor, tmp_path / "log", "127.0.0.1") as application, \
            OTHER_SERVERS[kind](application.port) as server:
        client = Client(server.port, prefix=PREFIX)
        content = bytes(range(256)) * 10_000
        assert client.health().status == 200
        answer = client.exec("import shutil; shutil.copy('in', 'out'); 6 * 7", fresh_id(),
                             files={"in": content})
        assert answer.value == 42
        assert answer.files == {"out": content}
        assert "open_to_other_hosts" not in application.messages()


def test_a_client_that_leaves_nginx_interrupts_its_call(executor, tmp_path):
    """The end of a connection over TCP looks like one that has been shut down on one side."""
    with Application(executor, tmp_path / "log", "127.0.0.1") as application, \
            OTHER_SERVERS["nginx"](application.port) as server:
        session = Client(server.port, prefix=PREFIX).session(fresh_id())
        session.exec("import time; x = 0")
        body = b'{"code": "x = 1; time.sleep(60); x = 2"}'
        with session.client.connect() as connection:
            connection.sendall(
                f"POST {PREFIX}{session.target} HTTP/1.1\r\nHost: x\r\nContent-Type: "
                f"application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            eventually(lambda: session.state() == "busy")
        eventually(lambda: session.state() == "idle", within=25)
        assert session.value("x") == 1
        eventually(lambda: " left=1" in application.messages())


def test_those_that_are_not_named_are_turned_away(executor, tmp_path):
    with Application(executor, tmp_path / "log", "127.0.0.1",
                     web_servers="127.0.0.2, 192.0.2.0/24") as application:
        assert application.takes("127.0.0.2")
        assert not application.takes("127.0.0.3")
        eventually(lambda: 'event=web_server_refused peer=127.0.0.3 ' in application.messages())


def test_it_warns_where_other_hosts_could_reach_it(executor, tmp_path):
    with Application(executor, tmp_path / "log", "0.0.0.0") as application:
        eventually(lambda: "level=warning event=open_to_other_hosts web_servers=127.0.0.0/8,::1 "
                   in application.messages())


def test_it_comes_back_at_the_same_port(executor, tmp_path):
    with Application(executor, tmp_path / "log", "127.0.0.1") as application:
        connection = socket.create_connection(("127.0.0.1", application.port))
    with connection, application:
        assert application.takes("127.0.0.1")
