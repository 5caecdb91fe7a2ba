# SPDX-License-Identifier: MIT
"""Every system call by its number, from native code in a session: what the filter lets through is
what docs/security.md lists.

The arguments are such that a call which is made does nothing, and the kernel does not answer it
with an error of the filter: an ordinary process without one makes the same calls, too.
"""

import ctypes
import errno
import fcntl
import functools
import json
import os
import re
import resource
import signal
import socket
import subprocess
import termios

import pytest

from docs import system_calls
from support.client import fresh_id
from support.must import cannot
from support.outside import PYTHON, run as run_outside
from support.program import program

X86_64 = os.uname().machine == "x86_64"
NUMBERS = range(501)
HIGH = 1 << 32
THREAD = 0x00050f00  # the flags of clone(2) that every thread has
NEW_USER = 0x10000000
SEPARATE = {"isolated", "full"}  # tiers with a PID namespace for each session
ANSWERS_OF_THE_FILTER = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP}
OWN = "own"  # stands for the process's own id

# -1 in every place, but for these
ARGUMENTS = {
    "alarm": [0],
    "fcntl": [-1, fcntl.F_GETFD],
    "futex": [1, 1],  # a wake at an address that cannot be one
    "ioctl": [-1, termios.FIONREAD],
    "kill": [OWN, -1],
    "msgget": [-1, 0],  # would else make a queue
    "madvise": [-1, 0, 4],  # MADV_DONTNEED
    "prlimit64": [0, resource.RLIMIT_NOFILE, 0, 0],
    "sendto": [-1, 0, 0, 0, 0, 0],
    "set_tid_address": [0],
    "socketpair": [socket.AF_UNIX, socket.SOCK_STREAM, 0, -1],
    "tgkill": [OWN, OWN, -1],
    "umask": [0o22],
    "utimensat": [-1, 0, -1, 0],
}
# allowed, and tried by a test each
APART = {
    "clone": "makes a thread",
    "exit": "ends its thread",
    "exit_group": "ends the process",
    "pause": "waits for a signal",
    "rt_sigreturn": "takes its registers from what is on the stack",
}
# uretprobe and uprobe of x86-64: the kernel makes them before it asks a filter
BEFORE_EVERY_FILTER = {335, 336} if X86_64 else set()
# without a filter they would do something, or do nothing for long
NOT_OUTSIDE = {"fork", "vfork", "sync", "vhangup", *APART}
# the kernel itself answers an ordinary user with EPERM; for these the unit tests show more
FOR_ROOT_ALONE = {
    "acct", "adjtimex", "bpf", "clock_adjtime", "clock_settime", "delete_module", "fanotify_init",
    "finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "init_module", "ioperm", "iopl",
    "kexec_file_load", "kexec_load", "lookup_dcookie", "move_mount", "open_by_handle_at",
    "perf_event_open", "pivot_root", "quotactl", "quotactl_fd", "reboot", "setdomainname",
    "setgroups", "sethostname", "settimeofday", "swapoff", "swapon", "syslog", "userfaultfd",
}
# what the rules with arguments do not let through; the kernel would see something wrong in each
REFUSED = {
    "a process": ("clone", [NEW_USER | signal.SIGCHLD | 0x200]),
    "a thread in a user namespace": ("clone", [THREAD | NEW_USER]),
    "a lock of an open file description": ("fcntl", [-1, 37, 0]),
    "an owner": ("fcntl", [-1, fcntl.F_SETOWN, 0]),
    "a lease": ("fcntl", [-1, fcntl.F_SETLEASE, 0]),
    "a command in the upper half": ("fcntl", [-1, HIGH | fcntl.F_GETFD]),
    "input of a terminal": ("ioctl", [-1, termios.TIOCSTI, -1]),
    "a request in the upper half": ("ioctl", [-1, HIGH | termios.FIONREAD, -1]),
    "an advice that nobody knows": ("madvise", [-1, 0, 999]),
    "an advice in the upper half": ("madvise", [-1, 0, HIGH | 18]),
    "a limit": ("prlimit64", [0, resource.RLIMIT_NOFILE, -1, 0]),
    "a pair over the network": ("socketpair", [socket.AF_INET, socket.SOCK_STREAM, 0, -1]),
    "a pair of datagrams": ("socketpair", [socket.AF_UNIX, socket.SOCK_DGRAM, 0, -1]),
    "an address": ("sendto", [-1, 0, 0, 0, -1, 16]),
    "process 1": ("kill", [1, -1]),
    "its group": ("kill", [0, -1]),
    "all processes": ("kill", [-1, -1]),
    "a thread of process 1": ("tgkill", [1, 1, -1]),
}
NOBODY = ("kill", [0x7fffffff, 0])  # no process has this number
CRASHES = {
    "exit_group": "libc.syscall(NUMBER, 7)",
    "rt_sigreturn": "libc.syscall(NUMBER)",
}
# getpid(2) as programs of other ABIs call it; outside of a sandbox both return
X32 = "import ctypes\nprint(ctypes.CDLL(None).syscall(0x40000000 | 39))"
I386 = program("""
    import ctypes, mmap
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex("53 b814000000 cd80 5b c3"))  # push rbx; mov eax, 20; int 0x80; ...
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    print(ctypes.CFUNCTYPE(ctypes.c_int)(address)())
""")
FOREIGN = {"x32": X32, "i386": I386} if X86_64 else {}

