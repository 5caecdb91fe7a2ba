# SPDX-License-Identifier: MIT
"""Kills of processes in the middle of a soak, at numbers of calls that a seed gives."""

import collections
import contextlib
import os
import signal
import threading
import time

from support import processes
from support.together import eventually

# one in how many calls, and in each stage one at least
WORKER, SUPERVISOR, ZYGOTE = "worker", "supervisor", "zygote"
EVERY = {WORKER: 100, SUPERVISOR: 300, ZYGOTE: 2500, processes.FCGI: 5000}
# seconds after the kill, or after the recovery of a service, in which calls may still fail, and
# how: those that were under way, and those that find a service gone
FAILED = {"500 system", "502 system", "503 system", "no answer"}
AFTERWARDS = {WORKER: 0.5, SUPERVISOR: 0.5, ZYGOTE: 5, processes.FCGI: 5}
EXPLAINED = {WORKER: {"crash"},
             # the latter where it had yet to start, or to answer for the first time
             SUPERVISOR: {"crash", "502 system", "503 system"},
             ZYGOTE: {"503 system", "503 capacity"}, processes.FCGI: FAILED}


class Killer:
    """Who kills, what was killed, and when that explains an answer.

    `spared` are the pids of sandboxes that it leaves alone.
    """

    def __init__(self, instance, rng, calls, spare_services):
        self.instance = instance
        self.rng = rng
        self.killed = collections.Counter()
        self.spared = set()
        self.times = []  # from, until, outcomes
        kinds = [kind for kind in EVERY if kind != processes.FCGI or not spare_services]
        self.due = sorted((rng.randrange(calls), kind) for kind in kinds
                          for _ in range(max(1, calls // EVERY[kind])))

    @contextlib.contextmanager
    def at_work(self, stage):
        """Kill in a thread until the context ends; all that is due has then been done."""
        over = threading.Event()
        failures = []

        def work():
            try:
                for number, kind in self.due:
                    while stage.done() < number and not over.wait(0.02):
                        pass
                    self._kill(kind)
            except BaseException as error:  # raised again where the context ends
                failures.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        if failures:
            raise failures[0]

    def _victims(self, kind):
        if kind in (ZYGOTE, processes.FCGI):
            return self.instance.parts({ZYGOTE: processes.ZYGOTE}.get(kind, kind))
        program = processes.ZYGOTE if kind == WORKER else processes.EXECUTOR
        return [process for process in self.instance.tree()
                if process.nested() and process.program() == program
                and not {process.pid, process.parent} & self.spared]

    def _kill(self, kind):
        victims = eventually(lambda: self._victims(kind))
        victim = self.rng.choice(victims)
        began = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            if victim.alive():
                os.kill(victim.pid, signal.SIGKILL)
                self.killed[kind] += 1
        if kind in (ZYGOTE, processes.FCGI):
            eventually(lambda: self._serves_again(kind, victim), within=120)
        self.times.append((began, time.monotonic() + AFTERWARDS[kind], EXPLAINED[kind]))

    def _serves_again(self, kind, victim):
        found = [process for process in self._victims(kind) if process.pid != victim.pid]
        return found and self.instance.healthy()

    def explains(self, began, ended, came):
        """True when a kill explains that this came of a call of that time."""
        return any(start <= ended and began <= end and came in outcomes
                   for start, end, outcomes in self.times)
