# SPDX-License-Identifier: MIT
"""The processes of who runs the services: how a part is started, watched and ended, and signals.

Knows nothing of what the parts are. SIGNALS are blocked from the start on and are taken only
here, so that none comes at a bad moment.
"""

import contextlib
import ctypes
import glob
import grp
import json
import os
import pathlib
import pwd
import signal
import sys
import time

FIRST_DELAY, LAST_DELAY = 0.1, 5.0  # seconds before a part that died is started again
STEADY = 2.0  # seconds after which its end has nothing to do with its start
MOST_ENDS = 8  # in a row; with the delays between them about a quarter of a minute

# variables of the environment that are not settings of the services
OWN_VARIABLES = ("VIVARIUM_BUILDDIR", "VIVARIUM_SRCDIR", "VIVARIUM_MUST_WORK",
                 "VIVARIUM_WEB_SERVER")

SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD}

LISTENER = 3  # SD_LISTEN_FDS_START

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
LIBC = ctypes.CDLL(None, use_errno=True)


class Stopped(Exception):
    """SIGINT, SIGTERM or SIGHUP has come."""


def log(level, event, **fields):
    """One line in the form of the services' own log."""
    words = [f"level={level}", f"event={event}"]
    words += [f"{key}={json.dumps(str(value)) if ' ' in str(value) else value}"
              for key, value in fields.items()]
    try:
        print(*words, file=sys.stderr, flush=True)
    except OSError:
        pass  # whoever read the log is gone; that is no reason to stop serving


def prepare():
    """Block the signals, and become the parent of whatever a part leaves behind."""
    # none of the three may be closed: a socket would get its number
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(opened, True)
    os.close(opened)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def prctl(option, value):
    if LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def come_before_sandboxes():
    """Give this process's autogroup the nice value that a worker is above it: where the kernel has
    such groups, a worker is in one of its own, and nice values count inside of a group only
    (sched(7)). Needs root; else, and where there are none, nothing is done."""
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/autogroup").write_text("-10", "ascii")


class Identity:
    """A user and the group that a process is given; None means to stay who we are."""

    def __init__(self, user, group=None):
        entry = pwd.getpwnam(user)
        self.uid = entry.pw_uid
        self.gid = grp.getgrnam(group).gr_gid if group else entry.pw_gid

    def take(self):
        os.setgroups([])
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)
        prctl(PR_SET_NO_NEW_PRIVS, 1)


