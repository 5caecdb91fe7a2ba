# SPDX-License-Identifier: MIT
"""Attempts that need nothing from the test, as one table.

The paths in them are found by the interpreter that runs them. Each ends with printing "reached"
when it had its way.
"""

from .attempt import Attempt, Dies, Harmless, Prints, refused

# a function for attempts by way of C: raises what errno says when the call returns -1
C = """\
import ctypes, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result == -1: raise OSError(ctypes.get_errno(), 'refused')
    return result
"""
# an executable file that is there inside and outside
LOADER = "import glob\nloader = (glob.glob('/lib64/ld-*') + glob.glob('/lib/ld-*'))[0]\n"
# numbers of system calls by machine; those from 424 on are the same everywhere
NUMBERS = """\
NUMBERS = {
    'x86_64': {'clone': 56, 'vfork': 58, 'perf_event_open': 298, 'bpf': 321, 'userfaultfd': 323,
               'keyctl': 250, 'add_key': 248, 'request_key': 249, 'kexec_load': 246,
               'init_module': 175, 'kcmp': 312, 'seccomp': 317, 'execveat': 322,
               'open_by_handle_at': 304, 'modify_ldt': 154},
    'aarch64': {'clone': 220, 'perf_event_open': 241, 'bpf': 280, 'userfaultfd': 282,
                'keyctl': 219, 'add_key': 217, 'request_key': 218, 'kexec_load': 104,
                'init_module': 105, 'kcmp': 272, 'seccomp': 277, 'execveat': 281,
                'open_by_handle_at': 265},
}[platform.machine()]
NUMBERS.update(io_uring_setup=425, open_tree=428, move_mount=429, fsopen=430, pidfd_open=434,
               clone3=435, pidfd_getfd=438, process_madvise=440, mount_setattr=442,
               landlock_create_ruleset=444, memfd_secret=447)
def syscall(name, *arguments):
    return check(libc.syscall(NUMBERS[name], *arguments))
"""
REACHED = "print('reached')\n"
OS_ERRORS = ("PermissionError", "OSError", "FileNotFoundError", "BlockingIOError")


def by_c(name, code, outcome=None, control=False):
    """An attempt that calls C."""
    return Attempt(name, C + NUMBERS + code + "\n" + REACHED, outcome or refused(), control)


