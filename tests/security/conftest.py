# SPDX-License-Identifier: MIT
"""Around every attempt: the server's health, and a session that must not notice anything."""

import pytest

from support.client import fresh_id


@pytest.fixture(scope="module")
def canary(server):
    """A session with a variable, a file and a running count, which no attempt may touch."""
    session = server.client.session(fresh_id())
    session.exec("import os; song = 'sings'; open('cage', 'w').write(song)")
    return session


@pytest.fixture(autouse=True)
def bystanders(request):
    """After the attempt the server is well and the canary is as it was."""
    used_by_the_test = "canary" in request.fixturenames
    if not {"server", "session", "client"} & set(request.fixturenames):
        yield
        return
    server, canary = request.getfixturevalue("server"), request.getfixturevalue("canary")
    before = canary.exec("os.getpid()")
    yield
    assert server.client.health().status == 200
    after = canary.exec("[song, open('cage').read(), os.listdir('.'), os.getpid()]")
    assert after.value == ["sings", "sings", ["cage"], before.value]
    if not used_by_the_test:
        assert after.session["execution_count"] == before.session["execution_count"] + 1
    assert (after.lost, after.session["created"], after.std_out, after.std_err) \
        == ("none", False, "", "")
