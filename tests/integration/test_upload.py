# SPDX-License-Identifier: MIT
"""Files of a request: in place before the code starts, all of them or none."""

import os
import zlib

import pytest

from support.client import b64, exec_target, file_entries, fresh_id
from support.must import not_with_slots, only_a_quota_shows
from support.processes import FCGI, find, stopped
from support.program import program
from support.together import eventually, in_background

MEGABYTE = 1024 * 1024
LISTING = ("import os\nsorted(os.path.join(d, f)[2:] for d, _, fs in os.walk('.') for f in fs)")


@pytest.mark.parametrize("name", [
    "a", "data.csv", "two words (1).csv", "über データ.csv", "😀", "-rf", ".hidden", "...", "..a",
    "a..b", "a.", "~", "%2e%2e", "C:x", "a?b*c", "'\"", "data/in.csv", "1/2/3/4/5/6/7/8",
    "x" * 255, "é" * 127, "/".join(["y" * 255] * 8), "\u2028", "\u202egnp.exe", "NUL", "-d/-f",
], ids=lambda name: ascii(name)[:30])
def test_names(shared, name):
    content = os.urandom(50)
    answer = shared.exec(f"open({name!r}, 'rb').read().hex()", files={name: content})
    assert answer.value == content.hex()
    assert answer.files == {}


@pytest.mark.parametrize("size", [0, 1, 2, 3, 57, 58, 4095, 4096, 65537, 1_000_003])
def test_contents(shared, size):
    content = os.urandom(size)
    answer = shared.exec("import zlib; d = open('blob', 'rb').read(); [len(d), zlib.crc32(d)]",
                         files={"blob": content})
    assert answer.value == [size, zlib.crc32(content)]


def test_every_byte_arrives(shared):
    content = bytes(range(256))
    assert shared.value("list(open('bytes', 'rb').read())", files={"bytes": content}) == [*content]


def test_ten_files(session):
    files = {f"f{n}": str(n).encode() for n in range(10)}
    assert session.value("[int(open(f'f{n}').read()) for n in range(10)]", files=files) \
        == list(range(10))


def test_the_last_of_two_with_one_name_wins(session):
    entries = [("f", b"first"), ("g", b"other"), ("f", b"second")]
    assert session.value("open('f').read() + open('g').read()", files=entries) == "secondother"


def test_an_upload_replaces_a_file(session):
    session.exec("old = open('f', 'w+'); n = old.write('long old content'); old.flush()")
    assert session.value("open('f').read()", files={"f": b"new"}) == "new"
    assert session.value("old.seek(0); old.read()") == "long old content"


def test_uploads_land_in_the_home_directory_wherever_the_code_stands(session):
    session.exec("import os; os.mkdir('d'); os.chdir('d')")
    assert session.value("open('/home/earth/f').read()", files={"f": b"home"}) == "home"


def test_files_stay_for_later_calls(session):
    session.exec("", files={"data/x.csv": b"1,2"})
    assert session.value("open('data/x.csv').read()") == "1,2"


def test_uploads_can_be_changed_moved_and_removed(session):
    code = program("""
        import os, shutil
        open('d/a', 'a').write('+')
        os.rename('d/b', 'd/c')
        text = open('d/a').read() + open('d/c').read()
        shutil.rmtree('d')
        text
    """)
    assert session.value(code, files={"d/a": b"a", "d/b": b"b"}) == "a+b"


def test_an_upload_replaces_a_link_and_does_not_follow_it(session):
    session.exec("import os; open('target', 'w').write('precious'); os.symlink('target', 'f')\n"
                 "os.symlink('/tmp/outside', 'g')")
    seen = session.value(
        "[open('target').read(), os.path.islink('f'), os.path.lexists('/tmp/outside')]",
        files={"f": b"up", "g": b"up"})
    assert seen == ["precious", False, False]


def test_an_upload_does_not_go_through_a_linked_folder(session):
    session.exec("import os; os.mkdir('/tmp/out'); os.symlink('/tmp/out', 'd')")
    answer = session.post({"code": "ran = True", "files": file_entries({"d/f": b"up"})})
    assert answer.status in (200, 422), answer
    assert session.value("os.listdir('/tmp/out')") == []
    if answer.status == 422:
        assert session.value("'ran' in globals()") is False


def test_a_folder_in_the_way_is_refused_and_nothing_has_run(session):
    session.exec("import os; os.makedirs('taken/by')")
    before = session.value(LISTING)
    answer = session.exec("ran = True", files={"fine": b"x", "taken": b"x"})
    assert (answer.status, answer.error_type) == (422, "parsing")
    assert session.value("'ran' in globals()") is False
    assert session.value(LISTING) == before


