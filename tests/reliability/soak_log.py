# SPDX-License-Identifier: MIT
"""Which lines of the log a soak explains; every other line is a fault.

docs/logging.md says what the events mean.
"""

import collections
import re

LINE = re.compile(r"level=(\w+) event=(\w+)(?: (.*))?")
# what the web server says of itself
WEB_SERVER = re.compile(r"\d{4}[-/]\d\d[-/]\d\d \d\d:\d\d:\d\d:? .*")
WEB_SERVER_STARTS = re.compile(r"server started|signal process started")
SETTINGS = re.compile(r"[a-z-]+: the configuration is right")

# Lines that are no sign of anything wrong. Of `request` the client saw the outcome.
GOOD = {"start", "request", "listening", "sessions_expired", "isolation",
        "executor_started", "zygote_ready"}
# Event -> the kills that explain it, and how many lines each kill may leave: a session or a
# worker each for those of one process, all that were under way for those of a service.
UNDER_WAY = 40
EXPLAINED = {
    "sandbox_died": {"supervisor": 1},
    "sandbox_lost": {"supervisor": 1, "vivarium-fcgi": UNDER_WAY},
    "sandbox_not_started": {"supervisor": 1},
    "zygote_lost": {"zygote": 1},
    "worker_not_made": {"zygote": UNDER_WAY, "supervisor": 1, "worker": 1},
    "worker_not_asked_for": {"zygote": UNDER_WAY},
    "worker_not_started": {"zygote": UNDER_WAY, "worker": 1},
    "checkpoint_not_usable": {"worker": 1},
    "no_sandbox": {"zygote": UNDER_WAY},
    "request_failed": {"supervisor": 1, "zygote": UNDER_WAY, "vivarium-fcgi": UNDER_WAY},
    "sandbox_not_ended": {"supervisor": 1},
    "sandbox_without_session": {"vivarium-fcgi": UNDER_WAY},
    "sessions_taken_over": {"vivarium-fcgi": 1},
    "part_ended": {"vivarium-fcgi": 1},
    "web server": {"vivarium-fcgi": 10 * UNDER_WAY},
}


def unexplained(messages, kills):
    """The lines that nothing explains, and how many there are of each event.

    `kills` is a Counter of what was killed.
    """
    counts = collections.Counter()
    strange = []
    for line in messages.splitlines():
        event = _event(line)
        counts[event] += 1
        if event not in GOOD and event not in EXPLAINED:
            strange.append(line)
        elif event in EXPLAINED:
            most = sum(kills[kind] * lines for kind, lines in EXPLAINED[event].items())
            if counts[event] > most:
                strange.append(f"{line}\n    (the {counts[event]}th, explained are {most})")
    return strange, counts


def _event(line):
    match = LINE.fullmatch(line)
    if match:
        return match[2]
    if SETTINGS.fullmatch(line) or WEB_SERVER_STARTS.search(line):
        return "start"
    return "web server" if WEB_SERVER.fullmatch(line) else "no event"
