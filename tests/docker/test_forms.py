# SPDX-License-Identifier: MIT
"""The flags that contrib/docker names: with each the tier that --check says, or no start."""

import json
import time

import pytest

from support.container import PROFILE, docker, image
from support.together import eventually

SECCOMP = f"--security-opt=seccomp={PROFILE}"
MINIMAL = "--env=VIVARIUM_MIN_ISOLATION=minimal"
READ_ONLY = ["--read-only", "--tmpfs=/tmp", "--cap-drop=ALL"]
USER = "--user=1234:1234"
CAPABILITIES = ["--cap-drop=ALL", *(f"--cap-add={name}" for name in (
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETPCAP", "SETUID"))]
STATUS = {"isolated": 1, "confined": 2, "minimal": 3, "none": 4}
FORMS = {
    "none": ([], "confined"),
    "no-new-privileges": (["--security-opt=no-new-privileges"], "confined"),
    "profile": ([SECCOMP], "isolated"),
    "profile, user": ([SECCOMP, USER], "isolated"),
    "profile, as in compose.yaml": ([SECCOMP, *CAPABILITIES, "--security-opt=no-new-privileges",
                                     "--read-only", "--tmpfs=/run", "--tmpfs=/tmp"], "isolated"),
    "profile, user, read-only": ([SECCOMP, USER, *READ_ONLY], "isolated"),
    "user": ([USER, MINIMAL], "minimal"),
    "read-only, no capabilities": ([*READ_ONLY, MINIMAL], "minimal"),
    "read-only, slots in memory": (["--read-only", "--tmpfs=/tmp",
                                    "--tmpfs=/var/lib/vivarium/slots:exec,dev"], "confined"),
}
CODE = "open('f', 'w').write('12'); plt.plot([1]); plt.savefig('a.png'); open('f').read()"


@pytest.mark.parametrize("flags, tier", FORMS.values(), ids=FORMS)
def test_each_serves_in_its_tier(begin, session_id, flags, tier):
    container = begin(*flags)
    container.wait_until_healthy()
    assert container.client.health().json["isolation"]["tier"] == tier
    session = container.client.session(session_id)
    answer = session.exec(CODE)
    assert answer.value == "12" and set(answer.files) == {"f", "a.png"}
    assert container.client.health().json["checkpoints"]["active"] == (tier == "isolated")
    if tier == "isolated":
        eventually(lambda: checkpoint_is_made(session))
    answer = session.exec("import os; os._exit(1)")
    assert ("restored_to" in answer.session) == (tier == "isolated")
    # asked in the container that serves, with what its init has decided
    told = docker("exec", container.id, "vivarium-executor", "--check", "--json",
                  *own_slots(container), check=False)
    assert json.loads(told.stdout)["tier"] == tier and told.returncode == STATUS[tier]
    status, seconds = container.stop()
    assert (status, seconds < 5) == (0, True)
    assert "level=error" not in container.messages()


def checkpoint_is_made(session):
    """Whether a pause is enough for one."""
    time.sleep(0.5)
    answer = session.exec("0")
    assert answer.status == 200, answer
    return answer.session["checkpoint"] is not None


def own_slots(container):
    """The flag that init has given for a folder of slots, if it has."""
    command = (container.part("vivarium-executor").path / "cmdline").read_text().split("\0")
    return [word for word in command if word.startswith("--slot_directory=")]


@pytest.mark.parametrize("flags", [[USER], READ_ONLY], ids=["user", "read-only"])
def test_the_weakest_tier_is_not_taken_unasked(begin, flags):
    container = begin(*flags)
    eventually(lambda: not container.running(), within=60)
    assert container.inspect("State")["ExitCode"] == 1
    assert "min_isolation = minimal takes it as it is" in container.messages()
    assert "vivarium: vivarium-executor ended before it served" in container.messages()
    done = docker("run", "--rm", *flags, image(), "vivarium-executor", "--check", check=False)
    assert done.returncode == 4 and "/usr/share/vivarium/seccomp.json" in done.stdout


def test_the_profile_is_in_the_image():
    said = docker("run", "--rm", image(), "cat", "/usr/share/vivarium/seccomp.json")
    assert said == PROFILE.read_text("utf-8").strip()


def test_settings_reach_both_services(begin, session_id):
    container = begin(rate_limit=1, slots=5, pool_size=1, session_idle_timeout="9m")
    container.wait_until_healthy()
    assert container.client.health().json["isolation"]["slots"] == 5
    session = container.client.session(session_id)
    assert session.exec("1").status == 200 and session.exec("1").status == 429


@pytest.mark.parametrize("key, value, told", [
    ("slots", "many", "VIVARIUM_SLOTS"),
    ("run_directory", "/srv", "VIVARIUM_RUN_DIRECTORY: the container decides this itself"),
])
def test_a_setting_that_is_wrong_ends_it(begin, key, value, told):
    container = begin(**{key: value})
    eventually(lambda: not container.running(), within=60)
    assert container.inspect("State")["ExitCode"] == 1 and told in container.messages()
