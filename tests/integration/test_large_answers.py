# SPDX-License-Identifier: MIT
"""Answers that are larger than what the web server holds of them."""

import base64
import http.client
import json
import os
import pathlib
import re
import signal
import time

from support.client import exec_target, fresh_id
from support.processes import FCGI, WEB_SERVER, find
from support.together import eventually

SIZE = 8 << 20
MANY = f"for i in range(8): open(f'f{{i}}', 'wb').write(bytes({SIZE}))"


def spooled(server):
    """Bytes in the files of the web server's folders for bodies, and of what it puts aside.

    lighttpd closes those that are full, nginx takes their names away at once.
    """
    text = next(server.scratch.glob(f"*/{WEB_SERVER}.conf")).read_text()
    folders = re.findall(
        r"/[^\s\";]+", re.search(r"(?:upload-dirs =|client_body_temp_path) (.*)", text)[1])
    files = [file for folder in folders for file in pathlib.Path(folder).rglob("*")]
    for process in server.parts(WEB_SERVER):
        files += [process.path / "fd" / str(number)
                  for number, target in process.descriptors().items()
                  if target.startswith(tuple(folders))]
    found = {(status.st_dev, status.st_ino): status.st_size for status in map(os.stat, files)}
    return sum(found.values())


def test_a_body_that_is_not_whole_yet_is_found_where_it_waits(server):
    with server.client.connect() as connection:
        connection.sendall(
            f"POST {exec_target(fresh_id())} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
            f"\r\nContent-Length: {2 * SIZE}\r\n\r\n".encode() + bytes(SIZE))
        eventually(lambda: spooled(server) > SIZE / 2)


def send(server, connection):
    """Send a call with a large answer, and wait until that is on its way; nothing is read."""
    name = fresh_id()
    body = json.dumps({"code": MANY}).encode()
    connection.sendall(
        f"POST {exec_target(name)} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    eventually(lambda: server.client.sessions().get(name, {}).get("execution_count") == 1)
    eventually(lambda: server.client.sessions()[name]["state"] == "idle")
    time.sleep(1)  # what can be passed on without its taker is


def take(connection):
    """Read that answer."""
    response = http.client.HTTPResponse(connection, method="POST")
    response.begin()
    answer = json.loads(response.read())
    assert answer["success"]
    files = [base64.b64decode(entry["b64_data"]) for entry in answer["result"]["output_files"]]
    assert files == [bytes(SIZE)] * 8


def test_an_answer_that_nobody_takes_stays_where_it_is(server):
    with server.client.connect() as connection:
        send(server, connection)
        assert spooled(server) < SIZE / 4
        take(connection)


def test_who_is_stopped_while_it_answers_goes_on_where_it_was(server):
    part = server.part(FCGI)
    with server.client.connect() as connection:
        send(server, connection)
        os.kill(part.pid, signal.SIGSTOP)
        eventually(lambda: find(part.pid).state == "T")
        os.kill(part.pid, signal.SIGCONT)
        take(connection)
    assert server.client.health().status == 200
