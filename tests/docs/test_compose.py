# SPDX-License-Identifier: MIT
"""The compose file against the settings: it says nothing that the services do not take."""

import os
import re
import subprocess

import pytest
import yaml

from docs import markdown, memory, sources

FOLDER = "contrib/docker"


@pytest.fixture(scope="module")
def service():
    """The one service of the file."""
    services = yaml.safe_load(markdown.read(f"{FOLDER}/compose.yaml"))["services"]
    assert list(services) == ["vivarium"]
    return services["vivarium"]


@pytest.mark.parametrize("program", ["vivarium-fcgi", "vivarium-executor"])
def test_variables_are_settings(service, program):
    keys = {f"VIVARIUM_{each.key.upper()}" for each in sources.settings()}
    assert set(service["environment"]) <= keys
    done = subprocess.run([sources.program(program), "-f", os.devnull, "-t",
                           "--executor_client=root"], env=service["environment"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_limit_of_memory_holds_the_sum(service):
    volumes = [re.search(r"size=(\w+)", each)[1] for each in service["tmpfs"]]
    most = memory.Most(service["environment"], [*volumes, service["shm_size"]])
    assert most.total() <= memory.size(service["mem_limit"])


def test_the_limit_of_processes_holds_all_threads(service):
    defaults = {each.key: each.default for each in sources.settings()}
    sandboxes = int(service["environment"]["VIVARIUM_MAX_SESSIONS"]) + int(defaults["pool_size"])
    assert sandboxes * (2 + int(defaults["session_threads"])) + int(defaults["threads"]) \
        < service["pids_limit"]


def test_the_port_is_open_to_this_machine_alone(service):
    port = re.search(r"server\.port = (\d+)", markdown.read("www-conf/lighttpd.conf.in"))[1]
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_the_profile_is_there(service):
    named = [each.partition("=")[2] for each in service["security_opt"]
             if each.startswith("seccomp=")]
    assert len(named) == 1 and (markdown.ROOT / FOLDER / named[0]).is_file()
