# SPDX-License-Identifier: MIT
"""vivarium-executor --check: what this host lets it do, tried for real."""

import json
import os
import subprocess

import pytest

from support.must import only_root_can
from support.other_listener import UNDER_IT
from support.tiers import Tier, build_file

STATUS = {"full": 0, "isolated": 1, "confined": 2, "minimal": 3, "none": 4}
IN_NAMESPACES = {"user namespace", "mount namespace", "PID namespace", "network namespace",
                 "IPC namespace", "UTS namespace", "cgroup namespace", "tmpfs with limits",
                 "read-only bind mount", "change of the root"}


@pytest.fixture
def check(folder):
    """A function that runs it, with words in front and flags behind: the process that ended."""
    def run(*flags, prefix=()):
        command = [*prefix, folder / "program", "-f", os.devnull, "--check",
                   f"--slot_directory={folder / 'slots'}", *flags]
        return subprocess.run(command, capture_output=True, text=True, timeout=60,
                              env={"PATH": os.environ.get("PATH", "")})
    return run


def told(done):
    """What was told in JSON, held against the exit status."""
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert done.returncode == (STATUS[report["tier"]] if report["enough"] else 4)
    return report


def states(report):
    """The states of controls by name."""
    return {control["name"]: control["state"] for control in report["controls"]}


def test_people_and_machines_are_told_the_same(check):
    report = told(check("--json"))
    done = check()
    assert done.returncode == STATUS[report["tier"]]
    lines = done.stdout.splitlines()
    for control in report["controls"]:
        said = "ok" if control["state"] == "works" else f"{control['state']}: {control['reason']}"
        assert f"{control['name']:26}  {said}" in lines
        for remedy in control["remedies"]:
            assert f"    try: {remedy}" in lines
    assert f"tier: {report['tier']} (min_isolation is confined)" in lines
    for reason in report["reasons"]:
        assert f"    {reason}" in lines


def test_checkpoints_that_the_kernel_refuses(check):
    """All else is as it was."""
    before, after = (told(check("--json", prefix=prefix)) for prefix in ((), UNDER_IT))
    assert states(before)["checkpoints"] == "works"
    assert states(after) == {**states(before), "checkpoints": "refused"}
    assert after["tier"] == before["tier"]
    reason, = (control["reason"] for control in after["controls"]
               if control["name"] == "checkpoints")
    assert "listener" in reason


def test_nothing_is_left_behind(check, folder):
    for path in folder / "new", folder / "slots":
        report = told(check("--json", f"--slot_directory={path}"))
        assert states(report)["slot_directory"] == "works"
    assert sorted(os.listdir(folder)) == ["program", "slots"]
    assert os.listdir(folder / "slots") == []


def test_a_folder_that_cannot_be_used_is_named(check, folder):
    def refused(path, reason):
        report = told(check("--json", f"--slot_directory={path}"))
        row = next(each for each in report["controls"] if each["name"] == "slot_directory")
        assert row["state"] == "refused" and f"{path}" in row["reason"]
        assert reason in row["reason"]

    refused("/proc/slots", "")
    refused(folder / "not" / "even" / "there", "No such file or directory")
    (folder / "file").touch()
    refused(folder / "file", "Not a directory")
    refused(folder / "file" / "slots", "Not a directory")
    (folder / "slots").chmod(0o777)
    refused(folder / "slots", "does not belong to the user")
    only_root_can("give a folder away")
    (folder / "slots").chmod(0o711)
    os.chown(folder / "slots", 65534, 65534)
    refused(folder / "slots", "does not belong to the user 0 alone")


def test_min_isolation_is_held_against_the_tier(check):
    with_all = told(check("--json", "--min_isolation=minimal"))
    assert with_all["enough"] and with_all["min_isolation"] == "minimal"
    if with_all["tier"] != "full":
        done = check("--min_isolation=full")
        assert done.returncode == 4
        assert "(min_isolation is full: vivarium-executor does not start)" in done.stdout


def test_json_goes_with_check():
    done = subprocess.run([build_file("vivarium-executor"), "-f", os.devnull, "--json"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 78
    assert "--json goes with --check" in done.stderr


def tier_of(check, folder, name):
    """What is told in a place of that kind."""
    tier = Tier(name)
    prefix = [str(word) for word in tier.prefix() if word not in ("--pdeathsig", "TERM")]
    os.chown(folder / "slots", tier.user, tier.user)
    return told(check("--json", "--min_isolation=minimal", prefix=prefix))


def test_root_and_an_ordinary_user_have_namespaces(check, folder):
    for name in ("isolated", "isolated-user"):
        report = tier_of(check, folder, name)
        assert report["tier"] in ("full", "isolated"), report["reasons"]
        found = states(report)
        assert {found[row] for row in IN_NAMESPACES} == {"works"}
        assert (found["capabilities of root"] == "works") == (name == "isolated")
        assert found["a whole sandbox"] == "works"


def test_root_of_a_container_is_confined(check, folder):
    report = tier_of(check, folder, "confined")
    assert report["tier"] == "confined"
    found = states(report)
    assert found["user namespace"] == "refused"
    assert found["a whole sandbox"] == "absent"  # the slots may be somebody's
    assert {found[row] for row in IN_NAMESPACES - {"user namespace"}} == {"absent"}
    assert "Operation not permitted" in report["reasons"][0]
    remedies = next(each["remedies"] for each in report["controls"]
                    if each["name"] == "user namespace")
    assert any("--security-opt" in remedy for remedy in remedies)


def test_a_user_of_a_container_is_minimal(check, folder):
    report = tier_of(check, folder, "minimal")
    assert report["tier"] == "minimal"
    assert states(report)["Landlock"] == "works"
    assert any("capabilities of root" in reason for reason in report["reasons"])


def profile(*options):
    """The words in front of a command for a container with these options."""
    only_root_can("drop what a container does not have")
    return [str(build_file("tests/support/container_profile")), *options]


@pytest.mark.parametrize("capability", ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL",
                                        "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP",
                                        "CAP_SYS_CHROOT"])
def test_without_one_of_its_capabilities_there_is_no_confined(check, capability):
    report = told(check("--json", "--min_isolation=minimal",
                        prefix=profile(f"--drop={capability}")))
    assert report["tier"] == "minimal"
    assert any(capability.removeprefix("CAP_") in reason for reason in report["reasons"])


def test_slots_where_nothing_can_be_executed_are_not_confined(check, folder):
    mount = ["unshare", "--mount", "sh", "-c",
             'mount -t tmpfs -o noexec,mode=755 none "$0" && exec "$@"', folder / "slots"]
    report = told(check("--json", "--min_isolation=minimal", f"--slot_directory={folder}/slots/in",
                        prefix=[*mount, *profile()]))
    assert states(report)["programs in slot_directory"] == "refused"
    assert f"programs in slot_directory: {folder}/slots is mounted noexec" in report["reasons"]
    assert report["tier"] == "minimal"


def test_no_folder_for_slots_and_no_namespaces_is_no_tier(check):
    done = check("--json", "--min_isolation=minimal", "--slot_directory=/proc/slots",
                 prefix=profile())
    report = told(done)
    assert report["tier"] == "none" and not report["enough"]
    assert done.returncode == 4
