# SPDX-License-Identifier: MIT
"""What the scripts that start everything say to their user, before anything has started."""

import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import tempfile

import pytest

from support.must import only_root_can
from support.program import program

CONTRIB = pathlib.Path(__file__).resolve().parents[2] / "contrib"


def run(script, *arguments, **more):
    """Run a script to its end; its standard output goes with its standard error."""
    return subprocess.run([script, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, **more)


@pytest.mark.parametrize("port", ["65536", "99999", "-1", "+1", "1.0", "", "x", "9" * 5000])
def test_a_port_that_is_none(port):
    done = run(CONTRIB / "dev-server", f"--port={port}")
    assert done.returncode == 2
    assert done.stdout.endswith(f": {port}: a number from 0 to 65535 is expected\n")


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(CONTRIB / "dev-server", "--port", str(port))
    assert (done.returncode, done.stdout) == (
        1, f"dev-server: cannot listen on 127.0.0.1 port {port}: Address already in use; "
        "--port N for another one\n")


@pytest.fixture
def tree(tmp_path):
    """Sources with the real quickstart; what it calls writes down how and does nothing."""
    (tmp_path / "contrib").mkdir()
    shutil.copy(CONTRIB / "quickstart", tmp_path / "contrib")
    shutil.copytree(CONTRIB / "lib", tmp_path / "contrib/lib")
    for name in ("bin/dpkg-query", "bin/apt-get", "bin/sudo", "bin/make", "configure",
                 "contrib/dev-server"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        answer = "echo installed" if name == "bin/dpkg-query" else ":"
        said = f'echo "{path.name} in $PWD: $@" >>{tmp_path}/calls'
        path.write_text(f'#!/bin/sh\n{said}\n{answer}\n')
        path.chmod(0o755)
    return tmp_path


def quickstart(tree, *arguments):
    """Run quickstart in such sources: its result, and the calls, without questions to dpkg."""
    environment = {**os.environ, "PATH": f"{tree}/bin:{os.environ['PATH']}"}
    done = run(tree / "contrib/quickstart", *arguments, env=environment, cwd="/")
    calls = tree / "calls"
    lines = calls.read_text().splitlines() if calls.exists() else []
    return done, [line for line in lines if not line.startswith("dpkg-query ")]


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_quickstart_answers_before_it_does_anything(tree, flag):
    done, calls = quickstart(tree, "--port", "1", flag)
    assert done.returncode == 0 and "--port N" in done.stdout
    assert calls == [] and not (tree / "calls").exists() and not (tree / "build").exists()


@pytest.mark.parametrize("words", [
    ["--port"], ["--port", "http"], ["--port=80x"], ["--port", ""], ["--bind="], ["--nonsense"],
    ["run"], ["--max_files=3", "--max_code"], ["-p", "1"]], ids=" ".join)
def test_quickstart_refuses_options_before_it_does_anything(tree, words):
    done, calls = quickstart(tree, *words)
    assert done.returncode == 2 and done.stdout.startswith("quickstart: ")
    assert calls == [] and not (tree / "calls").exists() and not (tree / "build").exists()


def test_quickstart_builds_beside_the_sources(tree):
    done, calls = quickstart(tree, "--port", "0", "--max_files=3")
    assert done.returncode == 0, done.stdout
    assert [call.split(": ")[0] for call in calls] == [
        f"configure in {tree}/build", f"make in {tree}/build", f"dev-server in {tree}/build"]
    assert calls[-1].endswith(f": --build {tree}/build --port 3080 --port 0 --max_files=3")


def test_quickstart_takes_sources_that_are_configured_in_place(tree):
    (tree / "config.status").touch()
    (tree / "Makefile").touch()
    done, calls = quickstart(tree)
    assert done.returncode == 0, done.stdout
    assert [call.split(": ")[0] for call in calls] == [f"make in {tree}", f"dev-server in {tree}"]
    assert calls[-1].endswith(f": --build {tree} --port 3080")


LITTER = program("""
    import os, sys
    from lib.processes import Identity, Part
    part = Part(["/bin/true"], Identity("www-data"), litter=sys.argv[1:])
    part.start()
    os.waitpid(part.pid, 0)
""")


def test_what_a_part_has_left_is_removed_with_its_own_rights():
    only_root_can("start a part as another user")
    with tempfile.TemporaryDirectory() as folder:
        others, own = pathlib.Path(folder, "others"), pathlib.Path(folder, "own")
        (own / "left-folder").mkdir(parents=True)
        (own / "left-file").touch()
        (own / "link").symlink_to(others)
        others.mkdir()
        (others / "kept").touch()
        os.chmod(folder, 0o755)
        user = pwd.getpwnam("www-data")
        for path in (own, *own.iterdir()):
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
        done = run("/usr/bin/python3", "-Bc", LITTER, own / "left-*", own / "link/*",
                   env={**os.environ, "PYTHONPATH": str(CONTRIB)})
        assert done.returncode == 0 and done.stdout.count("event=litter part=true ") == 2
        assert [path.name for path in (*own.glob("left-*"), *others.iterdir())] == [
            "left-folder", "kept"]
