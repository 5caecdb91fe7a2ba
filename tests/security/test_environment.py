# SPDX-License-Identifier: MIT
"""What a session finds around it: no secret of the host, not in its environment nor in memory."""

import os

from support import outside
from support.program import program
from support.server import SECRET, SECRET_NAME

# the code spells the secret in two halves, so that it does not find itself
HALVES = (SECRET[:16], SECRET[16:])
STACK = program(f"""
    import ctypes, os
    libc = ctypes.CDLL(None, use_errno=True)
    at = ctypes.c_void_p.in_dll(libc, '__libc_stack_end').value & ~4095
    r, w = os.pipe()
    seen = b''
    while (n := libc.write(w, ctypes.c_void_p(at), 4096)) > 0:  # fails where nothing is mapped
        seen += os.read(r, n)
        at += n
    secret = {HALVES[0].encode()!r} + {HALVES[1].encode()!r}
    print('reached' if secret in seen else 'clean', len(seen))
""")


def test_the_environment_is_a_fixed_one(session):
    names = session.value("import os; dict(os.environ)")
    assert SECRET_NAME not in names and SECRET not in names.values()
    own = set(os.environ) - {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "PWD",
                             "SHLVL", "USER", "LOGNAME", "TERM"}
    assert not {name for name in own & set(names) if not name.startswith(("PYTHON", "OMP", "MPL"))}
    assert session.value("os.path.expanduser('~') == os.getcwd()") is True


def test_the_environment_as_c_sees_it(session):
    code = ("import ctypes\nlibc = ctypes.CDLL(None)\nlibc.getenv.restype = ctypes.c_char_p\n"
            f"v = libc.getenv({SECRET_NAME!r}.encode()); None if v is None else 'found'")
    assert session.value(code) is None


def test_the_memory_where_a_program_finds_its_environment(session, tmp_path, monkeypatch):
    answer = session.exec(STACK)
    assert answer.success, answer
    word, size = answer.std_out.split()
    assert word == "clean" and int(size) > 100
    monkeypatch.setenv(SECRET_NAME, SECRET)
    assert outside.run(STACK, tmp_path).stdout.startswith("reached")


def test_no_process_shows_its_environment(session):
    found = session.value(program("""
        import glob
        found = []
        for path in [*glob.glob('/proc/*/environ'), '/proc/self/environ']:
            try: found.append(open(path, 'rb').read().decode('latin-1'))
            except OSError: pass
        found
    """))
    assert not any(SECRET in text or SECRET_NAME in text for text in found)


def test_the_users_own_folder_and_name(server, session):
    home = session.value("import os; os.getcwd()")
    if server.tier.isolation == "minimal":  # a path of the host, as nothing else is to be had
        assert home.startswith(str(server.scratch)) and not home.startswith("/home")
    else:
        assert home == "/home/earth"
    assert session.value("os.getuid()") != 0 and session.value("os.geteuid()") != 0
    assert session.value(f"os.access({home!r}, os.W_OK)") is True