PROCESSES = [
    Attempt("fork", "import os\nif os.fork() == 0: os._exit(0)\nos.wait()\n" + REACHED, refused()),
    Attempt("forkpty", "import os\npid, fd = os.forkpty()\nif pid == 0: os._exit(0)\n" + REACHED,
            refused(*OS_ERRORS)),
    Attempt("fork without end", "import os\nwhile True: os.fork()", refused(), control=False),
    Attempt("subprocess.run", "import subprocess\nsubprocess.run(['true'], check=True)\n" + REACHED,
            refused(*OS_ERRORS)),
    Attempt("subprocess with a shell", "import subprocess\n"
            "subprocess.check_output('id', shell=True)\n" + REACHED, refused(*OS_ERRORS)),
    Attempt("subprocess of what is there", "import subprocess\n" + LOADER
            + "subprocess.run([loader, '--help'], stdout=subprocess.DEVNULL)\n" + REACHED,
            refused()),
    Attempt("fork_exec itself", "import _posixsubprocess, os\nr, w = os.pipe()\n"
            "_posixsubprocess.fork_exec([b'x'], [b'/bin/true'], True, (w,), None, None, -1, -1, -1,"
            " -1, -1, -1, r, w, False, False, 0, None, None, None, -1, None, True)\n" + REACHED,
            refused("PermissionError", "OSError", "TypeError"), control=False),
    Attempt("os.system", "import os\nstatus = os.system('true')\nif status == 0: print('reached')",
            refused(*OS_ERRORS)),
    Attempt("os.popen", "import os\nos.popen('echo x').read()\n" + REACHED, refused(*OS_ERRORS)),
    Attempt("os.posix_spawn", "import os\n" + LOADER + "pid = os.posix_spawn(loader, ['l', '--help'], {})\n"
            "os.waitpid(pid, 0)\n" + REACHED, refused()),
    Attempt("os.spawnv", "import os\n" + LOADER + "os.spawnv(os.P_WAIT, loader, ['l', '--help'])\n"
            + REACHED, refused()),
    Attempt("os.execv", "import os\n" + LOADER
            + "os.execv(loader, [loader, '/usr/bin/python3', '-c', 'print(\"reached\")'])", refused()),
    Attempt("os.execv of the interpreter", "import os, sys\nname = sys.executable or '/usr/bin/python3'\n"
            "os.execv(name, [name, '-c', 'print(\"reached\")'])", refused(*OS_ERRORS)),
    Attempt("os.execve of a descriptor", "import os\n" + LOADER
            + "os.execve(os.open(loader, os.O_RDONLY), [loader, '/usr/bin/python3', '-c',"
            " 'print(\"reached\")'], {})", refused()),
    Attempt("a file of its own to run", "import os\nopen('run', 'w').write('#!/bin/sh\\necho reached\\n')\n"
            "os.chmod('run', 0o755)\nos.execv('./run', ['run'])", refused(*OS_ERRORS)),
    Attempt("multiprocessing.Process", "import multiprocessing as mp\nmp.set_start_method('fork')\n"
            "p = mp.Process(target=int)\np.start(); p.join()\n" + REACHED, refused()),
    Attempt("multiprocessing by spawn", "import multiprocessing as mp\n"
            "p = mp.get_context('spawn').Process(target=int)\np.start(); p.join()\n" + REACHED,
            refused(*OS_ERRORS)),
    Attempt("multiprocessing.Pool", "import multiprocessing\nmultiprocessing.Pool(64).map(abs, range(9))\n"
            + REACHED, refused()),
    Attempt("ProcessPoolExecutor", "from concurrent.futures import ProcessPoolExecutor as P\n"
            "list(P(2).map(abs, [-1]))\n" + REACHED, refused()),
    Attempt("an asyncio subprocess", "import asyncio\nasync def main():\n"
            "    await (await asyncio.create_subprocess_exec('true')).wait()\nasyncio.run(main())\n"
            + REACHED, refused(*OS_ERRORS)),
    Attempt("a program in memory", "import os\nos.memfd_create('x')\n" + REACHED, refused()),
    by_c("execve of C", LOADER + "argv = (ctypes.c_char_p * 5)(loader.encode(), b'/usr/bin/python3', b'-c',"
         " b'print(\"reached\")', None)\n"
         "check(libc.execve(loader.encode(), argv, (ctypes.c_char_p * 1)(None)))", control=True),
    by_c("fork of C", "if check(libc.fork()) == 0: os._exit(0)", control=True),
    by_c("system of C", "if libc.system(b'true') != 0: raise PermissionError", control=True),
    by_c("clone as a system call", "if syscall('clone', 17, 0, 0, 0, 0) == 0: os._exit(0)", control=True),
    by_c("clone into new namespaces", "if syscall('clone', 0x10000000 | 17, 0, 0, 0, 0) == 0: os._exit(0)",
         control=True),
    by_c("clone3", "syscall('clone3', ctypes.create_string_buffer(88), 88)", refused("OSError")),
    by_c("execveat", LOADER + "syscall('execveat', os.open(loader, os.O_RDONLY), b'', None, None, 0x1000)"),
]

