# SPDX-License-Identifier: MIT
"""Attempts whose answer, or whose next session, must be looked at more closely."""

import json
import os

import pytest

from support import outside
from support.program import program
from support.server import SECRET, SECRET_NAME

HOLD = 4000  # bytes beyond the limit that a cut text may have


@pytest.fixture
def attack(session, surroundings):
    """A function that runs code in a session that has begun; afterwards all is as it was."""
    session.exec("None")
    surroundings.watch()
    codes = []

    def run(code, **members):
        codes.append(program(code))
        return session.exec(codes[-1], **members)

    yield run
    surroundings.judge("\n".join(codes))


def test_c07_a_planted_link_is_not_collected(attack, tmp_path):
    code = """
        import os
        os.symlink('/etc/passwd', 'report.csv')
        os.symlink('/', 'folder')
        try: print(open('report.csv').read())
        except OSError: print('planted')
    """
    answer = attack(code)
    assert answer.success and answer.files == {}
    control = outside.run(program(code), tmp_path)
    for line in control.stdout.splitlines():
        assert ":/home/" not in line or line.encode() not in answer.body
    assert "root:" in control.stdout


def test_f11_a_flood_of_output(server, attack):
    services = [server.part("vivarium-fcgi"), server.part("vivarium-executor")]
    before = [each.memory() for each in services]
    answer = attack("while True: print('A' * 100000)", timeout_ms=1000)
    assert answer.error_type == "timeout"
    assert len(answer.std_out) == 1 << 20 and answer.truncated == {"std_out"}
    for each, memory in zip(services, before):
        assert each.memory() < memory + (64 << 20)


def test_f13_a_file_without_content(server, attack):
    """Larger than files of an answer may be, though it takes no room."""
    answer = attack("open('a.bin', 'wb').truncate(15 << 20)\nprint('sparse')")
    assert answer.std_out == "sparse\n"
    assert answer.files == {}
    assert answer.left_out["a.bin"]["size"] == 15 << 20


def test_g01_names_that_are_none(attack):
    answer = attack("""
        import os
        for n in (b'a\\nHTTP/1.1 200 OK', b'\\xff\\xfe.png', b'..%2f..%2fx', b'x\\x1b[2J', b'-rf'):
            open(n.replace(b'/', b'_'), 'wb').write(b'1')
        print('named')
    """)
    assert answer.std_out == "named\n"
    assert answer.files["-rf"] == b"1"
    assert len(answer.files) + len(answer.left_out) + answer.left_out_unnamed == 4  # one is hidden
    assert b"\n" not in answer.body and b"\x1b" not in answer.body


def test_g02_a_line_for_the_log(server, attack):
    answer = attack(r"""
        import sys
        sys.stderr.write('\r\n2026-01-01 INFO admin login ok\r\n\x1b]0;t\x07')
        sys.stdout.flush()
    """)
    assert answer.std_err == "\r\n2026-01-01 INFO admin login ok\r\n\x1b]0;t\x07"
    assert "admin login" not in server.messages()


def test_g03_an_endless_message(server, attack):
    service = server.part("vivarium-fcgi")
    before = service.memory()
    answer = attack("""
        class E(Exception):
            def __str__(self): return 'Z' * (1 << 27)
        raise E()
    """)
    assert answer.error_type == "E" and "Z" * 100 in answer.error["message"]
    assert len(answer.body) < (64 << 10) + HOLD
    assert service.memory() < before + (64 << 20)


def test_g05_characters_that_are_none(attack):
    answer = attack(r"print('\ud800 lone surrogate', chr(0), '\x7f')")
    assert answer.std_out == "\\ud800 lone surrogate \0 \x7f\n"
    assert b"\0" not in answer.body


def test_h01_spoilt_modules(session, new_session):
    session.exec(program("""
        import builtins, json
        json.dumps = lambda *a, **k: 'owned'
        builtins.print = None
    """))
    assert new_session().output("import json\nprint(json.dumps([1]))") == "[1]\n"


def test_h02_chance_is_each_sessions_own(new_session):
    code = "import numpy as np; np.random.rand()"
    first, second = (new_session().value(code) for _ in range(2))
    assert first != second


SEARCH = """
    import gc, os
    names = [type(o).__name__ for o in gc.get_objects() if 'token' in repr(type(o)).lower()]
    print(sorted(os.environ), sorted(os.environ.values()), names)
"""


def first_list(text):
    """The first list of texts that was printed."""
    return json.loads(text[:text.index("]") + 1].replace("'", '"'))


def test_h04_secrets_of_the_host(attack, tmp_path, monkeypatch):
    answer = attack(SEARCH)
    assert answer.success
    assert SECRET_NAME not in answer.std_out and SECRET not in answer.std_out
    assert set(first_list(answer.std_out)) <= {
        "HOME", "LANG", "LC_CTYPE", "MALLOC_ARENA_MAX", "MKL_NUM_THREADS", "MPLBACKEND",
        "MPLCONFIGDIR", "NUMEXPR_MAX_THREADS", "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS", "PATH", "PYTHONDONTWRITEBYTECODE", "TMPDIR", "TZ"}
    monkeypatch.setenv(SECRET_NAME, SECRET)
    assert SECRET in outside.run(program(SEARCH), tmp_path).stdout


def test_h05_the_layout_of_memory(attack, tmp_path):
    code = """
        import os
        shown = [name for name in ('maps', 'smaps', 'stat', 'auxv', 'syscall')
                 if os.path.exists('/proc/self/' + name)]
        for name in shown: open('/proc/self/' + name).read()
        print('reached' if shown else 'nothing', hex(id(object)))
    """
    answer = attack(code)
    if answer.success:  # where /proc is not empty it is not to be read
        assert answer.std_out.startswith("nothing 0x")
    else:
        assert answer.error_type == "PermissionError"
    control = outside.run(program(code).replace(", 'auxv'", ""), tmp_path)
    assert control.stdout.startswith("reached")


def test_the_tier_is_the_one_that_was_meant(server):
    """Or all that is shown here were shown of another one."""
    isolation = server.client.health().json["isolation"]
    better = ["full"] if server.tier.isolation == "isolated" else []  # than was asked for
    assert isolation["tier"] in [server.tier.isolation, *better]
    owner = os.stat(server.part("lighttpd").path).st_uid
    assert (owner == server.tier.user) == bool(server.tier.user)
