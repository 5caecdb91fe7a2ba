# SPDX-License-Identifier: MIT
"""output_files: what is new or changed below the home directory, and what is left out and why."""

import base64

import pytest

from support.program import program

MEGABYTE = 1024 * 1024


def accounted(answer):
    """All names of files that an answer speaks of."""
    return set(answer.files) | set(answer.left_out)


def test_new_files_come_back_with_their_bytes(session):
    answer = session.exec(program("""
        data = bytes(range(256)) * 100
        open('z.bin', 'wb').write(data)
        open('empty', 'w').close()
        open('a.txt', 'w').write('ü')
    """))
    assert answer.success, answer
    assert answer.files == {"z.bin": bytes(range(256)) * 100, "empty": b"", "a.txt": "ü".encode()}
    assert list(answer.files) == ["a.txt", "empty", "z.bin"]
    assert answer.left_out == {}


def test_folders_are_part_of_the_name(session):
    answer = session.exec("import os; os.makedirs('a/b'); os.mkdir('none')\n"
                          "for n in ('a/b/c.txt', 'a.b', 'a/d', 'B'): open(n, 'w').write(n)")
    assert list(answer.files) == ["B", "a.b", "a/b/c.txt", "a/d"]


def test_a_file_comes_back_once_for_each_change(session):
    assert list(session.exec("open('f', 'w').write('one')").files) == ["f"]
    assert session.exec("open('f').read()").files == {}
    assert session.exec("open('f', 'a').write(' two')").files == {"f": b"one two"}
    assert session.exec("import os; os.remove('f')").files == {}


def test_changed_inputs_come_back_and_untouched_ones_do_not(session):
    answer = session.exec("open('in.csv', 'a').write('3,4\\n')",
                          files={"in.csv": b"1,2\n", "other.csv": b"x"})
    assert answer.files == {"in.csv": b"1,2\n3,4\n"}
    assert session.value("open('other.csv').read()") == "x"


@pytest.mark.parametrize("change", [
    "open('f', 'r+').write('B')",
    "import mmap; f = open('f', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0:1] = b'B'; m.flush()",
    "open('g', 'w').write('BBBB'); os.replace('g', 'f')",
    "s = os.stat('f'); open('f', 'r+').write('B');"
    " os.utime('f', ns=(s.st_atime_ns, s.st_mtime_ns))",
    "open('g', 'w').write('BBBB'); os.utime('g', ns=(0, os.stat('f').st_mtime_ns));"
    " os.replace('g', 'f')",
    "os.truncate('f', 2)",
])
def test_a_change_is_noticed_however_it_was_made(session, change):
    session.exec("import os; open('f', 'w').write('AAAA')")
    answer = session.exec(change)
    assert answer.success, answer
    assert list(answer.files) == ["f"]
    assert answer.files["f"] != b"AAAA"


def test_a_renamed_file_comes_under_its_new_name(session):
    session.exec("import os; open('old', 'w').write('x')")
    assert session.exec("os.rename('old', 'new')").files == {"new": b"x"}
    session.exec("os.mkdir('d'); open('d/f', 'w').write('y')")
    assert session.exec("os.rename('d', 'e')").files == {"e/f": b"y"}


def test_what_is_no_regular_file_is_passed_over(session):
    answer = session.exec(program("""
        import os, socket
        os.makedirs('real'); open('real/f', 'w').write('f')
        os.symlink('/etc/passwd', 'p.txt'); os.symlink('real/f', 'link')
        os.symlink('real', 'folder'); os.symlink('.', 'loop'); os.symlink('none', 'dangling')
        for make in (lambda: os.mkfifo('fifo'), lambda: os.mknod('node', 0o20666, 0x103),
                     lambda: socket.socket(socket.AF_UNIX).bind('socket')):
            try: make()
            except OSError: pass
    """))
    assert answer.success
    assert list(answer.files) == ["real/f"]


def test_caches_and_hidden_names_are_passed_over(session):
    answer = session.exec(program("""
        import os
        for d in ('__pycache__', 'a/__pycache__', '.git', 'a/.cache'):
            os.makedirs(d); open(d + '/f', 'w').write('x')
        for n in ('.hidden', 'a/.hidden', 'a/shown', 'x.pyc'): open(n, 'w').write('x')
    """))
    assert answer.files == {"a/shown": b"x", "x.pyc": b"x"}
    assert session.value("os.path.exists('.git/f')") is True


def test_a_link_into_another_place_gives_nothing_away(session):
    answer = session.exec("import os; os.symlink('/etc', 'etc'); os.symlink('/', 'root')\n"
                          "open('mine', 'w').write('m')")
    assert answer.files == {"mine": b"m"}


