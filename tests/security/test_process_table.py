# SPDX-License-Identifier: MIT
"""What each process of vivarium-executor may do, as a table, and whether those that run match it.

docs/security.md has the same table for people. `host` stands for what this test itself has.
"""

import os
import stat

import pytest

from support.executor import NOBODY, Executor
from support.must import only_root_can
from support.processes import find
from support.together import eventually

# linux/capability.h
DAC_OVERRIDE, KILL, SETGID, SETUID, SETPCAP, SYS_PTRACE, SYS_ADMIN = 1, 5, 6, 7, 8, 19, 21
ALL = "all"  # all that the kernel knows

PARTS = ("keeper", "launcher", "zygote", "supervisor", "worker")
UID_BASE = 200000

# effective and permitted capabilities, of the process's own user namespace
CAPABILITIES = {
    "root": {
        "keeper": {KILL},
        "launcher": {KILL, SETGID, SETUID, SETPCAP, SYS_PTRACE, SYS_ADMIN},
        "zygote": {SYS_ADMIN},  # effective only while it forks
        "supervisor": {DAC_OVERRIDE},
        "worker": set(),
    },
    "ordinary": {
        "keeper": set(),
        "launcher": {KILL, SETGID, SETUID, SETPCAP, SYS_PTRACE, SYS_ADMIN},
        "zygote": {SYS_ADMIN},
        "supervisor": {DAC_OVERRIDE},
        "worker": set(),
    },
}
BOUNDING = {
    "keeper": "host",
    "launcher": ALL,
    "zygote": ALL,
    "supervisor": {DAC_OVERRIDE},
    "worker": set(),
}
# user and group as the host sees them; those of supervisor and worker are of the session
OWNER = {
    "root": {
        "keeper": 0,
        "launcher": UID_BASE,
        "zygote": UID_BASE + 1,
        "supervisor": "session",
        "worker": "session",
    },
    "ordinary": dict.fromkeys(PARTS, NOBODY),
}
# lines of uid_map and gid_map
MAPS = {
    "root": {
        "keeper": "host",
        "launcher": [(0, UID_BASE, 65536)],
        "zygote": [(0, UID_BASE, 65536)],
        "supervisor": "session",
        "worker": "session",
    },
    "ordinary": {
        "keeper": "host",
        "launcher": [(1000, NOBODY, 1)],
        "zygote": [(1000, NOBODY, 1)],
        "supervisor": [(1000, NOBODY, 1)],
        "worker": [(1000, NOBODY, 1)],
    },
}
# whose namespace of each kind a process is in; the session's is its supervisor's
NAMESPACES = {
    "keeper": dict.fromkeys(("user", "pid", "mnt", "net", "ipc", "uts", "cgroup"), "host"),
    "launcher": {"user": "launcher", "pid": "host", "mnt": "launcher", "net": "launcher",
                 "ipc": "launcher", "uts": "launcher", "cgroup": "host"},
    "zygote": {"user": "launcher", "pid": "host", "mnt": "zygote", "net": "launcher",
               "ipc": "launcher", "uts": "launcher", "cgroup": "host"},
    "supervisor": dict.fromkeys(("user", "pid", "mnt", "net", "ipc", "uts", "cgroup"),
                                "supervisor"),
    "worker": dict.fromkeys(("user", "pid", "mnt", "net", "ipc", "uts", "cgroup"), "supervisor"),
}
SECCOMP = {"keeper": 0, "launcher": 0, "zygote": 0, "supervisor": 2, "worker": 2}
# whether processes of the same user may look into it; of root's keeper it cannot be seen
DUMPABLE = {"launcher": True, "zygote": True, "supervisor": False, "worker": False}
# the root folder
ROOT = {"keeper": "host", "launcher": "template", "zygote": "template", "supervisor": "template",
        "worker": "template"}
# descriptors of a worker: nothing of another session, of the host or of its supervisor
WORKER_DESCRIPTORS = {"0": "/dev/null", "1": "pipe", "2": "pipe", "3": "socket"}


