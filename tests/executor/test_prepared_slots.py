# SPDX-License-Identifier: MIT
"""Trees of slots made ahead of the first start, as for an image."""

import os
import pathlib
import stat
import subprocess
import tempfile

import pytest

from support.must import only_root_can
from support.tiers import NOBODY, Tier, build_file

SLOTS, BASE = 2, 1 << 29


def prepare(folder, *flags):
    """Run it to its end."""
    return subprocess.run(
        [build_file("vivarium-executor"), "-f", "/dev/null", "--prepare-slots", *flags,
         f"--slot_directory={folder}", f"--slots={SLOTS}", f"--slot_uid_base={BASE}"],
        capture_output=True, text=True, check=False, timeout=120)


def identities(folder):
    """What each tree, and a file in it, is to the file system."""
    found = {}
    for tree in folder.iterdir():
        for path in (tree, tree / "etc", tree / "etc/passwd", tree / "usr/lib"):
            if path.exists():
                found[path] = path.stat().st_ino
    return found


@pytest.fixture
def folder():
    """Where slots may be made."""
    only_root_can("make the trees of slots")
    path = tempfile.mkdtemp(prefix="viv-", dir=Tier("confined").folder_of_scratch(SLOTS))
    yield pathlib.Path(path)
    subprocess.run(["rm", "-rf", path], check=True)


def test_they_are_whole_and_have_nothing_that_an_image_cannot(folder):
    slots = folder / "slots"
    done = prepare(slots)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(os.listdir(slots)) == ["0", "1", "base", "made-for", "zygote"]
    assert stat.S_IMODE(slots.stat().st_mode) == 0o700
    for number, user in {"0": 2, "1": 4, "zygote": 0}.items():
        passwd = (slots / number / "etc/passwd").read_text()
        assert passwd == f"earth:x:{BASE + user}:{BASE + user}::/home/earth:/nonexistent\n"
        assert (slots / number / "usr/lib/python3/dist-packages/numpy/__init__.py").is_file()
    for place, folders, files in os.walk(slots):
        for name in folders + files:
            status = os.lstat(os.path.join(place, name))
            assert (status.st_uid, status.st_gid) == (0, 0)
            assert stat.S_IFMT(status.st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)


@pytest.mark.parametrize("owner, mode", [(NOBODY, 0o700), (0, 0o770), (0, 0o707)])
def test_a_folder_that_others_can_write_to_is_refused(folder, owner, mode):
    slots = folder / "slots"
    slots.mkdir()
    slots.chmod(mode)
    os.chown(slots, owner, owner)
    done = prepare(slots)
    assert done.returncode == 1 and f"{slots} must belong to the user 0 alone" in done.stderr
    assert os.listdir(slots) == []


def test_a_link_leads_to_no_other_folder(folder):
    other, slots = folder / "other", folder / "slots"
    other.mkdir(mode=0o755)
    slots.symlink_to(other)
    os.chown(slots, NOBODY, NOBODY, follow_symlinks=False)
    done = prepare(slots)
    assert done.returncode == 1 and f"slot_directory: open {slots}: " in done.stderr
    assert stat.S_IMODE(other.stat().st_mode) == 0o755 and os.listdir(other) == []


def test_a_start_takes_them_as_they_are(folder, start):
    assert prepare(folder / "slots").returncode == 0
    before = identities(folder / "slots")
    executor = start(tier="confined", slots=SLOTS, pool_size=0, slot_uid_base=BASE,
                     slot_directory=folder / "slots")
    sandbox = executor.acquire()
    assert sandbox.call("open('/dev/zero', 'rb').read(1)[0]").value == "0"
    assert identities(folder / "slots") == before
    refused = prepare(folder / "slots")
    assert refused.returncode == 1 and "another executor uses it" in refused.stderr
    sandbox.end()


def test_with_a_check_it_means_nothing():
    done = prepare("/nonexistent", "--check")
    assert done.returncode == 78 and "--prepare-slots" in done.stderr


def test_only_root_does_it(tmp_path):
    only_root_can("become an ordinary user")
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
         build_file("vivarium-executor"), "-f", "/dev/null", "--prepare-slots",
         f"--slot_directory={tmp_path}/slots"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "only root" in done.stderr
