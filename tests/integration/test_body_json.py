# SPDX-License-Identifier: MIT
"""Bodies that are not JSON as we read it, and bodies too large, deep or rich to be read at all."""

import json

import pytest

from support.client import b64, exec_target
from support.processes import FCGI
from support.witness import CODE, FILE, Witness

MEGABYTE = 1024 * 1024
GOOD = json.dumps({"code": CODE, "files": [FILE]}).encode()


def with_code(value):
    """A body whose code is the given JSON text."""
    return b'{"code": ' + value + b"}"


NOT_JSON = {
    "nothing": b"",
    "white space": b" \r\n\t",
    "a word": b"code",
    "a query": b"code=1",
    "Python": b"{'code': '1'}",
    "NaN": b'{"code": "1", "x": NaN}',
    "infinity": b'{"code": "1", "x": -Infinity}',
    "a number beyond all floats": b'{"code": "1", "x": 1e999}',
    "a number with a leading zero": b'{"code": "1", "x": 01}',
    "a number with a leading plus": b'{"code": "1", "x": +1}',
    "a hexadecimal number": b'{"code": "1", "x": 0x1}',
    "a comment": b'{"code": "1"} // run',
    "a trailing comma": b'{"code": "1",}',
    "a comma in front": b'{,"code": "1"}',
    "no comma": b'{"code": "1" "x": 2}',
    "no colon": b'{"code" "1"}',
    "a key that is no string": b'{code: "1"}',
    "two values": GOOD + GOOD,
    "a value and a brace": GOOD + b"}",
    "a value and NUL": GOOD + b"\0",
    "a byte order mark": b"\xef\xbb\xbf" + GOOD,
    "UTF-16": '{"code": "1"}'.encode("utf-16"),
    "UTF-32": '{"code": "1"}'.encode("utf-32-le"),
    "a raw newline in a string": with_code(b'"a\nb"'),
    "a raw NUL in a string": with_code(b'"a\0b"'),
    "a raw control character": with_code(b'"a\x1bb"'),
    "an escaped NUL in the code": with_code(b'"ran = True\\u0000"'),
    "an escaped NUL in stdin": b'{"code": "1", "stdin": "a\\u0000b"}',
    "an escaped NUL in a file's name":
        b'{"code": "1", "files": [{"filename": "a\\u0000b", "b64_data": ""}]}',
    "an escaped NUL in a file's data":
        b'{"code": "1", "files": [{"filename": "a", "b64_data": "QQ\\u0000="}]}',
    "an escaped NUL in an unknown member": b'{"code": "1", "x": "\\u0000"}',
    "an escaped NUL in a member's name": b'{"code": "1", "a\\u0000": 1}',
    "an unknown escape": with_code(b'"\\x41"'),
    "half an escape": with_code(b'"\\u00"'),
    "an escaped lone surrogate": with_code(b'"\\ud800"'),
    "surrogates in the wrong order": with_code(b'"\\udc00\\ud800"'),
    "a byte that is no UTF-8": with_code(b'"\xff"'),
    "half a character": with_code(b'"\xc3"'),
    "an overlong form": with_code(b'"\xc0\xaf"'),
    "an encoded surrogate": with_code(b'"\xed\xa0\x80"'),
    "beyond Unicode": with_code(b'"\xf4\x90\x80\x80"'),
    "no UTF-8 outside of strings": b'{"code": "1"}\xa0',
    "no UTF-8 in a name": b'{"code": "1", "\xff": 1}',
    "the code twice": b'{"code": "1", "code": "ran = True"}',
    "an unknown member twice": b'{"code": "1", "x": 1, "x": 1}',
    "one name in two spellings": b'{"code": "1", "\\u0063ode": "ran = True"}',
    "a duplicate inside a file":
        b'{"code": "1", "files": [{"filename": "a", "filename": "b", "b64_data": ""}]}',
    "a duplicate deep inside": b'{"code": "1", "x": [{"y": {"z": 1, "z": 2}}]}',
    "a hundred thousand open brackets": b"[" * 100_000,
    "a hundred thousand pairs of brackets": b"[" * 100_000 + b"]" * 100_000,
    "a hundred thousand nested objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "65 levels": b'{"code": "1", "x": ' + b"[" * 64 + b"]" * 64 + b"}",
    "more than 100,000 tokens": b'{"code": "1", "x": [' + b"0," * 110_000 + b"0]}",
    "as many empty objects as fit in ten megabytes":
        b"[" + b"{}," * (10 * MEGABYTE // 3) + b"{}]",
    "as many objects in a member": b'{"code": "1", "x": [' + b"{}," * 2_000_000 + b"{}]}",
    "ten megabytes of quotes": b'{"code": ' + b'"' * 10 * MEGABYTE,
    "a long string that never ends": b'{"code": "' + b"A" * 5_000_000,
    "a long file that never ends":
        b'{"code": "1", "files": [{"filename": "a", "b64_data": "' + b"QUFB" * 1_000_000,
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_what_is_not_json(shared, body):
    witness = Witness(shared)
    witness.refused(shared.post(body), 400, "validation")


def test_a_refused_body_that_ran_would_be_noticed(session):
    witness = Witness(session)
    refusal = session.post(b"{")
    session.post(GOOD)
    with pytest.raises(AssertionError, match="ran, or wrote"):
        witness.refused(refusal, 400, "validation")


def test_every_truncation(shared, session):
    witness = Witness(shared)
    for length in range(len(GOOD)):
        answer = shared.post(GOOD[:length])
        assert (answer.status, answer.error_type) == (400, "validation"), GOOD[:length]
    witness.refused(answer, 400, "validation")
    assert session.post(GOOD).success


@pytest.mark.parametrize("place", range(0, len(GOOD), 7))
def test_a_wrong_byte_anywhere(shared, place):
    witness = Witness(shared)
    answer = shared.post(GOOD[:place] + b"\xff" + GOOD[place + 1:])
    witness.refused(answer, 400, "validation")


@pytest.mark.parametrize("body", [
    b'\r\n\t {"code"\n:\t"6 * 7"} \n', b'{"code": "6 * 7", "x": ' + b"[" * 62 + b"]" * 62 + b"}",
    b'{"code": "6 * 7", "x": [' + b"0," * 20_000 + b"0]}",
    b'{"\\u0063ode": "\\u0036 * 7"}', b'{"code": "6 * 7", "\\u0043ode": 1, "CODE": 2}',
    b'{"code": "6 * 7", "x": [1.5e-3, -0, 1E5, true, false, null, "\\"\\\\\\/\\b\\f\\n\\r\\t"]}',
    b'{"code": "6 * 7", "x": 123456789012345678}',
])
def test_json_of_all_forms_is_read(shared, body):
    assert shared.post(body).value == 42


def test_escapes_in_the_code_are_undone(shared):
    assert shared.post(rb'{"code": "\u0027\ud83d\ude00\u00fc\/\\n\u0027"}').value == "😀ü/\n"


def test_escaped_slashes_in_base64_are_read(shared):
    content = b"\xff\xff\xff\xfb\xef\xbe" * 1000
    data = b64(content).replace("/", "\\/").encode()
    body = (b'{"code": "open(\'s\', \'rb\').read().hex()",'
            b' "files": [{"filename": "s", "b64_data": "%s"}]}')
    assert shared.post(body % data).value == content.hex()


def test_members_in_any_order(shared):
    answer = shared.post({"files": [{"b64_data": "QQ==", "filename": "o", "mode": 1}],
                          "timeout_ms": 5000, "stdin": "", "code": "open('o').read()"})
    assert answer.value == "A"


def test_a_long_string_of_base64_is_code_like_any_other(shared):
    name = "A" * 5000
    assert shared.post({"code": name}).error_type == "NameError"
    assert shared.value(f"{name} = 5\n{name}") == 5


def test_refused_bodies_leave_the_memory_flat(server, shared):
    bodies = [body for body in NOT_JSON.values() if len(body) > 50_000]
    for body in bodies:
        shared.post(body)
    fcgi = server.part(FCGI)
    settled = fcgi.memory()
    fcgi.reset_peak()
    for body in bodies * 2:
        assert shared.post(body).status == 400
    assert fcgi.memory() - settled < 16 * MEGABYTE
    assert fcgi.memory("VmHWM") - settled < 64 * MEGABYTE


def test_a_body_over_the_limit_by_its_length(client, shared):
    witness = Witness(shared)
    answer = client.raw(
        f"POST {shared.target} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {400 * MEGABYTE}\r\n\r\n".encode() + GOOD,
        "POST", shared.target, parsed=False)
    witness.refused(answer, 413, "resource_limit")


def test_a_body_over_the_limit_in_chunks(client, shared):
    witness = Witness(shared)
    chunk = b"100000\r\n" + b"x" * MEGABYTE + b"\r\n"
    head = (f"POST {shared.target} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            "Transfer-Encoding: chunked\r\n\r\n").encode()
    answer = client.raw([head, *[chunk] * 400], "POST", shared.target)
    witness.refused(answer, 413, "resource_limit")


def test_a_body_in_chunks(client, shared):
    body = json.dumps({"code": "6 * 7"}).encode()
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(body[n:n + 4]), body[n:n + 4])
                      for n in range(0, len(body), 4))
    answer = client.raw(
        f"POST {shared.target} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n".encode() + pieces + b"0\r\n\r\n",
        "POST", shared.target)
    assert answer.status == 411 or answer.value == 42


def test_an_unknown_session_is_not_made_by_a_refused_body(client, session_id):
    for body in (b"", b"{}", b'{"code": 1}', b"[" * 100_000):
        client.post(exec_target(session_id), body)
    assert session_id not in client.sessions()