def test_a_file_where_a_folder_is_needed_is_refused_and_nothing_has_run(session):
    session.exec("open('taken', 'w').write('mine')")
    before = session.value(LISTING)
    answer = session.exec("ran = True", files={"fine": b"x", "taken/f": b"x"})
    assert 400 <= answer.status < 500, answer
    assert session.value("'ran' in globals()") is False
    assert session.value(LISTING) == before
    assert session.value("open('taken').read()") == "mine"


def test_no_room_is_said_and_nothing_has_run(small_session):
    only_a_quota_shows("where exactly the room ends")
    session = small_session
    session.exec(program("""
        f = open('big', 'wb')
        n = f.write(b'x' * 950 * 1024)
        f.close()
    """))
    before = session.value(LISTING)
    files = {"first": b"1" * 50_000, "second": b"2" * 60_000, "third": b"3" * 60_000}
    answer = session.exec("ran = True", files=files)
    assert (answer.status, answer.error_type) == (413, "resource_limit")
    assert session.value("'ran' in globals()") is False
    assert session.value(LISTING) == before, "a part of the files was left there"
    session.exec("os.remove('big')")
    assert session.value("os.path.getsize('third')", files=files) == 60_000


def test_no_room_for_another_name_is_said_too(small_session):
    only_a_quota_shows("where exactly the room ends")
    session = small_session
    code = ("n = 0\ntry:\n    while True: open(f'f{n}', 'w').close(); n += 1\n"
            "except OSError: pass\nn")
    assert 50 < session.value(code) <= 200
    answer = session.exec("ran = True", files={"one/more": b"x"})
    assert (answer.status, answer.error_type) == (413, "resource_limit")
    assert session.value("'ran' in globals()") is False


def test_a_first_call_with_files_begins_the_session(session):
    answer = session.exec("open('f').read()", files={"f": b"first"})
    assert answer.value == "first"
    assert answer.session["created"] is True


def test_max_file_size_and_max_files_are_settings(small_session):
    session = small_session
    assert session.value("import os; os.path.getsize('f')", files={"f": b"x" * 65536}) == 65536
    answer = session.exec("1", files={"f": b"x" * 65537})
    assert (answer.status, answer.error_type) == (413, "resource_limit")
    answer = session.exec("1", files={str(n): b"" for n in range(4)})
    assert (answer.status, answer.error_type) == (413, "resource_limit")


def test_files_of_ten_megabytes_ten_times_and_little_memory_for_them(server, session):
    content = os.urandom(10 * MEGABYTE)
    body = (b'{"code": "import os, zlib\\n'
            b"[[os.path.getsize(f'f{n}'), zlib.crc32(open(f'f{n}', 'rb').read())]"
            b' for n in range(10)]", "files": ['
            + b",".join(b'{"filename": "f%d", "b64_data": "%s"}' % (n, b64(content).encode())
                        for n in range(10)) + b"]}")
    fcgi = server.part(FCGI)
    fcgi.reset_peak()
    before = fcgi.memory("VmRSS")
    answer = session.client.post(exec_target(session.name), body)
    assert answer.value == [[10 * MEGABYTE, zlib.crc32(content)]] * 10
    assert answer.files == {}
    assert fcgi.memory("VmHWM") - before < 1.5 * len(body)


def test_bodies_in_flight_are_bounded(start):
    """A body that its sandbox does not take holds its place; others find none, and are told."""
    not_with_slots("the supervisor is no parent of the worker")
    instance = start(rate_limit=0, max_files=1, max_file_size="4M", max_code="64K",
                     max_stdin="64K", max_in_flight="8M")
    one, other = (instance.client.session(fresh_id()) for _ in range(2))
    assert one.exec("1").success
    files = {"f": bytes(4 * MEGABYTE)}
    with stopped(find(instance.worker_of(one).parent)):
        call = in_background(lambda: one.value("6 * 7", files=files))
        eventually(lambda: one.state() == "busy")  # its body has been taken
        refused = eventually(lambda: (now := other.exec("1", files=files)).status != 200 and now)
        assert (refused.status, refused.error_type) == (503, "capacity")
        assert int(refused.headers["Retry-After"]) >= 1
        assert other.value("6 * 7") == 42
    assert call.result() == 42
    assert other.value("open('f', 'rb').read(1)", files={"f": b"x" * 4 * MEGABYTE}) == "b'x'"
    assert "limit=max_in_flight" in instance.messages()
