# SPDX-License-Identifier: MIT
"""Files of the machine: neither to be read nor changed from a session."""

import hashlib
import os
import pathlib
import uuid

import pytest

from support import outside
from support.program import program
from support.server import ROOT

# where the tests can put a file, and folders that hold something
PLACES = [place for place in ("/tmp", "/var/tmp", "/dev/shm", str(pathlib.Path.home()))
          if os.access(place, os.W_OK)]
FOLDERS = [folder for folder in (
    "/root", "/var", "/opt", "/srv", "/boot", "/run", "/sys", "/mnt", "/media", "/etc/ssl",
    "/etc/ssh", "/var/log", "/usr/../root", str(ROOT),
) if os.path.isdir(folder) and os.access(folder, os.R_OK) and os.listdir(folder)]
READING = {
    "open": "print(open(PATH).read())",
    "os.open": "import os; print(os.read(os.open(PATH, os.O_RDONLY), 100).decode())",
    "C": program("""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.open(PATH.encode(), 0)
        if fd < 0: raise OSError(ctypes.get_errno(), 'refused')
        buffer = ctypes.create_string_buffer(100)
        libc.read(fd, buffer, 100)
        print(buffer.value.decode())
    """),
    "a symbolic link": "import os; os.symlink(PATH, 'soft'); print(open('soft').read())",
    "a hard link": "import os; os.link(PATH, 'hard'); print(open('hard').read())",
    "a copy": "import shutil; shutil.copy(PATH, 'copy'); print(open('copy').read())",
    "climbing": "print(open('../' * 40 + PATH).read())",
    "numpy": "import numpy; print(numpy.fromfile(PATH, 'u1').tobytes().decode())",
    "the root of a process": "print(open('/proc/self/root' + PATH).read())",
    "a change of directory": program("""
        import os
        os.chdir(os.path.dirname(PATH))
        print(open(os.path.basename(PATH)).read())
    """),
}
REFUSALS = {"FileNotFoundError", "PermissionError", "OSError", "NotADirectoryError"}


@pytest.fixture(params=PLACES)
def secret(request):
    """A file that everybody on the machine may read, in one place after the other."""
    path = pathlib.Path(request.param, f"viv-{uuid.uuid4().hex}")
    path.write_text(f"secret of {path.name}")
    path.chmod(0o644)
    yield path
    path.unlink(missing_ok=True)


@pytest.mark.parametrize("code", READING.values(), ids=READING.keys())
def test_a_readable_file_of_the_machine(session, tmp_path, secret, code):
    code = code.replace("PATH", repr(str(secret)))
    answer = session.exec(code)
    assert answer.error_type in REFUSALS, answer
    assert b"secret of" not in answer.body
    control = outside.run(code, tmp_path)
    if "os.link" in code and "Invalid cross-device link" in control.stderr:
        return  # the tests' own folder is on another file system
    assert "secret of" in control.stdout, control


def test_a_readable_file_is_not_collected(session, secret):
    answer = session.exec(program(f"""
        import os
        os.symlink({str(secret)!r}, 'report.csv')
        os.symlink({str(secret.parent)!r}, 'folder')
        open('mine', 'w').close()
    """))
    assert list(answer.files) == ["mine"]
    assert b"secret of" not in answer.body


def test_no_name_of_the_machine_is_listed(session, secret):
    found = session.value(program(f"""
        import os
        found = []
        for place in {[*PLACES, '/', '/home', '/proc/self/root']}:
            for folder, folders, files in os.walk(place):
                found += [name for name in files if name.startswith('viv-')]
                if folder.count('/') > 3: folders.clear()
        found
    """), timeout_ms=60_000)
    assert found == []
    assert secret.name in os.listdir(secret.parent)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_folder_of_the_machine_shows_what_is_in_it(session, folder):
    answer = session.exec(f"import os\nos.listdir({folder!r})")
    assert answer.error_type in REFUSALS or answer.value == [], answer


def test_the_users_of_the_machine_are_not_listed(session):
    seen = session.exec("open('/etc/passwd').read()")
    if seen.success:
        own = pathlib.Path("/etc/passwd").read_text().splitlines()
        assert not set(seen.value.splitlines()) & {line for line in own if "/home/" in line}
        assert len(seen.value.splitlines()) < 10


@pytest.mark.parametrize("folder", PLACES + ["/etc", "/usr", "/usr/lib", "/home", "/"])
def test_what_is_written_stays_inside(session, folder):
    name = f"viv-{uuid.uuid4().hex}"
    session.exec(f"open({os.path.join(folder, name)!r}, 'w').write('planted')")
    assert not os.path.exists(os.path.join(folder, name))


def test_the_library_is_the_same_after_every_attempt(session, new_session):
    path = session.value("import os; os.__file__")
    before = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    refused = session.value(program("""
        attempts = [
            lambda path: open(path, 'a').write('x'),
            lambda path: os.remove(path),
            lambda path: os.truncate(path, 0),
            lambda path: os.rename(path, path + 'x'),
            lambda path: os.symlink('x', path + 'x'),
        ]
        refused = 0
        for attempt in attempts:
            try: attempt(os.__file__)
            except OSError: refused += 1
        refused
    """))
    assert refused == 5
    assert hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() == before
    seen = new_session().value(program("""
        import os, hashlib
        hashlib.sha256(open(os.__file__, 'rb').read()).hexdigest()
    """))
    assert seen == before
