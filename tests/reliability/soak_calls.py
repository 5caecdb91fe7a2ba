# SPDX-License-Identifier: MIT
"""The calls of a soak: what they are, how large, and which answers are right for each.

All is drawn from a random.Random before anything runs, so that a seed says what a run does.
"""

import dataclasses
import random

from support.program import program

KILOBYTE, MEGABYTE = 1 << 10, 1 << 20

OK = "ok"
# outcomes: the type of the error of code that ran, the status and type of any other answer
BUSY, GONE = "409 busy", "409 interrupted"
NO_ROOM = "413 resource_limit"


@dataclasses.dataclass
class Call:
    """One call: what is sent, what is done meanwhile, and the outcomes that are right."""

    kind: str
    right: frozenset
    code: str = "1"
    members: dict = dataclasses.field(default_factory=dict)
    body: object = None       # sent in place of code and members
    value: object = None      # that a call with the outcome OK must have
    during: str = ""          # interrupt, delete, crowd or leave
    delay: float = 0.1        # seconds until that
    pause: float = 0.0        # seconds before the session's next call


def size(rng, most):
    """Sizes of all orders of magnitude are as likely."""
    return int(most ** rng.random())


def _small(rng):
    a, b = rng.randrange(1 << 20), rng.randrange(1 << 20)
    return Call("small", frozenset([OK]), f"n = {a} * {b}\nn + 1", value=a * b + 1)


def _long_code(rng):
    return Call("long code", frozenset([OK]), f"'{'x' * size(rng, 1000 * KILOBYTE)}'; 7", value=7)


def _upload(rng):
    # of what fits into a session some large ones do not
    most = 8 * MEGABYTE if rng.random() < 0.05 else 100 * KILOBYTE
    files = {f"in/{number}": bytes(size(rng, most)) for number in range(rng.randint(1, 10))}
    return Call("upload", frozenset([OK, NO_ROOM]),
                f"import os; len(os.listdir('in')) >= {len(files)}", {"files": files}, value=True)


def _stdin(rng):
    text = "y" * size(rng, 1000 * KILOBYTE)
    return Call("stdin", frozenset([OK]), "import sys; len(sys.stdin.read())",
                {"stdin": text}, value=len(text))


def _output(rng):
    return Call("output", frozenset([OK]), program("""
        import sys
        print('o' * {out}); print('e' * {err}, file=sys.stderr)
    """).format(out=size(rng, 3 * MEGABYTE), err=size(rng, 3 * MEGABYTE)))


def _output_files(rng):
    most = 11 * MEGABYTE if rng.random() < 0.05 else 50 * KILOBYTE
    sizes = [size(rng, most) for _ in range(size(rng, 130))]
    return Call("output files", frozenset([OK, "OSError"]), program("""
        for number, size in enumerate({sizes}):
            with open(f'out-{{number}}', 'wb') as file: file.write(b'z' * size)
    """).format(sizes=sizes))


def _value(rng):
    return Call("value", frozenset([OK]), f"list(range({size(rng, 30000)}))")


def _raises(rng):
    name = rng.choice(["ValueError", "KeyError", "ZeroDivisionError", "SystemExit"])
    return Call("raises", frozenset([name, "OSError"]),
                f"open('f', 'w').write('x')\nraise {name}('no')")


def _plot(rng):
    return Call("plot", frozenset([OK, "OSError"]),
                f"plt.plot(range({rng.randint(2, 500)})); plt.show()")


def _no_memory(rng):
    # beyond the limit at once, or page by page
    code = "x = bytearray(1 << 31)" if rng.random() < 0.8 else program("""
        x = []
        try:
            while True: x.append(b'x' * (64 << 20))
        finally:
            x.clear()
    """)
    return Call("no memory", frozenset(["MemoryError"]), code)


def _holds(rng):
    return Call("holds memory", frozenset([OK, "MemoryError"]),
                f"held_{rng.randrange(2)} = b'm' * {size(rng, 300 * MEGABYTE)}")


def _no_disk(_):
    return Call("no disk", frozenset(["OSError"]), program("""
        try:
            with open('full', 'wb') as file:
                while True: file.write(b'x' * (8 << 20))
        finally:
            import os; os.unlink('full')
    """))


