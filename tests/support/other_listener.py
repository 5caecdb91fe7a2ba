# SPDX-License-Identifier: MIT
"""Runs a command below a seccomp filter that has a listener already: seccomp(2) allows one.

Usage: other_listener.py COMMAND [ARGUMENT...]
"""

import ctypes
import platform
import signal
import struct
import subprocess
import sys

SECCOMP = {"x86_64": 317, "aarch64": 277}[platform.machine()]
SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER = 1, 1 << 3
PR_SET_NO_NEW_PRIVS = 38
UNDER_IT = ("/usr/bin/python3", __file__)  # comes before a command
ALLOW_ALL = struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000)  # BPF_RET, SECCOMP_RET_ALLOW


def load():
    """Load the filter; the listener, which the filter has as long as it is open."""
    libc = ctypes.CDLL(None, use_errno=True)
    instructions = ctypes.create_string_buffer(ALLOW_ALL)
    program = struct.pack("HxxxxxxP", 1, ctypes.addressof(instructions))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    listener = libc.syscall(SECCOMP, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                            program)
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return listener


if __name__ == "__main__":
    load()
    command = subprocess.Popen(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: command.terminate())
    sys.exit(command.wait())
