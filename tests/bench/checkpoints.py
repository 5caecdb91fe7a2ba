# SPDX-License-Identifier: MIT
"""The price of checkpoints, and what they are for: an instance that makes them beside one that
does not, in turn. Sessions of both do the same."""

import time

from client import Connection, fresh_id, request
from measures import proportional_set

PAUSE = 0.15  # seconds: checkpoint_delay, and time to make one
WARM = 5  # calls before any is measured
SESSIONS = {"small": "x = 0", "10_mb": "x = 0; y = [[number] for number in range(10 ** 5)]"}
COUNT = "x += 1"
CRASH = "import os; os.abort()"


class Pair:
    """A session in each of the two instances, with a connection."""

    def __init__(self, on, off, code):
        self.ends = [(Connection.to(server.port), fresh_id()) for server in (on, off)]
        for connection, session in self.ends:
            for message in [request(code, session)] + [request(COUNT, session)] * WARM:
                connection.run(message)

    def both(self, code, turn):
        """One call in each, in turns who is first: of both the milliseconds and the answer."""
        found = [None, None]
        for end in (0, 1) if turn % 2 else (1, 0):
            connection, session = self.ends[end]
            found[end] = connection.timed(request(code, session))
        return found

    def close(self):
        for connection, _ in self.ends:
            connection.close()


def has(answer, text):
    """Whether an answer tells of a checkpoint what it must."""
    return text in answer[-200:]


def calls_in_a_row(report, on, off, count):
    """No pause is long enough for a checkpoint."""
    pair = Pair(on, off, SESSIONS["small"])
    taken = [pair.both(COUNT, turn) for turn in range(count)]
    for end, (key, kind) in enumerate((("row_on", "with"), ("row_off", "without"))):
        report.row(key, f"x += 1, one after another, {kind} checkpoints",
                   [each[end][0] for each in taken])
    report.ratio("row_on_to_off", "calls in a row, with checkpoints / without", "row_on",
                 "row_off", goal=1.1)
    pair.close()


def after_a_pause(report, on, off, count):
    """The first call after a checkpoint, against one after the same pause without."""
    for name, code in SESSIONS.items():
        pair = Pair(on, off, code)
        samples = ([], [])
        for turn in range(count):
            time.sleep(PAUSE)
            found = pair.both(COUNT, turn)
            if has(found[0][1], b'"checkpoint":null'):
                continue  # it was not made in time
            for end in (0, 1):
                samples[end].append(found[end][0])
        if not samples[0]:
            raise RuntimeError("no checkpoint was made in time")
        for end, kind in enumerate(("on", "off")):
            report.row(f"pause_{name}_{kind}",
                       f"after a pause, {name.replace('_', ' ')}, checkpoints {kind}",
                       samples[end])
        report.figure(f"pause_{name}_more",
                      f"first call after a checkpoint, {name.replace('_', ' ')}: median more by",
                      "ms", report.rows[f"pause_{name}_on"].median
                      - report.rows[f"pause_{name}_off"].median, goal=0.5)
        pair.close()


def crashes(report, on, off, count):
    """A call that ends the interpreter: the answer comes when the session goes on."""
    pair = Pair(on, off, SESSIONS["small"])
    samples = ([], [])
    for turn in range(count):
        time.sleep(2 * PAUSE)
        found = pair.both(CRASH, turn)
        if has(found[0][1], b'"restored_to":') and not has(found[1][1], b'"restored_to":'):
            for end in (0, 1):
                samples[end].append(found[end][0])
        pair.both("x = 0", turn)
    if not samples[0]:
        raise RuntimeError("no session went on from a checkpoint")
    report.row("crash_restored", "os.abort(), the session goes on from a checkpoint", samples[0])
    report.row("crash_fresh", "os.abort(), a fresh interpreter follows", samples[1])
    pair.close()


def memory(report, on, off, count):
    """What a session that is idle takes more, for its parked copy."""
    sums = []
    for server in (on, off):
        before = len(server.sandboxed())
        connection = Connection.to(server.port)
        for _ in range(count):
            session = fresh_id()
            for _ in range(2):
                connection.run(request("x = 1", session))
        connection.close()
        time.sleep(1 + PAUSE)
        members = server.sandboxed()
        if len(members) - before < (3 if server is on else 2) * count:
            raise RuntimeError(f"{len(members) - before} processes for {count} new sessions")
        try:
            sums.append(sum(map(proportional_set, members)) / count)
        except PermissionError as error:
            report.leave_out("checkpoint_pss", str(error))
            return
    report.figure("checkpoint_pss", f"PSS of an idle session more for its copy, of {count}", "MB",
                  (sums[0] - sums[1]) / 1e6, goal=1)


def measure(report, on, off, counts):
    """All of it; memory first, while the instances are fresh."""
    memory(report, on, off, counts["idle"] // 2)
    calls_in_a_row(report, on, off, counts["calls"] // 3)
    after_a_pause(report, on, off, counts["pauses"])
    crashes(report, on, off, counts["pauses"] // 3)
