# SPDX-License-Identifier: MIT
"""Vivarium as a host has it: what make install brings, and a machine to try it on."""

import os
import pathlib
import subprocess

import pytest

from support.machine import Machine
from support.must import cannot


class Build:
    """A build for the paths of a host, which `make check-install` makes."""

    def __init__(self):
        self.folder = pathlib.Path(os.environ.get("VIVARIUM_BUILDDIR", "build"), "tests/host")
        if not (self.folder / "vivarium-zygote").exists():
            cannot(f"{self.folder} is not built: make check-install")

    def make(self, *arguments):
        """Run make there; what it wrote."""
        done = subprocess.run(["make", "--silent", "-C", self.folder, *arguments],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="session")
def build():
    """The build."""
    return Build()


@pytest.fixture(scope="module")
def machine():
    """A machine that Vivarium is not installed on."""
    made = Machine()
    try:
        yield made.start()
    finally:
        made.discard()


@pytest.fixture(scope="module")
def before(machine):
    """What the machine has written without Vivarium."""
    return machine.written()


@pytest.fixture(scope="module")
def host(machine, build, before):
    """The machine with Vivarium on it, by the commands that docs/operations.md has. The tests'
    connections are made there."""
    build.make("install", f"DESTDIR={machine.path('/')}")
    machine.run("systemd-sysusers")
    machine.run("systemd-tmpfiles", "--create", "vivarium.conf")
    machine.run("systemctl", "daemon-reload")
    with machine.network():
        yield machine
