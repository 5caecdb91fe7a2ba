# SPDX-License-Identifier: MIT
"""The members of a request: their types, ranges, counts and sizes, and how faults are told."""

import pytest

from support.client import b64, file_entries
from support.witness import CODE, FILE, Witness

MEGABYTE = 1024 * 1024


def details(answer):
    """The paths and expectations of an answer's details."""
    return {entry["path"]: entry["expected"] for entry in answer.error.get("details", [])}


@pytest.mark.parametrize("body", [[], [{"code": "1"}], "code", 5, None, True])
def test_a_body_that_is_no_object(shared, body):
    witness = Witness(shared)
    answer = shared.post(body)
    assert answer.status in (400, 422)
    witness.refused(answer, answer.status, "validation")


WRONG = {
    "code missing": ({}, "/code"),
    "code null": ({"code": None}, "/code"),
    "code a number": ({"code": 1}, "/code"),
    "code a list": ({"code": ["print(1)"]}, "/code"),
    "code an object": ({"code": {}}, "/code"),
    "code a boolean": ({"code": True}, "/code"),
    "files a string": ({"files": "a.csv"}, "/files"),
    "files an object": ({"files": {"a": "QQ=="}}, "/files"),
    "files a number": ({"files": 1}, "/files"),
    "files a boolean": ({"files": False}, "/files"),
    "stdin a number": ({"stdin": 1}, "/stdin"),
    "stdin a list": ({"stdin": ["a"]}, "/stdin"),
    "timeout_ms a string": ({"timeout_ms": "1000"}, "/timeout_ms"),
    "timeout_ms a fraction": ({"timeout_ms": 1000.5}, "/timeout_ms"),
    "timeout_ms a boolean": ({"timeout_ms": True}, "/timeout_ms"),
    "timeout_ms a list": ({"timeout_ms": [1]}, "/timeout_ms"),
    "timeout_ms zero": ({"timeout_ms": 0}, "/timeout_ms"),
    "timeout_ms negative": ({"timeout_ms": -1}, "/timeout_ms"),
    "timeout_ms above the longest": ({"timeout_ms": 300_001}, "/timeout_ms"),
    "timeout_ms above 32 bits": ({"timeout_ms": 2**32 + 5}, "/timeout_ms"),
    "timeout_ms at the end of 64 bits": ({"timeout_ms": 2**63 - 1}, "/timeout_ms"),
}


@pytest.mark.parametrize("members, path", WRONG.values(), ids=WRONG.keys())
def test_wrong_types_and_ranges(shared, members, path):
    witness = Witness(shared)
    body = {"code": CODE, "files": [FILE], **members} if members else {"files": [FILE]}
    answer = witness.refused(shared.post(body), 422, "validation")
    assert list(details(answer)) == [path]
    assert path.strip("/") in answer.error["message"]
    assert answer.error["details"][0]["on"] == "body"


def test_a_number_beyond_64_bits(shared):
    witness = Witness(shared)
    answer = shared.post({"code": CODE, "timeout_ms": 2**63})
    assert answer.status in (400, 422)
    witness.refused(answer, answer.status, "validation")


def test_all_wrong_members_are_named_at_once(shared):
    witness = Witness(shared)
    answer = shared.post({"code": 1, "files": "x", "stdin": None, "timeout_ms": "1"})
    witness.refused(answer, 422, "validation")
    found = details(answer)
    assert {"/code", "/files", "/timeout_ms"} <= set(found) <= {
        "/code", "/files", "/timeout_ms", "/stdin"}
    assert (found["/code"], found["/files"]) == ("string", "array")
    assert found["/timeout_ms"].startswith("integer")


def test_a_missing_member_is_named_beside_wrong_ones(shared):
    answer = shared.post({"files": 5, "timeout_ms": []})
    assert set(details(answer)) == {"/code", "/files", "/timeout_ms"}


INCOMPLETE = {
    "an empty entry": [{}],
    "no name": [{"b64_data": "QQ=="}],
    "no data": [{"filename": "a"}],
    "another name for the data": [{"filename": "a", "data": "QQ=="}],
    "an incomplete entry after a good one": [FILE, {"filename": "b"}],
}
MISTYPED = {
    "an entry that is no object": ["a.csv"],
    "an entry that is null": [None],
    "a name that is a number": [{"filename": 1, "b64_data": "QQ=="}],
    "a name that is null": [{"filename": None, "b64_data": "QQ=="}],
    "data that are a list": [{"filename": "a", "b64_data": [65]}],
    "data that are null": [{"filename": "a", "b64_data": None}],
    "a bad entry after a good one": [FILE, 5],
}