class Table:
    """A running executor with two sandboxes, of which one is looked at."""

    def __init__(self, kind):
        self.kind = kind
        self.executor = Executor(user=NOBODY if kind == "ordinary" else None,
                                 uid_base=UID_BASE, pool_size=1)
        self.executor.start()
        self.sandbox, self.other = self.executor.acquire(), self.executor.acquire()
        self.supervisor = self.sandbox.supervisor()
        self.session_user = self.owner_of(self.supervisor)
        eventually(lambda: self.executor.status()["ready"] == "1")

    @staticmethod
    def owner_of(process):
        """The one user that it is in every respect."""
        users = set(process.status("Uid").split()) | set(process.status("Gid").split())
        assert len(users) == 1, users
        return int(users.pop())

    def part(self, name):
        """The process of that name."""
        if name == "supervisor":
            return self.supervisor
        if name == "worker":
            return next(each for each in self.executor.workers()
                        if each.parent == self.supervisor.pid)
        return getattr(self.executor, name)()


@pytest.fixture(scope="module", params=["root", "ordinary"])
def table(request):
    """An executor that root started, and one that an ordinary user did."""
    only_root_can("start both, and look at what is not dumpable")
    running = Table(request.param)
    yield running
    running.executor.discard()


def capabilities(process, kind):
    """A set of capabilities, as numbers."""
    bits = int(process.status(kind), 16)
    return {number for number in range(64) if bits >> number & 1}


def known_capabilities():
    """All that this kernel has."""
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as last:
        return set(range(int(last.read()) + 1))


@pytest.mark.parametrize("part", PARTS)
def test_user_and_group(table, part):
    expected = OWNER[table.kind][part]
    if expected == "session":
        expected = table.session_user
        assert UID_BASE + 2 <= expected < UID_BASE + 65536
    process = table.part(part)
    assert table.owner_of(process) == expected
    assert process.status("Groups") == ""


def test_sessions_have_users_of_their_own(table):
    users = [table.owner_of(each) for each in table.executor.supervisors()]
    assert len(users) == 3
    if table.kind == "root":
        assert len(set(users)) == 3
    else:
        assert set(users) == {NOBODY}  # it has no other


@pytest.mark.parametrize("part", PARTS)
def test_maps(table, part):
    expected = MAPS[table.kind][part]
    if expected == "session":
        expected = [(1000, table.session_user, 1)]
    process = table.part(part)
    for name in ("uid_map", "gid_map"):
        text = (process.path / name).read_text()
        found = [tuple(map(int, line.split())) for line in text.splitlines()]
        if expected == "host":
            assert text == open(f"/proc/self/{name}", encoding="ascii").read()
        else:
            assert found == expected


@pytest.mark.parametrize("part", PARTS)
def test_capabilities(table, part):
    process, expected = table.part(part), CAPABILITIES[table.kind][part]
    assert capabilities(process, "CapPrm") == expected
    assert capabilities(process, "CapInh") == capabilities(process, "CapAmb") == set()
    if part == "zygote":  # nothing while it waits
        eventually(lambda: capabilities(table.part(part), "CapEff") == set())
    else:
        assert capabilities(process, "CapEff") == expected


@pytest.mark.parametrize("part", PARTS)
def test_bounding_set(table, part):
    expected = BOUNDING[part]
    if expected == ALL:
        expected = known_capabilities()
    elif expected == "host":
        expected = capabilities(find(os.getpid()), "CapBnd")
    assert capabilities(table.part(part), "CapBnd") == expected


@pytest.mark.parametrize("part", PARTS)
def test_no_new_privileges(table, part):
    assert table.part(part).status("NoNewPrivs") == "1"


@pytest.mark.parametrize("part", PARTS)
def test_seccomp(table, part):
    assert int(table.part(part).status("Seccomp")) == SECCOMP[part]


@pytest.mark.parametrize("part", DUMPABLE)
def test_dumpable(table, part):
    """The files in /proc of one that is not belong to a root: its namespace's or the host's."""
    process = table.part(part)
    owner = os.stat(process.path / "environ").st_uid
    assert (owner == table.owner_of(process)) == DUMPABLE[part]


@pytest.mark.parametrize("part", PARTS)
def test_namespaces(table, part):
    def of(name, kind):
        pid = "self" if name == "host" else table.part(name).pid
        return os.readlink(f"/proc/{pid}/ns/{kind}")

    for kind, owner in NAMESPACES[part].items():
        mine = of(part, kind)
        assert mine == of(owner, kind), kind
        if owner == part:
            others = set(PARTS) - {part} - {each for each in PARTS
                                            if NAMESPACES[each][kind] == part}
            assert mine not in {of(each, kind) for each in others} | {of("host", kind)}, kind
    assert of(part, "time") == of("host", "time")


