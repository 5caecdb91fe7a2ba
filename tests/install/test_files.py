# SPDX-License-Identifier: MIT
"""What make install writes, and make uninstall leaves, below another root."""

import os
import pathlib
import subprocess

import pytest

EDITED = "rate_limit = 0\n"


def listing(root):
    """All that is below a folder: path to mode."""
    return {str(path.relative_to(root)): oct(path.lstat().st_mode)
            for path in sorted(pathlib.Path(root).rglob("*"))}


def files(root):
    """The files below a folder, as paths of the root."""
    return {"/" + name for name in listing(root) if (root / name).is_file()}


@pytest.fixture
def root(tmp_path, build):
    """Where it is installed; what the builder keeps from others is nobody's affair there."""
    folder = tmp_path / "root"
    folder.mkdir()
    old = os.umask(0o022)
    build.make("install", f"DESTDIR={folder}")
    os.umask(old)
    return folder


def test_a_host_has_what_it_needs(root):
    found = files(root)
    assert {
        "/usr/sbin/vivarium-fcgi",
        "/usr/sbin/vivarium-executor",
        "/usr/libexec/vivarium/vivarium-zygote",
        "/usr/share/vivarium/lighttpd.conf",
        "/usr/share/vivarium/rules.conf",
        "/usr/share/vivarium/vivarium.conf",
        "/usr/share/man/man8/vivarium-fcgi.8",
        "/usr/share/man/man8/vivarium-executor.8",
        "/usr/share/man/man5/vivarium.conf.5",
        "/usr/lib/systemd/system/vivarium-executor.service",
        "/usr/lib/systemd/system/vivarium-fcgi.service",
        "/usr/lib/systemd/system/vivarium-lighttpd.service",
        "/usr/lib/sysusers.d/vivarium.conf",
        "/usr/lib/tmpfiles.d/vivarium.conf",
        "/etc/vivarium/vivarium.conf",
    } <= found
    assert all("vivarium" in name for name in found)


def test_nobody_but_its_owner_may_write(root):
    for name, mode in listing(root).items():
        assert int(mode, 8) & 0o6022 == 0, name
        assert int(mode, 8) & 0o444 == 0o444, name


def test_no_path_is_left_to_be_filled_in_or_of_the_scratch_root(root):
    for name in files(root):
        content = (root / name[1:]).read_bytes()
        assert str(root).encode() not in content, name
        if name.endswith((".conf", ".service", ".8", ".5")):
            assert not any(mark in content for mark in (b"@sbindir", b"@pkgdatadir", b"@LIGHTTPD"))


def test_uninstall_leaves_nothing(root, build):
    build.make("uninstall", f"DESTDIR={root}")
    assert listing(root) == {}


def test_uninstall_leaves_what_others_have(root, build):
    other = root / "usr/lib/tmpfiles.d/other.conf"
    other.write_text("")
    build.make("uninstall", f"DESTDIR={root}")
    assert files(root) == {"/usr/lib/tmpfiles.d/other.conf"}


def test_settings_that_were_changed_are_the_operators(root, build):
    settings = root / "etc/vivarium/vivarium.conf"
    settings.write_text(EDITED)
    build.make("install", f"DESTDIR={root}")
    assert settings.read_text() == EDITED
    assert "stays" in build.make("uninstall", f"DESTDIR={root}")
    assert files(root) == {"/etc/vivarium/vivarium.conf"}
    assert settings.read_text() == EDITED


# exposure by systemd-analyze security, times ten
@pytest.mark.parametrize("unit, most", [
    ("vivarium-fcgi", 10), ("vivarium-lighttpd", 16), ("vivarium-executor", 44)])
def test_what_systemd_says_of_their_exposure(root, unit, most):
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                           f"--threshold={most}", root / f"usr/lib/systemd/system/{unit}.service"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_user_and_the_folders(root):
    subprocess.run(["systemd-sysusers", f"--root={root}"], check=True, capture_output=True)
    fields = (root / "etc/passwd").read_text().splitlines()[0].split(":")
    assert fields[0] == "vivarium" and fields[6].endswith("nologin")
    assert 0 < int(fields[2]) < 1000  # a user of the system, not one of sandboxes
    groups = [line.split(":") for line in (root / "etc/group").read_text().splitlines()]
    assert [line[0] for line in groups] == ["vivarium"] and groups[0][3] == ""