MAKE_CALLS = program("""
    import ctypes, json, os
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    def call(number, arguments):
        own = os.getpid()
        given = [ctypes.c_long(own if one == "own" else one) for one in arguments]
        ctypes.set_errno(0)
        failed = libc.syscall(ctypes.c_long(number), *given) == -1
        return ctypes.get_errno() if failed else 0
    answers = [call(number, arguments) for number, arguments in json.loads('CALLS')]
""")


@functools.cache
def number_of(name):
    """The number of a call on this machine; None if it does not have it."""
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError as error:
        return cannot(f"the names of calls are in libseccomp: {error}")
    number = library.seccomp_syscall_resolve_name(name.encode())
    assert number != -1, f"no platform has {name}"
    return number if number >= 0 else None


def numbers_of(names):
    """The numbers of calls on this machine."""
    return {number_of(name) for name in names} - {None}


@functools.cache
def names():
    """Names for the numbers of this machine, for messages and for the lists above."""
    library = ctypes.CDLL("libseccomp.so.2")
    resolve = library.seccomp_syscall_resolve_num_arch
    resolve.restype = ctypes.c_char_p
    native = library.seccomp_arch_native()
    return {number: (resolve(native, number) or b"").decode() for number in NUMBERS}


def code(calls):
    """A program that makes calls, pairs of number and arguments, and has `answers` in the end."""
    return MAKE_CALLS.replace("CALLS", json.dumps(calls))


def inside(session, calls):
    """The errors that calls give in a session, 0 for success."""
    answer = session.exec(f"{code(calls)}\nanswers")
    assert answer.success and answer.lost == "none", answer
    return answer.value


def outside(calls):
    """The same for an ordinary process without a filter."""
    status = open("/proc/self/status", encoding="ascii").read()
    if not re.search(r"^Seccomp:\s+0$", status, re.MULTILINE):
        cannot("a filter is around the tests themselves")
    drop = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") \
        if os.geteuid() == 0 else ("setpriv",)
    done = subprocess.run(
        [*drop, "--no-new-privs", PYTHON, "-I", "-c",
         f"{code(calls)}\nprint(json.dumps(answers))"],
        capture_output=True, text=True, timeout=120, check=False, cwd="/")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def all_calls(left_out):
    """Every number that is not left out, with its arguments."""
    chosen = {number_of(name): arguments for name, arguments in ARGUMENTS.items()}
    return [(number, chosen.get(number, [-1] * 6))
            for number in NUMBERS if number not in left_out]


def expected(number, tier):
    """The errors that a call may give in a tier."""
    answers = system_calls.refused_with_an_error()
    newest = max(int(name) for name in answers if name.isdigit())
    own_errors = {number_of(name): getattr(errno, error) for name, error in answers.items()
                  if name not in ("numbers", "above", str(newest))}
    allowed = numbers_of(system_calls.allowed() + system_calls.allowed_with_arguments())
    if tier in ("confined", "minimal"):  # open and openat are called with all flags
        own_errors |= {number_of(name): getattr(errno, error) for name, error
                       in system_calls.refused_without_namespaces().items()}
    if tier == "minimal":  # utimensat is called without a path
        allowed -= numbers_of(set(system_calls.refused_by_path()) - {"utimensat"})
    if number > newest:
        return {errno.ENOSYS}
    if number in own_errors:
        return {own_errors[number]}
    if number in allowed:
        return set(range(134)) - ANSWERS_OF_THE_FILTER
    return {errno.EPERM}


def test_every_number(server, session):
    calls = all_calls(numbers_of(APART) | BEFORE_EVERY_FILTER)
    pid = session.exec("import os; os.getpid()").value
    found = inside(session, calls)
    wrong = {(number, names()[number]): errno.errorcode.get(error, error)
             for (number, _), error in zip(calls, found)
             if error not in expected(number, server.tier.isolation)}
    assert wrong == {}
    assert len(calls) == len(found) > 490
    assert session.exec("os.getpid()").value == pid


def test_the_kernel_would_have_answered_otherwise():
    calls = [(number, arguments)
             for number, arguments in all_calls(numbers_of(NOT_OUTSIDE) | BEFORE_EVERY_FILTER)
             if expected(number, None) <= ANSWERS_OF_THE_FILTER and names()[number]]
    unclear = {names()[number] for (number, _), error in zip(calls, outside(calls))
               if error in expected(number, None)}
    assert len(calls) > 150
    assert unclear <= FOR_ROOT_ALONE


def test_arguments_that_are_refused(session):
    calls = [(number_of(name), arguments) for name, arguments in REFUSED.values()]
    assert dict(zip(REFUSED, inside(session, calls))) == dict.fromkeys(REFUSED, errno.EPERM)
    assert errno.EPERM not in outside(calls)