NETWORK = [
    *(Attempt(f"a socket of {name}", f"import socket\nsocket.socket({arguments})\n" + REACHED,
              refused(), control)
      for name, arguments, control in (
          ("TCP", "socket.AF_INET, socket.SOCK_STREAM", True),
          ("UDP", "socket.AF_INET, socket.SOCK_DGRAM", True),
          ("TCP over IPv6", "socket.AF_INET6, socket.SOCK_STREAM", False),
          ("ICMP", "socket.AF_INET, socket.SOCK_RAW, 1", False),
          ("unix streams", "socket.AF_UNIX, socket.SOCK_STREAM", True),
          ("unix datagrams", "socket.AF_UNIX, socket.SOCK_DGRAM", True),
          ("netlink", "socket.AF_NETLINK, socket.SOCK_RAW, 0", True),
          ("packets", "socket.AF_PACKET, socket.SOCK_RAW", False),
          ("the kernel's ciphers", "socket.AF_ALG, socket.SOCK_SEQPACKET, 0", False),
          ("the hypervisor", "40, socket.SOCK_STREAM", False),
      )),
    Attempt("a server", "import socket\nsocket.create_server(('127.0.0.1', 0))\n" + REACHED, refused()),
    Attempt("a server of HTTP", "import http.server\nhttp.server.HTTPServer(('127.0.0.1', 0), None)\n"
            + REACHED, refused()),
    Attempt("a pair of datagram sockets", "import socket\n"
            "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n" + REACHED, refused()),
    Attempt("a name", "import socket\nsocket.getaddrinfo('name.invalid', 443)", refused("gaierror"),
            control=False),
    Attempt("a name by way of a URL", "import urllib.request\n"
            "urllib.request.urlopen('http://name.invalid/')", refused("URLError"), control=False),
    by_c("a socket of C", "check(libc.socket(2, 1, 0))", control=True),
    by_c("a descriptor sent over a socket", "import socket, array\na, b = socket.socketpair()\n"
         "a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0]))])",
         control=True),
]

FILES = [
    Attempt("the passwords", "open('/etc/shadow').read()", refused("FileNotFoundError", "PermissionError"),
            control=False),
    Attempt("a new file in /etc", "open('/etc/planted', 'w')", refused("PermissionError", "OSError"),
            control=False),
    Attempt("a new file in the root", "open('/planted', 'w')", refused("PermissionError", "OSError"),
            control=False),
    Attempt("a new folder in the root", "import os\nos.mkdir('/planted')",
            refused("PermissionError", "OSError"), control=False),
    *(Attempt(f"the library: {name}", f"import os\n{code}", refused("PermissionError", "OSError"),
              control=False)
      for name, code in (
          ("appended to", "open(os.__file__, 'a').write('import evil')"),
          ("opened for writing", "os.open(os.__file__, os.O_RDWR)"),
          ("truncated", "os.truncate(os.__file__, 0)"),
          ("removed", "os.remove(os.__file__)"),
          ("renamed", "os.rename(os.__file__, os.__file__ + 'x')"),
          ("replaced", "open('os.py', 'w').close(); os.replace('os.py', os.__file__)"),
          ("made executable", "os.chmod(os.__file__, 0o777)"),
          ("given a time", "os.utime(os.__file__, (0, 0))"),
          ("linked", "os.link(os.__file__, '/home/earth/linked.py')"),
          ("given a neighbour", "open(os.path.dirname(os.__file__) + '/planted.py', 'w')"),
          ("numpy", "open(np.__file__, 'a')"),
      )),
    Attempt("a device", "import os\nos.mknod('/home/earth/sda', 0o60666, os.makedev(8, 0))", refused(),
            control=False),
    Attempt("a character device", "import os\nos.mknod('/home/earth/null', 0o20666, os.makedev(1, 3))",
            refused(), control=False),
    Attempt("devices that are there", "import os\n"
            "for p in ('/dev/mem', '/dev/kmsg', '/dev/sda', '/dev/vda', '/dev/fuse', '/dev/tty',"
            " '/dev/ptmx', '/dev/kvm', '/dev/net/tun', '/sys/kernel', '/proc/kcore', '/proc/sysrq-trigger'):\n"
            "    try: os.open(p, os.O_RDONLY); print('reached', p)\n"
            "    except OSError as e: print(e.errno)", Prints(r"((2|13|1|6)\n)+"), control=False),
    Attempt("setuid", "import os\nopen('s', 'w').close()\nos.chmod('s', 0o6755)", Harmless(), control=False),
    by_c("mount", "check(libc.mount(b't', b'/tmp', b'tmpfs', 0, None))"),
    by_c("umount", "check(libc.umount2(b'/home/earth', 2))"),
    by_c("chroot", "check(libc.chroot(b'/home/earth'))"),
    by_c("pivot_root", "check(libc.syscall({'x86_64': 155, 'aarch64': 41}[platform.machine()], b'.', b'.'))"),
    by_c("a page of a file in a pipe", "r, w = os.pipe()\n"
         "os.splice(os.open(os.__file__, os.O_RDONLY), w, 1)", refused("OSError", "PermissionError"),
         control=True),
    by_c("extended attributes", "os.setxattr('/home/earth', 'user.x', b'x')", refused("OSError",
                                                                                  "PermissionError")),
]

