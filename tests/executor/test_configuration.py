# SPDX-License-Identifier: MIT
"""vivarium-executor -t: settings that this host cannot serve are refused before a start."""

import os
import pwd
import subprocess

import pytest

from support.tiers import build_file

EX_CONFIG = 78
US = pwd.getpwuid(os.geteuid()).pw_name


def said_of(*flags):
    """The exit status of a test of the configuration, and what it said."""
    done = subprocess.run(
        [build_file("vivarium-executor"), "-f", os.devnull, "-t", f"--executor_client={US}",
         *flags], capture_output=True, text=True, timeout=60,
        env={"PATH": os.environ.get("PATH", "")})
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("names", ["none", "flock", "flock, ioctl,socket"])
def test_system_calls_to_refuse(names):
    status, said = said_of(f"--seccomp_refuse={names}")
    assert status == 0, said


@pytest.mark.parametrize("names, unknown", [
    ("no_such_call", "no_such_call"), ("read,reed", "reed"), ("flock, ALL", "ALL"), ("42", "42")])
def test_system_calls_that_there_are_not(names, unknown):
    status, said = said_of(f"--seccomp_refuse={names}")
    assert status == EX_CONFIG
    assert f"seccomp_refuse: no system call is named {unknown}" in said
