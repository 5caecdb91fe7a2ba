# SPDX-License-Identifier: MIT
"""What a pod of Kubernetes with user ids of its own gives: contrib/kubernetes counts on it."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from support import pod
from support.client import fresh_id
from support.must import only_root_can
from support.server import running
from support.tiers import PROFILE, build_file

USER = 1000


def in_pod(user):
    """The words in front of what is to run as a user of a pod."""
    only_root_can("make a user namespace of many ids")
    return [sys.executable, str(pathlib.Path(pod.__file__)), str(user)]


@pytest.mark.parametrize("user, profile, tier", [
    (USER, [], "isolated"),
    (0, [], "confined"),  # uid_base does not fit into the ids of a pod
    (0, [PROFILE], "confined"),
])
def test_the_tier(folder, user, profile, tier):
    slots = folder / "slots"
    slots.chmod(0o700)
    os.chown(slots, pod.FIRST + user, pod.FIRST + user)
    done = subprocess.run(
        [*in_pod(user), *map(build_file, profile), folder / "program", "-f", os.devnull,
         "--check", "--json", f"--slot_directory={slots}"],
        capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["tier"] == tier, done.stdout + done.stderr


def test_a_call_in_a_session_of_an_ordinary_user():
    with running(under=in_pod(USER), min_isolation="isolated") as instance:
        assert instance.client.health().json["isolation"]["tier"] == "isolated"
        answer = instance.client.exec("import os; os.getcwd(), os.getuid()", fresh_id())
        assert answer.value == ["/home/earth", 1000]