@pytest.mark.parametrize("name", [
    "plain.txt", "two words (1).csv", "über データ.csv", "new\nline", "esc\x1b[2J", "quote\"'",
    "back\\slash", "-rf", "x" * 255, "HTTP/1.1 200 OK", "%2e%2e%2fx", "tab\t",
], ids=lambda name: ascii(name)[:30])
def test_names_of_all_kinds_are_never_lost(session, name):
    answer = session.exec(program(f"""
        import os
        os.makedirs(os.path.dirname({name!r}) or '.', exist_ok=True)
        open({name!r}, 'w').write('x')
    """))
    assert answer.success, answer
    assert accounted(answer) == {name}
    if name.isprintable() and "\\" not in name:
        assert answer.files == {name: b"x"}


def test_a_name_that_is_no_text_is_left_out_with_a_reason(session):
    answer = session.exec(r"open(b'\xff\xfe.png', 'wb').write(b'1'); open('ok', 'w').write('1')")
    assert answer.files == {"ok": b"1"}
    assert len(answer.left_out) == 1
    assert next(iter(answer.left_out.values()))["size"] == 1


def test_a_file_at_the_limit_comes_and_one_byte_more_is_left_out(session):
    limit = 10 * MEGABYTE
    answer = session.exec(f"open('at', 'wb').write(b'x' * {limit})\n"
                          f"open('above', 'wb').write(b'x' * ({limit} + 1))")
    assert list(answer.files) == ["at"]
    assert answer.files["at"] == b"x" * limit
    assert list(answer.left_out) == ["above"]
    assert answer.left_out["above"]["size"] == limit + 1
    assert session.value("import os; os.path.getsize('above')") == limit + 1


def test_a_file_with_holes_counts_with_its_length(session):
    answer = session.exec("open('sparse', 'wb').truncate(30 << 20)")
    assert answer.files == {}
    assert answer.left_out["sparse"]["size"] == 30 << 20


def test_at_most_a_hundred_files_come(session):
    answer = session.exec("for n in range(130): open(f'{n:03}', 'w').write('x')")
    assert len(answer.files) == 100
    assert len(answer.left_out) == 30
    assert accounted(answer) == {f"{n:03}" for n in range(130)}
    assert session.value("import os; len(os.listdir('.'))") == 130


def test_at_most_a_hundred_megabytes_come(session):
    answer = session.exec("data = b'x' * (10 << 20)\n"
                          "for n in range(12): open(f'{n:02}', 'wb').write(data)")
    assert answer.success, answer.error
    assert accounted(answer) == {f"{n:02}" for n in range(12)}
    assert sum(map(len, answer.files.values())) <= 100 * MEGABYTE
    assert len(answer.files) >= 9


def test_max_output_files_is_a_setting(small_session):
    answer = small_session.exec("for n in range(7): open(str(n), 'w').write('x')")
    assert len(answer.files) == 5
    assert accounted(answer) == set("0123456")


def test_files_come_with_errors_time_outs_and_deaths(session):
    for code, kind in (("1 / 0", "ZeroDivisionError"), ("while True: pass", "timeout"),
                       ("import os; os.abort()", "crash")):
        answer = session.exec(f"open('f-{kind}', 'w').write('{kind}')\n{code}", timeout_ms=1000)
        assert answer.error_type == kind
        assert answer.files == {f"f-{kind}": kind.encode()}


def test_a_file_still_open_comes_as_far_as_it_was_written(session):
    answer = session.exec("f = open('f', 'w'); f.write('flushed'); f.flush(); f.write(' not')")
    assert answer.files["f"].startswith(b"flushed")


def test_a_file_that_grows_all_the_time_does_not_hold_the_answer(session):
    code = ("import threading, os\ngo = True\ndef grow():\n    f = open('f', 'ab')\n"
            "    while go and f.tell() < 5_000_000: f.write(b'x' * 1000); f.flush()\n"
            "t = threading.Thread(target=grow); t.start()")
    answer = session.exec(code)
    assert answer.success
    assert accounted(answer) <= {"f"}
    session.exec("go = False; t.join()")
    assert session.value("1") == 1


def test_a_file_without_permissions_is_not_lost(session):
    answer = session.exec("import os; open('f', 'w').write('f'); os.chmod('f', 0)\n"
                          "os.mkdir('d'); open('d/g', 'w').write('g'); os.chmod('d/g', 0o111)")
    assert answer.success
    assert accounted(answer) == {"f", "d/g"}


def test_files_of_other_places_do_not_come(session):
    answer = session.exec(program("""
        import tempfile
        open('/tmp/elsewhere', 'w').write('x')
        open('here', 'w').write('x')
    """))
    assert list(answer.files) == ["here"]


def test_the_base64_of_the_answer_is_in_one_line(session):
    answer = session.exec("open('f', 'wb').write(b'\\xff\\xfb' * 1000)")
    entry = answer.outcome["output_files"][0]
    assert entry["b64_data"] == base64.b64encode(b"\xff\xfb" * 1000).decode()
