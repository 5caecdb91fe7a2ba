# SPDX-License-Identifier: MIT
"""Nothing of one session is to be had in another: files, memory, names, chance."""

import os

import pytest

from support.client import fresh_id
from support.program import program
from support.together import eventually

PLACES = ("/home/earth", "/tmp", "/dev/shm", "/var/tmp", "/run", "/")


@pytest.fixture
def pair(new_session):
    """Two sessions that have both begun."""
    first, second = new_session(), new_session()
    first.exec("1")
    second.exec("1")
    return first, second


def test_files(pair):
    first, second = pair
    first.exec("import os\nos.mkdir('d'); open('d/secret', 'w').write('SECRET')")
    home = first.value("os.getcwd()")
    assert first.value("open(os.getcwd() + '/d/secret').read()") == "SECRET"
    for path in (f"{home}/d/secret", f"{home}/../{home.split('/')[-1]}/d/secret"):
        answer = second.exec(f"open({path!r}).read()")
        assert answer.error_type in ("FileNotFoundError", "PermissionError")
    found = second.value(program(f"""
        import os
        found = []
        for place in {(home, *PLACES)}:
            for folder, folders, files in os.walk(place):
                if folder.startswith(('/usr', '/lib')): folders.clear()
                else: found += [name for name in folders + files if 'secret' in name]
        found
    """), timeout_ms=60_000)
    assert found == []


CHANGES = {
    "reading": "open(FILE).read()",
    "writing": "open(FILE, 'r+')",
    "truncating": "os.truncate(FILE, 0)",
    "removing": "os.remove(FILE)",
    "renaming": "os.rename(FILE, FILE + 'x')",
    "replacing": "open('own', 'w').close(); os.replace('own', FILE)",
    "linking": "os.link(FILE, 'own')",
    "linking into it": "open('own', 'w').close(); os.link('own', FOLDER + '/planted')",
    "a symbolic link": "os.symlink('/', FOLDER + '/planted')",
    "a folder": "os.mkdir(FOLDER + '/planted')",
    "a mode": "os.chmod(FILE, 0)",
    "a mode of its folder": "os.chmod(FOLDER, 0o777)",
    "a mode by a descriptor": "os.chmod('.', 0o700, dir_fd=os.open(FOLDER, os.O_PATH))",
    "a time": "os.utime(FILE, (0, 0))",
    "an attribute": "os.setxattr(FILE, 'user.x', b'x')",
    "another folder for itself": "os.rename(os.getcwd(), FOLDER + 'x')",
    "listing": "os.listdir(FOLDER)",
    "listing all": "os.listdir(os.path.dirname(os.path.dirname(FOLDER)))",
    "C": "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
         "if libc.chmod(FILE.encode(), 0): raise OSError(ctypes.get_errno(), 'refused')",
}


@pytest.fixture
def neighbour(new_session):
    """A session with a file: it, its folder, and what the file system says of both."""
    session = new_session()
    folder = session.value("import os; open('kept', 'w').write('SECRET'); os.getcwd()")

    def state():
        return [folder, *(os.stat(path) for path in (folder, folder + "/kept")),
                os.listdir(folder)]

    return state


@pytest.mark.parametrize("server", ["minimal"], indirect=True)
@pytest.mark.parametrize("code", CHANGES.values(), ids=CHANGES)
def test_the_folder_of_another_of_the_same_user(session, neighbour, code):
    """Its path is known, and that the user owns it does not help."""
    folder, *before = neighbour()
    answer = session.exec(f"import os\nFOLDER = {folder!r}; FILE = FOLDER + '/kept'\n{code}")
    assert answer.error_type in ("PermissionError", "OSError"), answer
    assert "SECRET" not in answer.std_out
    assert neighbour()[1:] == before


def test_shared_memory_by_name(pair):
    first, second = pair
    made = first.exec(program("""
        from multiprocessing.shared_memory import SharedMemory
        m = SharedMemory('of-the-first', create=True, size=100); m.buf[:6] = b'SECRET'
    """))
    opening = program("""
        from multiprocessing.shared_memory import SharedMemory
        bytes(SharedMemory('of-the-first').buf[:6]).decode()
    """)
    if made.success:
        assert first.value(opening) == "SECRET"
    assert second.exec(opening).error_type in ("FileNotFoundError", "PermissionError", "OSError")


def test_memory_of_system_v(pair):
    first, second = pair
    code = program("""
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        number = libc.shmget(0x76697620, 4096, FLAGS)
        if number < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    """)
    first.exec(code.replace("FLAGS", "0o1666"))
    assert not second.exec(code.replace("FLAGS", "0o666")).success


def test_a_spoilt_interpreter_is_the_sessions_own(pair, new_session):
    first, second = pair
    first.exec(program("""
        import builtins, json, os
        json.dumps = lambda *a, **k: 'owned'
        os.getcwd = lambda: 'owned'
        np.sum = lambda *a: 'owned'
        builtins.print = None
    """))
    code = "import json, os\nprint('heard')\n[json.dumps(1), os.getcwd(), int(np.sum([1]))]"
    for session in (second, new_session()):
        home = session.value("import os; os.path.expanduser('~')")
        answer = session.exec(code)
        assert (answer.value, answer.std_out) == (["1", home, 1], "heard\n")


def test_no_data_of_another_in_memory(pair):
    first, second = pair
    first.exec("secret = 'T0KEN-' * 2 + 'of-the-first'; held = [secret * 2 for _ in range(1000)]")
    search = program("""
        import gc
        needle = '-'.join(['of', 'the', 'first'])
        lists = [o for o in gc.get_objects() if type(o) is list]
        sum(isinstance(x, str) and needle in x and x is not needle for o in lists for x in o)
    """)
    assert first.value(search) >= 1000
    assert second.value(search) == 0


def test_chance_cannot_be_foretold(pair):
    first, second = pair
    code = program("""
        import random, secrets, uuid, os
        [float(np.random.rand()), random.random(), secrets.token_hex(8), str(uuid.uuid4()),
         float(np.random.default_rng().random()), float(np.random.RandomState().rand()),
         os.urandom(8).hex(), random.Random().random()]
    """)
    assert not set(first.value(code)) & set(second.value(code))


def test_one_session_in_trouble_is_no_matter_of_another(pair):
    first, second = pair
    second.exec("x = 1; open('f', 'w').write('f')")
    for code in ("import os; os._exit(1)", "import ctypes; ctypes.string_at(1)",
                 "bytearray(10**11)", "import os; os.closerange(0, 64)",
                 "f = open('f', 'wb')\nwhile True: f.write(b'0' * 10**6)"):
        first.exec(code, timeout_ms=20_000)
        answer = second.exec("[x, open('f').read()]")
        assert (answer.value, answer.lost) == ([1, "f"], "none")


def test_an_id_is_no_way_into_the_others_files(client, pair):
    first, _ = pair
    first.exec("open('secret', 'w').write('SECRET')")
    for name in (f"../{first.name}", f"{first.name}/", f"./{first.name}", f"{first.name}/../x"):
        assert client.exec("import os; os.listdir('.')", name).value == []


def test_the_layout_of_memory_is_not_the_same_for_ever(start):
    instance = start(rate_limit=0, pool_size=0, zygote_sessions=2)
    places = set()

    def another():
        places.add(instance.client.exec("id(object)", fresh_id()).value)
        return len(places) > 2

    eventually(another, within=60)