def test_sandboxes_share_no_namespace(table):
    first, *others = table.executor.supervisors()
    for kind in NAMESPACES["supervisor"]:
        own = os.readlink(first.path / "ns" / kind)
        assert own not in {os.readlink(each.path / "ns" / kind) for each in others}, kind


@pytest.mark.parametrize("part", PARTS)
def test_root(table, part):
    top = set(os.listdir(table.part(part).path / "root"))
    if ROOT[part] == "host":
        assert top == set(os.listdir("/"))
    else:
        assert top == {"dev", "etc", "home", "lib", "lib64", "proc", "tmp", "usr"}
        assert os.listdir(table.part(part).path / "root" / "proc") == []


def test_parents(table):
    launcher = table.part("launcher").pid
    assert table.part("launcher").parent == table.part("keeper").pid
    assert table.part("zygote").parent == launcher
    assert table.part("supervisor").parent == launcher
    assert table.part("worker").parent == table.part("supervisor").pid
    assert table.part("supervisor").status("NSpid").split()[1:] == ["1"]
    assert len(table.part("worker").status("NSpid").split()) == 2


@pytest.mark.parametrize("part", PARTS)
def test_one_thread(table, part):
    assert table.part(part).threads == 1


def test_descriptors_of_a_worker(table):
    """Beside these only the runner's copies of the first three."""
    found = table.part("worker").descriptors()
    named = {str(number): path.split(":")[0] for number, path in found.items()}
    assert {number: named[number] for number in WORKER_DESCRIPTORS} == WORKER_DESCRIPTORS
    copies = sorted(path for number, path in found.items() if number > 3)
    assert copies == sorted(found[number] for number in (0, 1, 2))


def test_descriptors_of_a_supervisor(table):
    """Its own session's, and the log; its channels are in pairs with nobody but their ends."""
    supervisor, worker = table.part("supervisor"), table.part("worker")
    kinds = sorted(path.split(":")[0] for number, path in supervisor.descriptors().items()
                   if number > 2)
    kept = sorted([
        "user", "pid", "mnt", "net", "ipc", "uts", "cgroup",  # for its next worker to join
        "/home/earth", "/tmp", "/dev/shm",  # to walk, and to see how full they are
        "socket",  # to the launcher
        "socket",  # to its client
        "socket", "pipe", "pipe", "anon_inode",  # to its worker, and the worker itself
        "anon_inode"])  # to what the filter of that one leaves to it
    assert kinds in (kept, sorted([*kept, "anon_inode"]))  # a parked copy of the worker
    for kind in NAMESPACES["supervisor"]:
        assert os.readlink(supervisor.path / "ns" / kind) in supervisor.descriptors().values()
    pipes = {path for path in worker.descriptors().values() if path.startswith("pipe")}
    assert pipes <= set(supervisor.descriptors().values())


def test_descriptors_of_a_zygote(table):
    """Its socket alone, once it has served."""
    def kinds():
        found = table.part("zygote").descriptors()
        return [path.split(":")[0] for number, path in found.items() if number > 2]

    eventually(lambda: kinds() == ["socket"])


def test_the_socket_is_for_its_owner_alone(table):
    status = os.stat(table.executor.path)
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_uid == NOBODY


def test_limits_of_a_worker(table):
    text = (table.part("worker").path / "limits").read_text()
    limits = {line[:26].strip(): line[26:].split()[:2] for line in text.splitlines()[1:]}
    assert limits["Max core file size"] == ["0", "0"]
    assert limits["Max open files"] == ["256", "256"]
    assert limits["Max processes"] == ["67", "67"]  # with checkpoints
    assert limits["Max file size"] == [str(256 << 20)] * 2
    assert limits["Max pending signals"] == ["64", "64"]
    assert limits["Max locked memory"] == limits["Max msgqueue size"] == ["0", "0"]
    assert limits["Max nice priority"] == limits["Max realtime priority"] == ["0", "0"]
    soft, hard = limits["Max address space"]
    assert soft == hard and (1 << 30) < int(soft) < (2 << 30)
