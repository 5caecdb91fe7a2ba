# SPDX-License-Identifier: MIT
"""How soon a session is answered again when vivarium-fcgi was killed."""

import os
import signal
import time

from client import Connection, request

STEADY = 2.2  # seconds after which who starts it does not wait before the next start
ANSWERED = b'"execution_count":'


def measure(report, server, count):
    """Kill it, and call until there is an answer of the session's."""
    message = request("1+1", "bench-recovery")
    samples = []
    Connection.to(server.port).run(message)
    for _ in range(count):
        time.sleep(STEADY)
        os.kill(server.part("vivarium-fcgi").pid, signal.SIGKILL)
        began = time.perf_counter_ns()
        while ANSWERED not in call(server, message):
            time.sleep(0.01)
        samples.append((time.perf_counter_ns() - began) / 1e6)
    report.row("recovery", "vivarium-fcgi killed, until the next answer", samples)
    report.figure("recovery_seconds", "vivarium-fcgi killed, until the next answer, median", "s",
                  report.rows["recovery"].median / 1000, goal=1)


def call(server, message):
    """The answer over a new connection, whatever it says."""
    connection = Connection.to(server.port)
    try:
        return connection.exchange(message)
    finally:
        connection.close()