class Part:
    """One of the three services: how to start it, and the process while there is one.

    `stdin` is a descriptor, or None for nothing to read; `listener` one that it is given by the
    protocol of sd_listen_fds(3), until it has once failed to start, or None. Before each start,
    what matches the patterns of `litter` goes: what one that was killed has left there, nobody
    else would remove. `variables` are added to its environment. `stop_signal` asks it to end as
    soon as it has answered. With `takes_group` its helpers end with it, which would else go on
    when it is killed, and take what is meant for the next one.
    """

    def __init__(self, arguments, identity=None, stdin=None, listener=None, litter=()):
        self.name = pathlib.Path(arguments[0]).name
        self.arguments = [str(argument) for argument in arguments]
        self.identity = identity
        self.stdin = stdin
        self.listener = listener
        self.litter = litter
        self.variables = {}
        self.takes_group = False
        self.stop_signal = signal.SIGTERM
        self.pid = None
        self.started = 0.0
        self.start_at = 0.0  # when to start it again
        self.delay = FIRST_DELAY
        self.quick_ends = 0  # in a row, each soon after its start

    def start(self, *more):
        parent = os.getpid()
        self.started = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._become(parent, more)
            except BaseException as error:
                log("error", "start", part=self.name, reason=error)
            os._exit(127)

    def _become(self, parent, more):
        # Ctrl-C reaches the whole foreground group, and the parts are ended one by one.
        os.setsid()
        come_before_sandboxes()
        stdin = os.open(os.devnull, os.O_RDONLY) if self.stdin is None else self.stdin
        os.dup2(stdin, 0)
        os.dup2(2, 1)
        if self.listener is not None:
            os.dup2(self.listener, LISTENER)
            os.set_inheritable(LISTENER, True)  # dup2(2) of itself changes nothing
        os.closerange(LISTENER + (self.listener is not None), os.sysconf("SC_OPEN_MAX"))
        if self.identity:
            self.identity.take()
        # prctl(2): a change of user clears it, so it comes after that.
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            return
        self._remove_litter()
        for number in SIGNALS | {signal.SIGPIPE, signal.SIGXFSZ}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        environment = {key: value for key, value in os.environ.items() if key not in OWN_VARIABLES}
        environment.update(self.variables)
        if self.listener is not None:
            environment.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
        os.execve(self.arguments[0], [*self.arguments, *more], environment)

    def _remove_litter(self):
        """With the part's rights: the folders are its own, and it may have put links there."""
        for pattern in self.litter:
            for path in glob.glob(str(pattern)):
                try:
                    os.unlink(path)
                except OSError as error:
                    log("warning", "litter", part=self.name, reason=error)

    def ended(self, status):
        """Note the end; it starts again, later the sooner it died."""
        now = time.monotonic()
        if now - self.started > STEADY:
            self.delay = FIRST_DELAY
        if now - self.started > 2 * LAST_DELAY:
            self.quick_ends = 0
        self.quick_ends += 1
        log("warning", "part_ended", part=self.name, status=describe(status),
            again_in_ms=round(self.delay * 1000))
        dies_at_start = self.quick_ends >= MOST_ENDS and now - self.started <= STEADY
        if dies_at_start or os.waitstatus_to_exitcode(status) > 0:
            self.give_listener_up()  # it cannot start: who waits for it has waited enough
        self.pid = None
        self.start_at = now + self.delay
        self.delay = min(2 * self.delay, LAST_DELAY)

    def give_listener_up(self):
        """Close the socket that is kept for it: who waits there is answered by the web server."""
        if self.listener is not None:
            os.close(self.listener)
            self.listener = None

    def end_helpers(self):
        """End what is left of its process group, once it has itself ended."""
        if self.takes_group:
            # setpgid(2): its number is nobody else's as long as one of the group is there.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def kill(self, number):
        if self.pid is not None:
            os.kill(self.pid, number)  # not reaped yet, so the number is still its own


def describe(status):
    code = os.waitstatus_to_exitcode(status)
    return f"exit-{code}" if code >= 0 else signal.Signals(-code).name


def wait_for_signal(seconds):
    """Sleep until a child ended or so long; raises Stopped when it is time to end."""
    got = signal.sigtimedwait(SIGNALS, max(0.0, seconds))
    if got is not None and got.si_signo != signal.SIGCHLD:
        raise Stopped


def reap(parts):
    """Collect all children that ended; yields the parts among them with their status."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        for part in parts:
            if part.pid == pid:
                part.end_helpers()
                yield part, status


def wait_for_end(part, parts, deadline):
    """Wait until a part ended; returns whether it did. Raises what wait_for_signal() raises."""
    while True:
        for ended, _ in reap(parts):
            ended.pid = None
        left = deadline - time.monotonic()
        if part.pid is None or left <= 0:
            return part.pid is None
        wait_for_signal(left)


def children():
    """The processes whose parent we are, by birth or because theirs has died."""
    own = str(os.getpid())
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit():
                stat = pathlib.Path("/proc", entry, "stat").read_text()
                if stat.rpartition(")")[2].split()[1] == own:
                    yield int(entry)
        except (OSError, IndexError):
            continue  # it ended meanwhile


def kill_leftovers():
    """End what a part left behind when it was killed. Orphans come to us, a subreaper."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        list(reap([]))
        left = list(children())
        if not left:
            return
        for pid in left:
            log("warning", "leftover", pid=pid)
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        signal.sigtimedwait(SIGNALS, 0.1)