def names_entry(answer, number):
    """True when an error says which of the files it means."""
    return f"files[{number}]" in answer.error["message"] or any(
        path.startswith(f"/files/{number}") for path in details(answer))


@pytest.mark.parametrize("files", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_files_without_name_or_data(shared, files):
    witness = Witness(shared)
    answer = shared.post({"code": CODE, "files": files})
    witness.refused(answer, 422, "parsing")
    assert names_entry(answer, len(files) - 1), answer


@pytest.mark.parametrize("files", MISTYPED.values(), ids=MISTYPED.keys())
def test_files_of_wrong_types(shared, files):
    witness = Witness(shared)
    answer = shared.post({"code": CODE, "files": files})
    assert answer.error_type in ("parsing", "validation")
    witness.refused(answer, 422, answer.error_type)
    assert names_entry(answer, len(files) - 1), answer


def test_eleven_files(shared):
    witness = Witness(shared)
    files = [{"filename": str(n), "b64_data": ""} for n in range(11)]
    answer = shared.post({"code": CODE, "files": files})
    witness.refused(answer, 413, "resource_limit")
    assert "10" in answer.error["message"]


def test_very_many_files(shared):
    witness = Witness(shared)
    files = [{"filename": str(n), "b64_data": ""} for n in range(5000)]
    witness.refused(shared.post({"code": CODE, "files": files}), 413, "resource_limit")


@pytest.mark.parametrize("excess", [1, 2, 3, 100])
def test_a_file_of_more_than_ten_megabytes(shared, excess):
    witness = Witness(shared)
    content = b"x" * (10 * MEGABYTE + excess)
    answer = shared.post({"code": CODE, "files": [FILE, *file_entries({"big.bin": content})]})
    witness.refused(answer, 413, "resource_limit")
    assert "files[1]" in answer.error["message"]


def test_a_file_of_ten_megabytes(session):
    content = b"x" * (10 * MEGABYTE)
    assert session.value("import os; os.path.getsize('f')", files={"f": content}) == len(content)


def test_line_breaks_in_base64_do_not_count(session):
    data = b64(b"x" * (10 * MEGABYTE))
    wrapped = "\r\n".join(data[n:n + 76] for n in range(0, len(data), 76))
    answer = session.post({"code": "import os; os.path.getsize('f')",
                           "files": [{"filename": "f", "b64_data": wrapped}]})
    assert answer.value == 10 * MEGABYTE


@pytest.mark.parametrize("member", ["code", "stdin"])
@pytest.mark.parametrize("character", ["#", "ü", "\\", "\x01"])
def test_texts_of_more_than_a_megabyte(shared, member, character):
    witness = Witness(shared)
    text = character * (MEGABYTE // len(character.encode()) + 1)
    answer = shared.post({"code": CODE, **{member: text}})
    witness.refused(answer, 413, "resource_limit")
    assert member in answer.error["message"]


@pytest.mark.parametrize("character", ["#", "ü"])
def test_texts_of_a_megabyte(shared, character):
    room = MEGABYTE - len("len(input())#")
    code = "len(input())#" + character * (room // len(character.encode()))
    text = "😀" * (MEGABYTE // 4)
    assert shared.post({"code": code, "stdin": text}).value == len(text)


def test_max_code_is_a_setting(small_session):
    filler = "#" * (8192 - len("6 * 7 "))
    assert small_session.value("6 * 7 " + filler) == 42
    answer = small_session.exec("6 * 7 #" + filler)
    assert (answer.status, answer.error_type) == (413, "resource_limit")


@pytest.mark.parametrize("timeout_ms", [5000, 300_000])
def test_timeouts_in_range(shared, timeout_ms):
    assert shared.value("6 * 7", timeout_ms=timeout_ms) == 42


def test_the_shortest_timeout_is_no_error_of_the_request(shared):
    answer = shared.exec("6 * 7", timeout_ms=1)
    assert answer.success or answer.error_type == "timeout", answer


def test_messages_never_echo_what_was_sent(shared):
    secret = "SECRETTOKEN"
    bodies = [
        b'{"code": ' + secret.encode() + b"}",
        {"code": [secret]}, {"code": "1", "timeout_ms": secret}, {"code": "1", "stdin": [secret]},
        {"code": "1", "files": [{"filename": "/" + secret, "b64_data": ""}]},
        {"code": "1", "files": [{"filename": "ok", "b64_data": secret + "@"}]},
        {"code": "1", "files": secret},
    ]
    for body in bodies:
        answer = shared.post(body)
        assert answer.status in (400, 422)
        assert secret not in answer.body.decode(), body
    assert secret not in shared.client.get("/" + secret).body.decode()
