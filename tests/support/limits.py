# SPDX-License-Identifier: MIT
"""Limits of the kernel that are lowered under a process that runs."""

import contextlib
import os
import resource

from .together import eventually

# in /proc/PID/limits
NAMES = {resource.RLIMIT_NOFILE: "Max open files", resource.RLIMIT_NPROC: "Max processes",
         resource.RLIMIT_DATA: "Max data size"}


def _as_its_user(process, action):
    """Do something as the user that the process is, in a child: prlimit(2) asks for no less."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            group = [int(number) for number in process.status("Gid").split()[:3]]
            user = [int(number) for number in process.status("Uid").split()[:3]]
            if os.geteuid() == 0:
                os.setresgid(*group)
                os.setresuid(*user)
            action()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, process


@contextlib.contextmanager
def lowered(process, which, value):
    """Give the process this soft limit for as long as the context lasts, or the process."""
    name = NAMES[which]
    lines = (process.path / "limits").read_text().splitlines()
    fields = next(line.removeprefix(name) for line in lines if line.startswith(name)).split()
    soft, hard = (resource.RLIM_INFINITY if field == "unlimited" else int(field)
                  for field in fields[:2])
    _as_its_user(process, lambda: resource.prlimit(process.pid, which, (value, hard)))
    try:
        yield
    finally:
        try:
            _as_its_user(process, lambda: resource.prlimit(process.pid, which, (soft, hard)))
        except AssertionError:
            eventually(lambda: not process.alive(), within=10)


def without_descriptors(process):
    """Let the process open nothing: its limit is the first number that is not in use."""
    used = process.descriptors()
    free = next(number for number in range(len(used) + 1) if number not in used)
    return lowered(process, resource.RLIMIT_NOFILE, free)


def without_processes(process):
    """Let the process make no other one."""
    return lowered(process, resource.RLIMIT_NPROC, 0)


def without_memory(process, left=0):
    """Let the process have no more memory than it has, and so many bytes."""
    return lowered(process, resource.RLIMIT_DATA, process.memory("VmData") + left)
