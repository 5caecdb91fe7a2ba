# SPDX-License-Identifier: MIT
"""The child interpreter of the runner tests: stands in for the C side of zygote and worker.

Run in a namespace of its own, so that __main__ is as empty as in the zygote. main() takes orders
on a socket, each with four descriptors (0, 1, 2, channel), forks a worker for them and answers
with its pid.
"""

import builtins
import json
import os
import random
import resource
import signal
import socket
import struct
import sys
import tempfile
import types

__builtins__ = dict(vars(builtins))  # the code in the worker may spoil its own

STEMS = ("value", "source", "error", "code", "figures", "random", "")


def load(folder):
    """Make the runner's modules as the zygote makes them; return the last, the runner."""
    module = None
    for stem in STEMS:
        path = os.path.join(folder, f"runner_{stem}.py" if stem else "runner.py")
        with open(path, "rb") as file:
            code = compile(file.read(), "<vivarium>", "exec", dont_inherit=True)
        module = types.ModuleType(f"_vivarium_{stem or 'runner'}")
        sys.modules[module.__name__] = module
        exec(code, vars(module))
    return module


def read_all(fd, size):
    data = b""
    while len(data) < size:
        more = os.read(fd, size - len(data))
        if not more:
            os._exit(0)
        data += more
    return data


def serve(channel, run):
    """Answer calls: u32 code size, i32 stdin size (-1: none), u32 number, u32 max_result."""
    read, write, unpack, pack = read_all, os.write, struct.unpack, struct.pack
    while True:
        code_size, stdin_size, number, max_result = unpack("<IiII", read(channel, 16))
        code = read(channel, code_size)
        stdin = read(channel, stdin_size) if stdin_size >= 0 else None
        answer = run(code, stdin, number, max_result)
        answer = pack("<I", len(answer)) + answer
        while answer:
            answer = answer[write(channel, answer):]


def become_worker(runner, fds, order):
    channel = 90
    for fd, target in zip(fds, (0, 1, 2, channel)):
        os.dup2(fd, target)
    os.closerange(3, channel)
    os.closerange(channel + 1, 1024)
    os.chdir(order["home"])
    runner._home = order["home"]
    if "memory" in order:
        resource.setrlimit(resource.RLIMIT_AS, (order["memory"], order["memory"]))
    run = runner.run
    random.seed(0)  # as after a fork that Python does not know of
    os.environ["TMPDIR"] = order["home"]
    runner.begin()
    serve(channel, run)


def main(folder, modules, control):
    control = socket.socket(fileno=control)
    runner = load(folder)
    runner.prepare(modules)
    tempfile.gettempdir()  # as a library may while it is imported
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    control.send(b"ready")
    while True:
        order, fds, _, _ = socket.recv_fds(control, 65536, 4)
        if not order:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                become_worker(runner, fds, json.loads(order))
            finally:
                os._exit(99)
        for fd in fds:
            os.close(fd)
        control.send(str(pid).encode())
