# SPDX-License-Identifier: MIT
"""What the container of the tests takes from a program, and what the services make of the rest."""

import subprocess

import pytest

from support.client import fresh_id
from support.must import only_root_can
from support.program import program
from support.server import running
from support.tiers import NOBODY, PROFILE, build_file

STANDARD = 0xa80425fb  # the fourteen capabilities, as /proc has them
SYS_ADMIN = 1 << 21
CALLS = program("""
    import ctypes, errno, platform
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = {
        'x86_64': dict(mount=165, umount2=166, pivot_root=155, unshare=272, setns=308, bpf=321,
                       perf_event_open=298, keyctl=250, add_key=248, request_key=249,
                       userfaultfd=323, clone=56, getpid=39, chroot=161),
        'aarch64': dict(mount=40, umount2=39, pivot_root=41, unshare=97, setns=268, bpf=280,
                        perf_event_open=241, keyctl=219, add_key=217, request_key=218,
                        userfaultfd=282, clone=220, getpid=172, chroot=51),
    }[platform.machine()]
    numbers.update(
        io_uring_setup=425, io_uring_enter=426, io_uring_register=427, open_tree=428,
        move_mount=429, fsopen=430, fsconfig=431, fsmount=432, fspick=433, clone3=435,
        mount_setattr=442)
    for name, number in sorted(numbers.items()):
        # with arguments that no call accepts, but for the flags that the filter looks at
        ctypes.set_errno(0)
        bad = 0x2000000 | 0x10000000 if name == 'clone' else -1
        libc.syscall(number, ctypes.c_long(bad), *[ctypes.c_long(-1)] * 4)
        print(name, errno.errorcode.get(ctypes.get_errno(), 'none'))
""")
ALLOWED = {"getpid", "chroot"}


def under(*options):
    """The words in front of a command for a container with these options."""
    only_root_can("give up what a container does not have")
    return [build_file(PROFILE), *options]


def status(*options):
    """What /proc says of a program in a container."""
    done = subprocess.run([*under(*options), "cat", "/proc/self/status"],
                          capture_output=True, text=True, check=True)
    return dict(line.split(":\t", 1) for line in done.stdout.splitlines())


def errors(*options):
    """The errors of system calls by name."""
    done = subprocess.run([*under(*options), "/usr/bin/python3", "-I", "-c", CALLS],
                          capture_output=True, text=True, check=True)
    return dict(line.split() for line in done.stdout.splitlines())


def test_capabilities_of_root():
    found = status()
    for kind in ("CapPrm", "CapEff", "CapBnd"):
        assert int(found[kind], 16) == STANDARD
    assert int(found["CapInh"], 16) == int(found["CapAmb"], 16) == 0
    assert found["Seccomp"] == "2" and found["NoNewPrivs"] == "0"
    changed = status("--keep=CAP_SYS_ADMIN", "--drop=cap_chown", "--no-seccomp")
    assert int(changed["CapEff"], 16) == (STANDARD | SYS_ADMIN) & ~1
    assert changed["Seccomp"] == "0"


def test_another_user():
    found = status(f"--user={NOBODY}")
    assert set(found["Uid"].split()) == set(found["Gid"].split()) == {str(NOBODY)}
    assert found["Groups"].strip() == ""
    assert int(found["CapPrm"], 16) == int(found["CapEff"], 16) == 0
    assert int(found["CapBnd"], 16) == STANDARD


def test_calls_that_are_refused():
    found = errors()
    assert found.pop("clone3") == "ENOSYS"
    assert {name for name, error in found.items() if error != "EPERM"} == ALLOWED


def test_calls_of_an_administrator():
    found = errors("--keep=CAP_SYS_ADMIN")
    refused = {name for name, error in found.items() if error == "EPERM"}
    assert {"pivot_root", "keyctl", "userfaultfd", "io_uring_setup"} <= refused
    assert not refused & {"mount", "unshare", "clone", "clone3", "open_tree", "setns"}


def test_an_option_that_is_none():
    for wrong in ("--keep=CAP_OF_NOBODY", "--off", "no-such-program"):
        done = subprocess.run([*under(), wrong], capture_output=True, text=True, check=False)
        assert done.returncode == 125 and done.stderr


@pytest.mark.parametrize("options", [
    ["--keep=CAP_SYS_ADMIN"],  # which has no pivot_root(2)
    ["--no-seccomp"],
], ids=" ".join)
def test_a_container_that_allows_more_is_isolated(options):
    with running(under=under(*options), rate_limit=0, pool_size=0) as instance:
        assert instance.client.health().json["isolation"]["tier"] == "isolated"
        session = instance.client.session(fresh_id())
        assert session.value("import os; [os.getcwd(), os.listdir('/home')]") \
            == ["/home/earth", ["earth"]]
        assert session.exec("open('/etc/shadow')").error_type == "FileNotFoundError"
