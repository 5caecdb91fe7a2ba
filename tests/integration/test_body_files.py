# SPDX-License-Identifier: MIT
"""Names and base64 that are refused, naming the file and never writing any."""

import re

import pytest

from support.client import b64
from support.witness import CODE, FILE, Witness

NAMES = {
    "empty": "",
    "absolute": "/etc/x",
    "absolute in the home directory": "/home/earth/x",
    "only a slash": "/",
    "a dot": ".",
    "two dots": "..",
    "climbing": "../x",
    "climbing far": "../../etc/x",
    "climbing in the middle": "a/../../x",
    "climbing back to where it was": "a/../x",
    "two dots at the end": "a/..",
    "a dot in front": "./x",
    "a dot in the middle": "a/./x",
    "a dot at the end": "a/.",
    "a slash at the end": "a/",
    "two slashes": "a//x",
    "two slashes in front": "//x",
    "a backslash": "a\\x",
    "climbing with backslashes": "..\\x",
    "a newline": "a\nx",
    "a carriage return": "a\rx",
    "a tab": "a\tx",
    "an escape": "\x1b[2J",
    "a bell": "a\x07",
    "delete": "a\x7fx",
    "a component of 256 bytes": "x" * 256,
    "a component of 256 bytes in a folder": "a/" + "é" * 128,
    "nine components": "a/b/c/d/e/f/g/h/i",
    "very many components": "a/" * 5000 + "x",
    "a megabyte": "x" * 1_000_000,
}


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_refused_names(shared, name, place):
    witness = Witness(shared)
    files = [FILE, FILE]
    files[place] = {"filename": name, "b64_data": "QQ=="}
    answer = witness.refused(shared.post({"code": CODE, "files": files}), 422, "parsing")
    assert f"files[{place}]" in answer.error["message"]


@pytest.mark.parametrize("names", [
    ("a", "a/b"), ("a/b", "a"), ("a/b/c", "a/b"), ("a/b", "c", "a/b/c/d"), ("x/y", "x/y/z", "x"),
])
def test_a_name_that_is_a_folder_of_another(shared, names):
    witness = Witness(shared)
    files = [{"filename": name, "b64_data": "QQ=="} for name in names]
    witness.refused(shared.post({"code": CODE, "files": [FILE, *files]}), 422, "parsing")


def test_names_that_only_look_like_folders_of_others(session):
    files = {"a": b"1", "a.b": b"2", "ab/c": b"3", "b/a": b"4", "a-/x": b"5"}
    assert session.value("[open(n).read() for n in ('a', 'a.b', 'ab/c', 'b/a', 'a-/x')]",
                         files=files) == list("12345")


# what is wrong -> the data and the offset of the first wrong byte
BASE64 = {
    "no base64 at all": ("@@@@", 0),
    "a letter that is none": ("QUJ@QUJD", 3),
    "a letter that is none in the last group": ("QUJDQU@D", 6),
    "a blank": ("QUJD QUJD", 4),
    "a blank at the end": ("QUJD ", 4),
    "a tab": ("QUJD\tQUJD", 4),
    "the alphabet of addresses, minus": ("QUJ-", 3),
    "the alphabet of addresses, underscore": ("QU_D", 2),
    "a letter beyond ASCII": ("QUJDQÜJD", 5),
    "padding too early": ("QQ==QQ==", None),
    "padding in the middle": ("Q=JD", None),
    "padding in front": ("=QUJ", 0),
    "only padding": ("====", 0),
    "three of padding": ("Q===", None),
    "padding after a whole group": ("QUJD=", None),
    "padding for a whole group": ("QUJD====", None),
    "one letter": ("Q", None),
    "no padding, two letters": ("QQ", None),
    "no padding, three letters": ("QUI", None),
    "half the padding": ("QQ=", None),
    "spare bits in the last of two": ("QR==", None),
    "spare bits in the last of three": ("QUK=", None),
    "a data URL": ("data:text/plain;base64,QUJD", 4),
    "quoted-printable": ("QUJD=0D=0A", None),
    "more after the end": ("QQ==\nQUJD", None),
    "a letter far in": ("QUFB" * 1_000_000 + "QU*B", 4_000_002),
    "a letter after line breaks": ("QUFB\r\nQU*B", 8),
}


@pytest.mark.parametrize("data, offset", BASE64.values(), ids=BASE64.keys())
def test_refused_base64(shared, data, offset):
    witness = Witness(shared)
    files = [FILE, FILE, {"filename": "bad.bin", "b64_data": data}]
    answer = witness.refused(shared.post({"code": CODE, "files": files}), 422, "parsing")
    message = answer.error["message"]
    assert "files[2]" in message
    assert re.search(r"offset \d+" if offset is None else rf"offset {offset}\b", message), message


@pytest.mark.parametrize("offset", range(0, 64))
def test_a_wrong_letter_is_found_wherever_it_stands(shared, offset):
    data = "QUJD" * 16
    answer = shared.post({"code": CODE, "files": [
        {"filename": "f", "b64_data": data[:offset] + "!" + data[offset + 1:]}]})
    assert (answer.status, answer.error_type) == (422, "parsing")
    assert re.search(rf"offset {offset}\b", answer.error["message"])


@pytest.mark.parametrize("size", [0, 1, 2, 3, 53, 54, 55, 56, 57, 58, 100, 5000])
@pytest.mark.parametrize("width, line_end", [(4, "\n"), (64, "\n"), (72, "\n"), (76, "\r\n"),
                                             (76, "\n")])
def test_wrapped_base64_is_read(shared, size, width, line_end):
    content = bytes(n * 7 % 256 for n in range(size))
    data = b64(content)
    wrapped = "".join(data[n:n + width] + line_end for n in range(0, len(data), width))
    for written in (wrapped, wrapped.removesuffix(line_end)):
        answer = shared.post({"code": "open('w', 'rb').read().hex()",
                              "files": [{"filename": "w", "b64_data": written}]})
        assert answer.value == content.hex()


def test_nothing_is_written_when_a_later_file_is_bad(shared):
    witness = Witness(shared)
    good = [{"filename": f"good{n}", "b64_data": b64(b"x" * 1000)} for n in range(8)]
    for bad in ({"filename": "../x", "b64_data": "QQ=="}, {"filename": "x", "b64_data": "Q"},
                {"filename": "good0/x", "b64_data": "QQ=="}, {"filename": "x"}):
        answer = shared.post({"code": CODE, "files": [*good, bad]})
        witness.refused(answer, 422, "parsing")
