# SPDX-License-Identifier: MIT
"""Memory that runs out is an error of the call, and the session lives."""

import pytest

from conftest import Worker

LIMIT = 88 << 20


@pytest.fixture
def tight(bare_zygote, tmp_path):
    """A worker with little address space."""
    worker = Worker(bare_zygote, tmp_path, memory=LIMIT)
    yield worker
    worker.close()


@pytest.mark.parametrize("code", [
    "x = 1\nx = bytearray(10**10)",
    "hoard = []\nwhile True: hoard.append(bytearray(1 << 20))",
    "hoard = []\nwhile True: hoard.append(object())",
    "hoard = [None] * 4_000_000\nfor n in range(4_000_000): hoard[n] = object()",
])
def test_running_out_is_told_with_the_line(tight, code):
    for _ in range(2):
        result = tight.run(code)
        assert (result.error, result.line) == ("MemoryError", 2)
        assert result.traceback.startswith("Traceback (most recent call last):\n")
        assert tight.run("hoard = x = None").ok
        assert tight.value("6 * 7") == 42
        assert tight.run("1/0").context == ["1: 1/0"]


@pytest.mark.parametrize("code", [
    "def fill():\n    hoard = []\n    while True: hoard.append([0] * 10)\nfill()",
    "hoard = {}\nwhile True: hoard[len(hoard)] = str(len(hoard))",
    "hoard = []\nwhile True: hoard.append({0: hoard})",
])
def test_running_out_to_the_last_byte_again_and_again(tight, code):
    for _ in range(3):
        assert tight.run(code).error == "MemoryError"
    assert tight.run("hoard = None").ok
    assert tight.value("6 * 7") == 42
    assert tight.run("1/0").context == ["1: 1/0"]


def test_huge_text_of_an_exception_is_not_copied(tight):
    result = tight.run("class Huge(Exception):\n    def __str__(self): return 'Z' * (32 << 20)\n"
                       "raise Huge")
    assert result.error == "Huge"
    assert result.traceback.endswith("ZZZ... [33546240 characters cut]")


def test_a_huge_value(tight):
    assert tight.run("'x' * (12 << 20)").cut
    assert tight.run("x = b'x' * (40 << 20)\nx").error == "MemoryError"
