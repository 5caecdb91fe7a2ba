# SPDX-License-Identifier: MIT
"""A host that has no descriptors or no processes to give: an error at once, then it goes on.

The limits of the kernel are lowered under the parts while they serve, and raised again.
"""

import contextlib
import pathlib
import re
import subprocess
import time

from support.client import fresh_id
from support.limits import without_descriptors, without_processes
from support.must import few_can, only_root_can
from support.processes import EXECUTOR, FCGI, WEB_SERVER, ZYGOTE, find
from support.together import at_once, eventually

# what waits for a sandbox that does not come gives up after 10 s
AT_ONCE = 8


def refusals(instance, count):
    """The answers to so many calls of new sessions, none of which ran."""
    began = time.monotonic()
    answers = [instance.client.exec("1", fresh_id()) for _ in range(count)]
    assert time.monotonic() - began < AT_ONCE
    assert {answer.status for answer in answers} == {503}
    assert {answer.error_type for answer in answers} <= {"system", "capacity"}
    assert all(int(answer.headers["Retry-After"]) >= 1 for answer in answers)
    return answers


def launcher_of(instance):
    """The process that starts sandboxes: the parent of the zygote."""
    return find(instance.part(ZYGOTE).parent)


def limited(process):
    """The process, if the kernel counts the processes of its user alone, and limits them."""
    only_root_can("give the parts users of their own")
    if process.status("Uid").split()[0] == "0":
        few_can("the limit spares root, as whom this part runs here")
    return process


def test_vivarium_fcgi_has_no_descriptors(short, lasting):
    with without_descriptors(short.part(FCGI)):
        refusals(short, 3)
        assert lasting.value("x + 1") == 42
        assert short.client.get("/sessions").status == 200
        answers = at_once([lambda: short.client.get("/sessions")] * 10)
        assert {answer.status for answer in answers} == {200}
    assert lasting.exec("x").lost == "none"
    assert "event=accept_failed" in short.messages()


def test_the_keeper_has_no_descriptors(short, lasting):
    keeper = short.parts(EXECUTOR)[0]
    with without_descriptors(keeper):
        for _ in range(3):
            assert short.client.exec("1", fresh_id()).success
        assert lasting.value("x + 1") == 42
        assert short.client.health().status == 200
    assert keeper.alive()


def test_the_launcher_has_no_descriptors(short, lasting):
    launcher = launcher_of(short)
    with without_descriptors(launcher):
        refusals(short, 3)
        assert lasting.value("x + 1") == 42
        eventually(lambda: short.client.health().status == 503)
    assert launcher.alive()
    assert lasting.exec("x").lost == "none"


def test_no_sandbox_can_be_made(short, lasting):
    launcher = limited(launcher_of(short))
    with without_processes(launcher):
        short.client.exec("1", fresh_id())  # takes the one that is ready
        refusals(short, 3)
        assert lasting.value("x + 1") == 42
    assert launcher.alive()


def test_no_worker_can_be_made(short, lasting):
    zygote = limited(short.part(ZYGOTE))
    with without_processes(zygote):
        short.client.exec("1", fresh_id())
        refusals(short, 3)
        assert lasting.value("x + 1") == 42
    assert zygote.alive()
    assert "event=worker_not_made" in short.messages()


def folders_for_bodies(instance):
    """Where the web server keeps bodies until they are whole, as its configuration says."""
    text = next(instance.scratch.glob(f"*/{WEB_SERVER}.conf")).read_text("utf-8")
    found = re.search(r"^ *(?:server.upload-dirs = \(|client_body_temp_path)([^;)]*)", text,
                      re.MULTILINE)[1]
    return [pathlib.Path(name.strip(' "')) for name in found.split(",")]


@contextlib.contextmanager
def full(folders):
    """Let there be little room in them."""
    with contextlib.ExitStack() as stack:
        for folder in folders:
            owner = folder.stat()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=700,"
                            f"uid={owner.st_uid},gid={owner.st_gid}", "none", folder], check=True)
            stack.callback(subprocess.run, ["umount", folder], check=True)
        yield


def test_the_web_server_has_no_room_for_a_body(short, lasting):
    only_root_can("mount something in place of a folder")
    large = {"large": bytes(4 << 20)}
    with full(folders_for_bodies(short)):
        answer = lasting.exec("x = 0", files=large)
        assert answer.status == (503 if WEB_SERVER == "lighttpd" else 500)
        assert answer.error_type == "system"
        assert lasting.value("x + 1") == 42  # which takes no room
    answer = lasting.exec("import os; [x, os.path.getsize('large')]", files=large)
    assert (answer.value, answer.lost) == ([41, 4 << 20], "none")
