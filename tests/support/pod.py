# SPDX-License-Identifier: MIT
"""Runs a program in a user namespace as a pod of Kubernetes with `hostUsers: false` has one, of
65,536 ids. To be started as root.

    pod.py UID PROGRAM [ARGUMENT...]
"""

import ctypes
import os
import pathlib
import sys

FIRST, COUNT = 1_000_000, 65536  # of the host's ids
CLONE_NEWUSER = 0x10000000


def write_maps(process):
    """Let the ids of a process's namespace be those of the host."""
    for name in ("uid_map", "gid_map"):
        pathlib.Path(f"/proc/{process}/{name}").write_text(f"0 {FIRST} {COUNT}\n")


def enter():
    """Go into a namespace whose map a child that stays outside writes."""
    process, (reading, writing) = os.getpid(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        write_maps(process)
        os._exit(0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "unshare")
    os.close(reading)
    os.close(writing)
    if os.waitpid(child, 0)[1]:
        raise OSError("the maps could not be written")


def main(user, *command):
    """Become a user of the pod and run the program."""
    enter()
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