def _leaves_threads(_):
    return Call("leaves threads", frozenset([OK, "RuntimeError"]), program("""
        import threading, time
        for _ in range(3): threading.Thread(target=time.sleep, args=(2,)).start()
    """))


def _leaves_descriptors(_):
    return Call("leaves descriptors", frozenset([OK, "OSError"]),
                "held = [open('/dev/null') for _ in range(50)]")


def _crash(rng):
    code = rng.choice(["import os; os._exit(3)", "import os; os.abort()",
                       "import ctypes; ctypes.string_at(0)"])
    return Call("crash", frozenset(["crash"]), code)


def _late_crash(_):
    return Call("crash between calls", frozenset([OK, "RuntimeError", "crash"]), program("""
        import threading, os
        threading.Timer(0.05, lambda: os._exit(1)).start()
    """), pause=0.3)


def _time_out(rng):
    return Call("time-out", frozenset(["timeout"]), "while True: pass",
                {"timeout_ms": rng.randint(1, 200)})


def _deaf(rng):
    return Call("time-out, killed", frozenset(["timeout"]), program("""
        while True:
            try: sum(range(10**6))
            except BaseException: pass
    """), {"timeout_ms": rng.randint(50, 200)})


def _interrupted(rng):
    return Call("interrupted", frozenset(["KeyboardInterrupt", OK]),
                "import time; time.sleep(1)", during="interrupt", delay=rng.uniform(0, 0.2))


def _crowd(rng):
    return Call("crowd", frozenset([OK, BUSY]), f"import time; time.sleep({rng.random() / 50}); 1",
                during="crowd", value=1)


def _left(rng):
    return Call("client leaves", frozenset(["left"]), f"print('x' * {size(rng, MEGABYTE)})",
                during="leave", delay=rng.choice([0, 0, 0.01, 0.2]))


def _refused(rng):
    body, right = rng.choice([
        (b'{"code": ', "400 validation"),
        ({"code": 1}, "422 validation"),
        ({"code": "1", "timeout_ms": 0}, "422 validation"),
        ({"code": "1", "files": [{"filename": "../a", "b64_data": ""}]}, "422 parsing"),
        ({"code": "1", "files": [{"filename": "a", "b64_data": "?"}]}, "422 parsing"),
        ({"code": " " * (MEGABYTE + 1)}, NO_ROOM),
    ])
    return Call("refused", frozenset([right]), body=body)


# how often each, of a thousand
WEIGHTS = {
    _small: 415, _holds: 10, _long_code: 30, _upload: 80, _stdin: 40, _output: 60,
    _output_files: 80, _value: 40, _raises: 70, _plot: 4, _no_memory: 8, _no_disk: 2,
    _leaves_threads: 15, _leaves_descriptors: 15, _crash: 25, _late_crash: 8, _time_out: 18,
    _deaf: 3, _interrupted: 15, _crowd: 15, _left: 15, _refused: 32,
}


def _pause(rng):
    """Some give time for a checkpoint."""
    choice = rng.random()
    if choice < 0.6:
        return 0.0
    return rng.uniform(0, 0.03) if choice < 0.75 else rng.uniform(0.08, 0.15)


def draw_calls(rng, count):
    """So many calls in a row."""
    calls = [make(rng) for make in rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=count)]
    for before, call in zip(calls, calls[1:]):
        if before.kind == "crash between calls":  # on a busy machine that comes late
            call.right |= {"crash"}
    for call in calls:
        call.pause = call.pause or _pause(rng)
    return calls


@dataclasses.dataclass
class Life:
    """A session: how many calls, the seed to draw them from, and how it ends."""

    count: int
    seed: int
    end: str  # expires, deleted, deleted in a call, returns

    def calls(self):
        """Its calls, which are too large to have those of all sessions at hand."""
        return draw_calls(random.Random(self.seed), self.count)


def draw_lives(rng, sessions, calls):
    """So many sessions with so many calls together."""
    cuts = sorted(rng.randrange(calls - sessions + 1) for _ in range(sessions - 1))
    counts = [1 + after - before
              for before, after in zip([0, *cuts], [*cuts, calls - sessions])]
    ends = rng.choices(["expires", "deleted", "deleted in a call", "returns"],
                       [60, 30, 6, 4], k=sessions)
    return [Life(count, rng.getrandbits(64), end) for count, end in zip(counts, ends)]
