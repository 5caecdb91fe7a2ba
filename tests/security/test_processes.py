# SPDX-License-Identifier: MIT
"""Other processes of the machine: not to be seen, hurt or read from a session."""

import contextlib
import os
import stat
import subprocess
import sys

import pytest

from support import outside, processes
from support.program import program

C = program("""
    import ctypes, os
    libc = ctypes.CDLL(None, use_errno=True)
    def check(result):
        if result: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
""")
HARM = {
    "SIGKILL": "import os; os.kill(PID, 9)",
    "signal 0": "import os; os.kill(PID, 0)",
    "kill of C": f"{C}\ncheck(libc.kill(PID, 9))",
    "tracing it": f"{C}\ncheck(libc.ptrace(16, PID, 0, 0)); libc.ptrace(17, PID, 0, 0)",
    "its environment": "open('/proc/PID/environ', 'rb').read()",
    "its memory": "open('/proc/PID/mem', 'rb').read(0)",
    "its root": "import os; os.listdir('/proc/PID/root/')",
    "its descriptors": "import os; os.listdir('/proc/PID/fd')",
    "its priority": "import os; os.setpriority(os.PRIO_PROCESS, PID, 19)",
}
REFUSALS = {"PermissionError", "ProcessLookupError", "FileNotFoundError", "NotADirectoryError",
            "OSError"}


@pytest.fixture
def victim():
    """A process of the test's own that does nothing."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("code", HARM.values(), ids=HARM.keys())
def test_another_process_of_the_machine(session, victim, tmp_path, code):
    code = code.replace("PID", str(victim.pid))
    answer = session.exec(code)
    assert answer.error_type in REFUSALS, answer
    assert victim.poll() is None
    control = outside.run(code, tmp_path)
    assert control.returncode == 0, control


def test_the_processes_of_the_server(server, session, canary):
    session.exec("x = 41")
    own = server.worker_of(session)
    others = [process for process in server.tree() if process.pid != own.pid]
    assert len(others) > 5
    # beside them are other sessions, which end when they have been idle
    keeper = server.part(processes.EXECUTOR).pid
    lasting = {process.pid for process in others
               if keeper in (process.pid, process.parent) or process.pid == server.process.pid
               or process.program() in (processes.WEB_SERVER, processes.FCGI)}
    assert len(lasting) >= 5
    answer = session.exec(program(f"""
        import os
        hit = []
        for pid in {[process.pid for process in others]}:
            if pid == os.getpid(): continue
            try: os.kill(pid, 9); hit.append(pid)
            except OSError: pass
        [x, hit]
    """))
    kept, hit = answer.value
    assert kept == 41
    if server.tier.isolation != "isolated":  # there these are numbers of the session's own
        assert hit == []
    assert all(process.alive() for process in others if process.pid in lasting)
    assert server.worker_of(canary).alive()


def test_no_other_process_is_listed(session):
    listed = session.value(program("""
        import os
        try: listing = os.listdir('/proc')
        except OSError: listing = []
        [name for name in listing if name.isdigit() and int(name) != os.getpid()]
    """))
    assert len(listed) <= 2
    arguments = session.value(program("""
        import glob
        found = []
        for path in glob.glob('/proc/[0-9]*/cmdline'):
            try: found.append(open(path, 'rb').read().decode('latin-1'))
            except OSError: pass
        found
    """))
    assert not any("lighttpd" in text or "fcgi" in text for text in arguments)


def test_sessions_have_no_process_in_common(server, session, canary):
    session.exec("1")
    mine, its = server.worker_of(session), server.worker_of(canary)
    assert mine.pid != its.pid
    assert mine.parent != its.parent or not mine.nested()


@pytest.mark.parametrize("field, value", [
    ("NoNewPrivs", "1"), ("Seccomp", "2"), ("CapEff", "0" * 16), ("CapPrm", "0" * 16),
    ("CapInh", "0" * 16), ("CapBnd", "0" * 16), ("CapAmb", "0" * 16),
])
def test_what_the_kernel_says_of_a_worker(server, session, field, value):
    worker = server.worker_of(session)
    if (server.tier.isolation, field) == ("minimal", "CapBnd"):
        value = processes.find(server.process.pid).status(field)  # no right to give it up
    assert worker.status(field) == value
    control = processes.find(os.getpid())
    if field in ("NoNewPrivs", "Seccomp"):
        assert control.status(field) != value, "the whole machine is like that"


def test_a_worker_is_nobody_of_the_machine(server, session):
    worker = server.worker_of(session)
    uids = set(worker.status("Uid").split())
    groups = set(worker.status("Gid").split())
    if processes.find(server.process.pid).status("Uid").split()[0] == "0":
        assert "0" not in uids | groups
    assert worker.status("Groups").split() in ([], [*groups])


def test_a_worker_holds_no_descriptor_of_the_machine(server, session):
    kinds = session.value(program("""
        import os, stat
        kinds = {}
        for fd in range(1024):
            try: kinds[str(fd)] = stat.S_IFMT(os.fstat(fd).st_mode)
            except OSError: pass
        kinds
    """))
    assert {"0", "1", "2"} <= set(kinds)
    assert len(kinds) <= 8, kinds
    assert stat.S_IFDIR not in kinds.values(), "an open folder is a way out"
    worker = server.worker_of(session)
    with contextlib.suppress(PermissionError):  # for root alone to see
        own = ("pipe:", "socket:", "anon_inode:", "/memfd:")
        for path in worker.descriptors().values():
            assert path.startswith(own) or path.endswith("/dev/null"), path


def test_the_namespaces_of_sessions_differ(server, session, canary):
    session.exec("1")
    mine, its = server.worker_of(session), server.worker_of(canary)
    if not mine.nested():
        return  # this tier has no namespaces; the other tests hold there as well
    assert mine.parent != its.parent, "two sessions under one process 1"
    own = {"pid", "mnt", "ipc", "net", "uts", "user", "cgroup"}
    for other in (its, processes.find(server.process.pid)):
        shared = {name.partition(":")[0] for name in mine.namespaces() & other.namespaces()}
        assert not shared & own
