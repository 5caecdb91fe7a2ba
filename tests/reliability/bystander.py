# SPDX-License-Identifier: MIT
"""A client of another session than the one that is struck."""

import threading
import time

from support.together import eventually

from .phases import PATIENCE, label

COUNT = "n = globals().get('n', 0) + 1; n"
OF_ONE_SESSION = ("zygote", "supervisor", "worker")


class Bystander:
    """It calls all the time, counts with its session, and believes no answer."""

    def __init__(self, session):
        self.session = session
        self.seen = []  # when the call began and ended, what was seen of it, its answer
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while not self._over.wait(0.02):
            begun = time.monotonic()
            seen, answer = label(self.call)
            self.seen.append((begun, time.monotonic(), seen, answer))

    def call(self):
        """One call, which counts."""
        return self.session.exec(COUNT, timeout=PATIENCE)

    def __enter__(self):
        self._thread.start()
        eventually(lambda: self.seen)
        return self

    def __exit__(self, *failure):
        self._over.set()
        self._thread.join(PATIENCE * 2)
        assert not self._thread.is_alive(), "the bystander's call hangs"

    def check(self, process, stopped):
        """Assert that it lost nothing that it was not told of, and none of it for another.

        `stopped`: when the process stood still, if it did and was not killed.
        """
        def last():
            seen, answer = label(self.call)
            self.seen.append((0, 0, seen, answer))
            return seen == "200"
        eventually(last, within=60)
        if stopped or process in OF_ONE_SESSION:
            assert {seen for _, _, seen, _ in self.seen} == {"200"}
        if stopped and process in OF_ONE_SESSION:
            assert any(stopped[0] <= begun and ended <= stopped[1]
                       for begun, ended, _, _ in self.seen), "it had to wait for another"
        losses = self.losses()
        assert losses == (["all"] if process in ("keeper", "launcher") and not stopped else [])

    def losses(self):
        """What it was told to have lost; its counter and that of its calls agree with it."""
        losses, value, executions, unanswered = [], 0, 0, 0
        for _, _, seen, answer in self.seen:
            if seen not in ("200", "200 crash"):
                unanswered += 1
                continue
            assert "restored_to" not in answer.session, answer
            if answer.lost != "none":
                losses.append(answer.lost)
                value = 0
            number = answer.session["execution_count"]
            assert executions < number <= executions + 1 + unanswered, answer
            executions = number
            if seen == "200":
                assert value < answer.value <= value + 1 + unanswered, answer
                value = answer.value
            unanswered = 0
        return losses