def test_whom_signals_reach(server, session):
    calls = [(number_of(name), arguments) for name, arguments in (NOBODY, ("kill", [OWN, 0]))]
    others = errno.ESRCH if server.tier.isolation in SEPARATE else errno.EPERM
    assert inside(session, calls) == [others, 0]
    assert outside(calls) == [errno.ESRCH, 0]


def test_times_of_a_path(server, session):
    calls = [(number_of("utimensat"), [-1, -1, 0, 0])]
    refused = errno.EPERM if server.tier.isolation == "minimal" else errno.EFAULT
    assert inside(session, calls) == [refused]
    assert outside(calls) == [errno.EFAULT]


def test_disk_that_a_watch_does_not_see(server, session):
    watched = server.tier.isolation not in SEPARATE
    calls = [(number_of("fallocate"), [-1, 0, 0, 1]), (number_of("openat2"), [-1, -1, -1, 24])]
    assert inside(session, calls) == ([errno.EOPNOTSUPP, errno.ENOSYS] if watched
                                      else [errno.EBADF, errno.EFAULT])
    answer = session.exec(program("""
        import os, tempfile
        try:
            os.close(os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR))
            error = 0
        except OSError as raised:
            error = raised.errno
        # what libraries do in its place
        with tempfile.TemporaryFile() as file:
            os.posix_fallocate(file.fileno(), 0, 10_000)
            size = os.fstat(file.fileno()).st_size
        error, size
    """))
    assert answer.value == [errno.EOPNOTSUPP if watched else 0, 10_000], answer


def test_locks_of_records_are_answered_and_not_made(session):
    calls = [(number_of("fcntl"), [1, command, 0]) for command in (fcntl.F_SETLK, fcntl.F_SETLKW)]
    assert inside(session, calls) == [0, 0]
    assert outside(calls) == [errno.EFAULT, errno.EFAULT]


def test_memory_that_a_copy_would_be_without(session):
    answer = session.exec(program("""
        import errno, mmap
        page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        errors = []
        for advice in (mmap.MADV_DONTFORK, 18, mmap.MADV_DOFORK, 19, mmap.MADV_DONTNEED):
            try:
                page.madvise(advice)
                errors.append(0)
            except OSError as error:
                errors.append(error.errno)
        try:
            mmap.mmap(-1, 4096, flags=mmap.MAP_ANONYMOUS | 8)  # MAP_DROPPABLE
        except OSError as error:
            errors.append(error.errno)
        errors
    """))
    assert answer.value == [errno.EINVAL, errno.EINVAL, 0, 0, 0, errno.EINVAL], answer


def test_what_the_operator_refuses(start):
    instance = start(rate_limit=0, pool_size=0, seccomp_refuse="flock, ioctl,socket")
    calls = [(number_of("flock"), [-1, 0]), (number_of("ioctl"), [-1, termios.FIONREAD]),
             (number_of("dup"), [-1])]
    found = inside(instance.client.session(fresh_id()), calls)
    assert found == [errno.EPERM, errno.EPERM, errno.EBADF]


def test_threads_come_and_go(session):
    answer = session.exec(program(f"""
        import ctypes, threading
        found = []
        thread = threading.Thread(target=found.append, args=[1])
        thread.start()
        thread.join()
        # one without Python, which calls exit(2) by itself
        libc = ctypes.CDLL(None)
        one = ctypes.c_ulong()
        assert libc.pthread_create(ctypes.byref(one), None, libc.syscall,
                                   ctypes.c_void_p({number_of("exit")})) == 0
        assert libc.pthread_join(one, None) == 0
        found
    """))
    assert answer.value == [1], answer


def test_waiting_for_a_signal(session):
    if number_of("pause") is None:
        return  # arm64 has no such call
    answer = session.exec(program(f"""
        import ctypes, signal
        libc = ctypes.CDLL(None, use_errno=True)
        before = signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        result = libc.syscall({number_of("pause")}), ctypes.get_errno()
        signal.setitimer(signal.ITIMER_REAL, 0)
        result
    """))
    assert answer.value == [-1, errno.EINTR], answer


@pytest.mark.parametrize("name", CRASHES)
def test_calls_that_end_the_worker(session, name):
    text = CRASHES[name].replace("NUMBER", str(number_of(name)))
    answer = session.exec(f"import ctypes\nlibc = ctypes.CDLL(None)\n{text}\nprint('reached')")
    assert (answer.error_type, answer.lost, answer.std_out) == ("crash", "variables", ""), answer


@pytest.mark.parametrize("code", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_foreign_abi_ends_the_worker(session, tmp_path, code):
    control = run_outside(code, tmp_path)
    if control.returncode == -signal.SIGSEGV:
        cannot("the kernel has no calls of 32 bits")
    assert control.stdout, control
    answer = session.exec(code)
    assert (answer.error_type, answer.lost, answer.std_out) == ("crash", "variables", ""), answer
    assert "SIGSYS" in answer.error["message"]
