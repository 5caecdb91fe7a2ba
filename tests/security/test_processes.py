# SPDX-License-Identifier: MIT
"""Other processes of the machine: not to be seen, hurt or read from a session."""

import contextlib
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
    answer = session.exec(program(f"""
        import os
        hit = []
        for pid in {[process.pid for process in others]}:
            if pid == os.getpid(): continue
            try: os.kill(pid, 9); hit.append(pid)
            except OSError: pass
        [x, hit]
    """))
    assert answer.value[0] == 41
    assert all(process.alive() for process in others if not process.nested())
    assert server.worker_of(canary).alive()


def test_no_other_process_is_listed(session):
    listed = session.value(program("""
        import os
        listing = os.listdir('/proc') if os.path.isdir('/proc') else []
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


def test_no_process_is_left_of_an_attempt(server, session):
    worker = server.worker_of(session)

    def family():  # under the session's process 1, or in its user's name
        return {process.pid for process in processes.tree(worker.parent)
                if process.status("Uid") == worker.status("Uid")}

    before = family()
    assert worker.pid in before
    for code in ("import os; os.fork()", "import subprocess; subprocess.Popen(['sleep', '60'])",
                 "import multiprocessing; multiprocessing.Process(target=int).start()"):
        assert not session.exec(code).success
    assert family() == before


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
    assert worker.status(field) == value
    control = processes.find(server.process.pid)
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
        own = ("pipe:", "socket:", "anon_inode:", "/memfd:", "/dev/null")
        assert all(path.startswith(own) for path in worker.descriptors().values())


def test_a_library_brought_along_is_not_mapped(server, session, tmp_path):
    code = program("""
        import _ctypes, ctypes, os, shutil
        shutil.copyfile(_ctypes.__file__, 'brought.so')
        ctypes.CDLL(os.path.abspath('brought.so'))
    """)
    answer = session.exec(code)
    if server.worker_of(session).nested():  # without a mount of its own it is no boundary
        assert answer.error_type == "OSError", answer
    assert outside.run(code, tmp_path).returncode == 0


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
