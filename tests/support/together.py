# SPDX-License-Identifier: MIT
"""Calls side by side."""

import concurrent.futures
import threading
import time


def at_once(calls):
    """Start all callables at the same moment, each in a thread; their results, in order."""
    calls = list(calls)
    gate = threading.Barrier(len(calls))

    def start(call):
        gate.wait()
        return call()

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(start, calls))


def in_background(call):
    """Start one callable in a thread; a future of its result."""
    future = concurrent.futures.Future()

    def run():
        try:
            future.set_result(call())
        except BaseException as error:  # handed to whoever asks for the result
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def eventually(condition, within=30, every=0.05):
    """Poll `condition` until it is true and return what it gave; an AssertionError after `within`.

    For states that come by themselves. The bound is only there to end a test that fails.
    """
    deadline = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {within} s: {condition.__name__}"
        time.sleep(every)


def unchanged(take, quiet=8, within=120):
    """What `take` gives, once that has been the same for `quiet` seconds in a row.

    Of what others end in their own time: the web server closes a connection for up to 5 seconds
    (HTTP_LINGER_TIMEOUT). An OSError is of what ended meanwhile.
    """
    seen = []

    def same():
        try:
            now = take()
        except OSError:
            seen.clear()
            return None
        if seen and seen[-1] != now:
            seen.clear()
        seen.append(now)
        return len(seen) > quiet and seen

    return eventually(same, within=within, every=1)[-1]