KERNEL = [
    by_c("a user namespace", "check(libc.unshare(0x10000000))", control=True),
    *(by_c(f"a {name} namespace", f"check(libc.unshare({flag}))") for name, flag in (
        ("mount", 0x20000), ("PID", 0x20000000), ("network", 0x40000000), ("IPC", 0x8000000),
        ("UTS", 0x4000000), ("cgroup", 0x2000000), ("time", 0x80))),
    by_c("another namespace", "check(libc.setns(0, 0))"),
    by_c("io_uring", "syscall('io_uring_setup', 8, ctypes.create_string_buffer(120))", control=True),
    by_c("bpf", "syscall('bpf', 0, ctypes.create_string_buffer(64), 64)"),
    by_c("userfaultfd", "syscall('userfaultfd', 1)", control=True),
    by_c("performance counters", "syscall('perf_event_open', ctypes.create_string_buffer(112), 0, -1, -1, 0)"),
    by_c("a keyring", "syscall('keyctl', 1, 0)", control=True),
    by_c("a key", "syscall('add_key', b'user', b'k', b'v', 1, -3)", control=True),
    by_c("a wanted key", "syscall('request_key', b'user', b'k', None, 0)"),
    by_c("another kernel", "syscall('kexec_load', 0, 0, 0, 0)"),
    by_c("a module", "syscall('init_module', b'', 0, b'')"),
    by_c("a mount by descriptors", "syscall('fsopen', b'tmpfs', 0)"),
    by_c("a tree of mounts", "syscall('open_tree', -100, b'/', 1)"),
    by_c("a descriptor of a process", "syscall('pidfd_open', os.getpid(), 0)", control=True),
    by_c("a stolen descriptor", "syscall('pidfd_getfd', 0, 0, 0)"),
    by_c("a comparison of processes", "syscall('kcmp', 1, os.getpid(), 0, 0, 0)"),
    by_c("a filter of its own", "syscall('seccomp', 2, 0, None)"),
    by_c("tracing another", "check(libc.ptrace(16, 1, 0, 0))"),
    by_c("being traced", "check(libc.ptrace(0, 0, 0, 0))", control=True),
    by_c("another's memory", "check(libc.process_vm_readv(1, None, 0, None, 0, 0))"),
    by_c("another personality", "check(libc.personality(0x0040000))", control=True),
    by_c("hidden memory", "syscall('memfd_secret', 0)"),
    by_c("a file by its handle", "syscall('open_by_handle_at', -100, b'x' * 128, 0)"),
    by_c("another name of the host", "check(libc.sethostname(b'evil', 4))"),
    by_c("the clock", "check(libc.settimeofday(b'\\0' * 16, None))"),
    by_c("a restart", "check(libc.reboot(0))"),
    by_c("shared memory of System V", "check(libc.shmget(0x1234, 4096, 0o1600))"),
    by_c("a queue of System V", "check(libc.msgget(0x1234, 0o1600))"),
    by_c("another user", "check(libc.setuid(0))"),
    by_c("other groups", "check(libc.setgroups(1, (ctypes.c_int * 1)(0)))"),
    by_c("a higher priority", "check(libc.nice(-5))"),
    by_c("locked memory", "check(libc.mlockall(3))"),
    by_c("a number above 32 bits", "import fcntl\ncheck(libc.ioctl(0, ctypes.c_ulong(0x5412 | 1 << 32), b'x'))",
         refused("PermissionError", "OSError")),
    Attempt("the calls of 32 bits", "import mmap, ctypes\nm = mmap.mmap(-1, 4096, prot=7)\n"
            "m.write(bytes.fromhex('b814000000cd80c3'))\n"
            "p = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
            "print('reached', ctypes.CFUNCTYPE(ctypes.c_int)(p)())", Dies(), control=False),
    Attempt("higher limits", "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))\n" + REACHED,
            refused("ValueError", "PermissionError"), control=False),
    Attempt("another's limits", "import resource\nresource.prlimit(1, resource.RLIMIT_NOFILE, (1, 1))\n"
            + REACHED, refused("ValueError", "PermissionError", "ProcessLookupError"), control=False),
]

