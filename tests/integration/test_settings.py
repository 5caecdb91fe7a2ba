# SPDX-License-Identifier: MIT
"""Settings that cannot be are told at the start, which then ends and leaves nothing."""

import pytest

from support.client import fresh_id
from support.server import DevServer


@pytest.fixture
def instance(request):
    """An instance with the settings of the test's parameters, not yet started."""
    instance = DevServer(**request.param)
    yield instance
    instance.discard()


BAD = [
    {"no_such_key": "1"}, {"max_sessions": "many"}, {"max_sessions": "-1"}, {"max_sessions": ""},
    {"max_code": "1X"}, {"max_code": "1.5M"}, {"exec_timeout": "0"},
    {"session_idle_timeout": "soon"}, {"rate_limit": "99999999999999999999"},
    {"min_isolation": "perfect"}, {"trusted_proxies": "everybody"},
    {"seccomp_refuse": "flock,no_such_call"},
]


@pytest.mark.parametrize("instance", BAD, indirect=True, ids=lambda bad: str(bad)[1:-1])
def test_a_bad_setting_ends_the_start_and_is_named(instance):
    instance.launch()
    assert instance.process.wait(60) not in (0, None)
    key = list(instance.settings)[-1]  # before it are those that the place needs
    assert key in instance.messages()
    assert list(instance.scratch.iterdir()) == []


def test_units_of_sizes_and_times(start, monkeypatch):
    monkeypatch.setenv("VIVARIUM_MAX_CODE", "1K")
    monkeypatch.setenv("VIVARIUM_MAX_STDIN", "100")
    instance = start(rate_limit=0, max_code="2K", exec_timeout="1500ms")
    session = instance.client.session(fresh_id())
    filler = "#" * (2048 - len("6 * 7 "))
    assert session.value("6 * 7 " + filler) == 42, "the flag counts, not the environment"
    assert session.exec("6 * 7 #" + filler).status == 413
    assert session.exec("1", stdin="x" * 100).status == 200
    assert session.exec("1", stdin="x" * 101).status == 413
    answer = session.exec("import time; time.sleep(30)")
    assert answer.error_type == "timeout"
    assert 1400 <= answer.outcome["code_runtime"] < 30_000
