# SPDX-License-Identifier: MIT
"""How soon an instance answers that has no thread and no processor left for another call."""

import contextlib
import json
import os
import time

from client import Connection, body_of, fresh_id, own_request, request

BUSY = "while True: pass"
PATIENCE = 300  # seconds until all calls run
HEALTH = own_request("GET", "/health")


def measure(report, server, calls, count):
    """GET /health, and a call that is refused, while so many calls compute."""
    report.row("health_idle", "/health, over a new connection",
               timed_afresh(server, HEALTH, count))
    busy = [(Connection.to(server.port), fresh_id()) for _ in range(calls)]
    for connection, session in busy:
        connection.run(request("1+1", session))  # its sandbox is made while there is time for it
    for connection, session in busy:
        connection.stream.sendall(request(BUSY, session))
    wait_until_all_run(server, calls)
    healthy, refused = [], []
    another = request("1+1", fresh_id())
    with client_first():
        for _ in range(count):
            healthy += timed_afresh(server, HEALTH, 1)
            refused += timed_afresh(server, another, 1, status=b" 503 ")
    wait_until_all_run(server, calls)  # still
    report.row("health_busy", "the same with all threads and processors busy", healthy)
    report.row("refused_busy", "a call that finds no thread: 503", refused)
    report.figure("health_busy_p99", "/health with all of them busy, 99th percentile", "ms",
                  report.rows["health_busy"].p99, goal=100)
    end = Connection.to(server.port)
    for connection, session in busy:
        end.exchange(own_request("DELETE", f"/sessions/{session}"))
        connection.close()
    end.close()


@contextlib.contextmanager
def client_first():
    """Let the client, which would be on a machine of its own, not wait for a processor of the
    server's. Only root can; else that time is part of what is measured."""
    if os.geteuid() == 0:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def timed_afresh(server, message, count, status=b" 200 "):
    """Milliseconds of an exchange with its connection, so many times."""
    samples = []
    for _ in range(count):
        began = time.perf_counter_ns()
        connection = Connection.to(server.port)
        answer = connection.exchange(message)
        samples.append((time.perf_counter_ns() - began) / 1e6)
        connection.close()
        if status not in answer[:16]:
            raise RuntimeError(f"not{status.decode()}but {bytes(answer[:1000])!r}")
    return samples


def wait_until_all_run(server, calls):
    """Return when so many calls run at the same time."""
    connection = Connection.to(server.port)
    deadline = time.monotonic() + PATIENCE
    while True:
        sessions = json.loads(body_of(connection.exchange(own_request("GET", "/sessions"))))
        if sum(each["state"] == "busy" for each in sessions["sessions"]) == calls:
            break
        if time.monotonic() > deadline:
            raise RuntimeError("not all calls began")
        time.sleep(0.2)
    connection.close()