SUPERVISOR = [
    Attempt("killing process 1", "import os, signal\ntry: os.kill(1, signal.SIGKILL)\n"
            "except OSError as e: print(type(e).__name__)\nprint('alive')",
            Prints(r"(PermissionError\n)?alive\n"), control=False),
    Attempt("killing all", "import os, signal\ntry: os.kill(-1, signal.SIGKILL)\n"
            "except OSError as e: print(type(e).__name__)\nprint('alive')",
            Prints(r"(\w+Error\n)?alive\n"), control=False),
    Attempt("killing the group", "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "try: os.killpg(0, signal.SIGTERM)\n"
            "except OSError as e: print(type(e).__name__)\nprint('alive')",
            Prints(r"(\w+Error\n)?alive\n"), control=False),
    Attempt("looking for others", "import os\nfound = []\nfor p in range(2, 5000):\n"
            "    try: os.kill(p, 0); found.append(p)\n    except OSError: pass\n"
            "others = [p for p in found if p != os.getpid()]\nprint('others', len(others))",
            Prints(r"others [01]\n"), control=False),
    Attempt("writing to all descriptors", "import os\nfor fd in range(3, 256):\n"
            "    try: os.write(fd, b'\\xff' * 4096)\n    except OSError: pass", Harmless(), control=False),
    Attempt("writing what looks like a result", "import os, json\nfor fd in range(3, 256):\n"
            "    try: os.write(fd, json.dumps({'success': True}).encode() * 100)\n"
            "    except OSError: pass", Harmless(), control=False),
    Attempt("reading from all descriptors", "import os\nfor fd in range(3, 256):\n"
            "    try: os.set_blocking(fd, False); os.read(fd, 4096)\n    except OSError: pass",
            Harmless(), control=False),
    Attempt("closing all descriptors", "import os\nos.closerange(0, 256)", Harmless(), control=False),
    Attempt("exchanging descriptors", "import os\nr, w = os.pipe()\nfor fd in range(3, 40):\n"
            "    if fd not in (r, w):\n        try: os.fstat(fd); os.dup2(w, fd)\n"
            "        except OSError: pass", Harmless(), control=False),
    Attempt("looking at the machinery's frames", "import sys\nf = sys._getframe()\nnames = set()\n"
            "while f:\n    names.update(f.f_globals); f = f.f_back\n"
            "print('reached' if names & {'secret', 'token', 'password'} else 'nothing')",
            Prints("nothing\n"), control=False),
    Attempt("a hook of one's own", "import sys, os\nsys.addaudithook(lambda *a: None)\nos.system('id')",
            refused(*OS_ERRORS), control=False),
    Attempt("an installer", "import pip._internal.cli.main as m\nm.main(['download', 'six'])",
            refused("ModuleNotFoundError"), control=False),
    Attempt("another installer", "import ensurepip\nensurepip.bootstrap()",
            refused("ModuleNotFoundError", "PermissionError", "OSError"), control=False),
    Attempt("reading at address 1", "import ctypes\nctypes.string_at(1)", Dies(), control=False),
    Attempt("ending at once", "import os\nos._exit(0)", Dies(), control=False),
    Attempt("ignoring every signal", "import signal, time\nfor s in (2, 15, 10, 12):\n"
            "    signal.signal(s, signal.SIG_IGN)\nwhile True:\n    try: time.sleep(60)\n"
            "    except BaseException: pass", Dies(("timeout",)), control=False),
]

ATTEMPTS = {"processes": PROCESSES, "network": NETWORK, "files": FILES, "kernel": KERNEL,
            "supervisor": SUPERVISOR}
