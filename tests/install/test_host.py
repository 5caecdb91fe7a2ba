# SPDX-License-Identifier: MIT
"""A host from make install to make uninstall, its services under systemd. In this order."""

import os
import pathlib
import re
import signal
import socket
import time

import pytest

from support import processes
from support.client import Client, exec_target, fresh_id
from support.together import eventually, in_background

EXECUTOR, FCGI, LIGHTTPD = "vivarium-executor", "vivarium-fcgi", "vivarium-lighttpd"
SERVICES = (EXECUTOR, FCGI, LIGHTTPD)
CAPABILITIES = 9  # of the executor's bounding set
# what systemd itself writes, and what the operator removes
OF_SYSTEMD = ("/var/log/", "/var/lib/systemd/", "/etc/mtab")
OF_USERS = ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/.pwd.lock")


@pytest.fixture(scope="module")
def served(host):
    """The host, which serves."""
    host.run("systemctl", "start", *SERVICES)
    eventually(healthy)  # nobody tells systemd when lighttpd listens
    return host


@pytest.fixture
def client():
    """A client of Vivarium's own web server."""
    return Client(3080)


def drop_in(host, unit, text):
    """Change a unit as an operator does; it is started again by the caller."""
    host.write(f"/etc/systemd/system/{unit}.service.d/test.conf", text)
    host.run("systemctl", "daemon-reload")


def without_drop_in(host, unit):
    """Take that back."""
    host.run("rm", "-r", f"/etc/systemd/system/{unit}.service.d")
    host.run("systemctl", "daemon-reload")


def restarts(host, unit):
    """How often systemd has started a service again by itself."""
    return int(host.unit(unit, "NRestarts")["NRestarts"])


def healthy():
    """True when the whole chain answers."""
    try:
        return Client(3080).health().status == 200
    except OSError:
        return False


# the host

def test_systemd_finds_nothing_wrong_with_the_units(host):
    units = [f"{name}.service" for name in SERVICES]
    done = host.run("systemd-analyze", "verify", "--man=no", *units)
    assert done.stderr == "" and done.stdout == ""


def test_the_user_has_no_group_but_its_own(host):
    assert host.output("id", "--name", "--groups", "vivarium") == "vivarium"
    assert "vivarium" not in host.output("id", "--name", "--groups", "www-data").split()


@pytest.mark.parametrize("path, state", [
    ("/run/vivarium", "755 root:root"),
    ("/run/vivarium/web", "2750 vivarium:www-data"),
    ("/run/vivarium/upload", "700 www-data:www-data"),
])
def test_the_folders(host, path, state):
    assert host.output("stat", "--format=%a %U:%G", path) == state


def test_nothing_is_started_by_an_installation(host):
    assert host.run("systemctl", "is-active", *SERVICES, check=False).stdout.split() \
        == ["inactive"] * 3


# under systemd

def test_the_services_are_ready_when_systemd_says_so(served, client):
    assert served.output("systemctl", "is-active", *SERVICES).split() == ["active"] * 3
    tier = client.health().json["isolation"]["tier"]
    assert served.unit(EXECUTOR, "StatusText")["StatusText"] == f"isolation: {tier}"
    assert tier in ("isolated", "full")


@pytest.mark.parametrize("unit, user", [
    (EXECUTOR, "root"), (FCGI, "vivarium"), (LIGHTTPD, "www-data")])
def test_their_users_and_capabilities(served, unit, user):
    inside = served.unit(unit, "MainPID")["MainPID"]
    assert served.output("stat", "--format=%U", f"/proc/{inside}") == user
    status = processes.Process(served.main_process(unit)).status
    keeper = unit == EXECUTOR
    assert int(status("CapEff"), 16) == (1 << 5 if keeper else 0)  # CAP_KILL
    assert bin(int(status("CapBnd"), 16)).count("1") == (CAPABILITIES if keeper else 0)
    assert status("NoNewPrivs") == "1" and status("Seccomp") == "2"


def test_only_the_web_server_is_in_the_network(served):
    def network(pid):
        return os.readlink(f"/proc/{pid}/ns/net")

    assert network(served.main_process(LIGHTTPD)) == network(served.pid)
    assert network(served.main_process(FCGI)) != network(served.pid)
    assert network(served.main_process(EXECUTOR)) != network(served.pid)


def test_who_may_open_the_sockets(served):
    socket = "/run/vivarium/web/fcgi.sock"
    assert served.output("stat", "--format=%a %U:%G", socket) == "660 vivarium:www-data"
    # 600 and not root's: that of the user that may ask
    assert served.output("stat", "--format=%a", "/run/vivarium/executor.sock") == "600"
    refused = served.run("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups",
                         "test", "-w", socket, check=False)
    assert refused.returncode == 1


def test_code_and_files(served, client):
    session = client.session(fresh_id())
    answer = session.exec("import numpy, pandas\nopen('out.txt', 'w').write(open('in.txt').read())"
                          "\nint(numpy.arange(4).sum())", files={"in.txt": b"there and back"})
    assert answer.value == 6
    assert answer.files == {"out.txt": b"there and back"}
    # a large body goes by way of the web server's folder
    large = os.urandom(3 << 20)
    assert session.exec("len(open('large', 'rb').read())", files={"large": large}).value == 3 << 20


def test_bodies_that_are_not_whole_fill_no_memory_of_the_host(served, client):
    folder = "/run/vivarium/upload"
    own = pathlib.Path(f"/proc/{served.main_process(LIGHTTPD)}/root{folder}")
    with client.connect() as connection:
        connection.sendall(
            f"POST {exec_target(fresh_id())} HTTP/1.1\r\nHost: x\r\n"
            f"Content-Type: application/json\r\nContent-Length: {2 << 20}\r\n\r\n".encode()
            + bytes(1 << 20))
        eventually(lambda: any(own.iterdir()))
        assert list(served.path(folder).iterdir()) == []
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    room = os.statvfs(own)
    assert room.f_blocks * room.f_frsize < memory / 9


def test_errors_are_json(served, client):
    assert client.get("/nowhere").error_type == "not_found"
    assert client.get("/exec?sessionId=a").status == 405
    assert client.post("/exec?sessionId=a", b"no json").error_type == "validation"
    served.run("systemctl", "stop", FCGI)
    answer = client.health()
    assert answer.status == 503 and answer.error_type == "system"
    served.run("systemctl", "start", FCGI)
    eventually(healthy)


# what ends is started again

def test_an_upgrade_of_the_application_loses_no_session(served, client):
    session = client.session(fresh_id())
    session.value("kept = 5; kept")
    program = re.search(r"path=(\S+)", served.unit(FCGI, "ExecStart")["ExecStart"])[1]
    before = os.stat(f"/proc/{served.main_process(FCGI)}/exe").st_ino
    served.run("sh", "-c", f"cp -p {program} {program}.new && mv {program}.new {program}")
    served.run("systemctl", "restart", FCGI)
    assert os.stat(f"/proc/{served.main_process(FCGI)}/exe").st_ino != before
    eventually(healthy)
    answer = session.exec("kept")
    assert answer.value == 5 and answer.lost == "none"


def test_calls_wait_for_an_application_that_starts_again(served, client):
    """systemd has its listening socket, and lighttpd does not notice."""
    session = client.session(fresh_id())
    session.value("kept = 7; kept")
    for _ in range(3):
        before = restarts(served, FCGI)
        os.kill(served.main_process(FCGI), signal.SIGKILL)
        assert session.value("kept") == 7
        assert restarts(served, FCGI) == before + 1
    restart = in_background(lambda: served.run("systemctl", "restart", FCGI))
    for _ in range(4):  # by default ten in a minute are not too many
        time.sleep(0.05)
        answer = session.exec("kept")
        # one that still comes to the old one is refused
        assert answer.status == 503 and int(answer.headers["Retry-After"]) >= 1 \
            or answer.value == 7
    restart.result()
    assert session.value("kept") == 7


@pytest.mark.parametrize("unit", [FCGI, LIGHTTPD, EXECUTOR])
def test_what_is_killed_is_started_again(served, client, unit):
    session = client.session(fresh_id())
    session.value("kept = 6; kept")
    before = restarts(served, unit)
    os.kill(served.main_process(unit), signal.SIGKILL)
    eventually(lambda: restarts(served, unit) == before + 1)
    eventually(healthy, within=120)
    if unit == EXECUTOR:
        assert session.exec("1").lost == "all"
    else:
        assert session.value("kept") == 6


@pytest.mark.parametrize("unit", [FCGI, EXECUTOR])
def test_what_does_not_work_is_started_again(served, unit):
    drop_in(served, unit, "[Service]\nWatchdogSec=5\n")
    served.run("systemctl", "restart", unit)
    before = restarts(served, unit)
    pid = served.main_process(unit)
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: restarts(served, unit) == before + 1, within=60)
    assert "Watchdog timeout" in served.journal(unit)
    assert processes.find(pid) is None
    without_drop_in(served, unit)
    served.run("systemctl", "restart", unit)
    eventually(healthy, within=120)


@pytest.mark.parametrize("unit", [FCGI, EXECUTOR])
def test_a_setting_that_is_refused_is_not_tried_again(served, unit):
    settings = served.path("/etc/vivarium/vivarium.conf")
    text = settings.read_text()
    settings.write_text("nothing = 1\n")
    try:
        served.run("systemctl", "restart", unit, check=False)
        state = served.unit(unit, "ActiveState", "ExecMainStatus", "NRestarts")
        assert state == {"ActiveState": "failed", "ExecMainStatus": "78", "NRestarts": "0"}
    finally:
        settings.write_text(text)
    served.run("systemctl", "start", unit)
    eventually(healthy, within=120)


# what a drop-in gives back

def test_a_tcp_address_to_listen_at(served):
    drop_in(served, FCGI, "[Service]\nPrivateNetwork=no\n"
            "RestrictAddressFamilies=AF_INET AF_INET6\n"
            "Environment=VIVARIUM_LISTEN=tcp:127.0.0.1:9000\n")
    served.run("systemctl", "restart", FCGI)
    with socket.create_connection(("127.0.0.1", 9000), 10):
        pass
    without_drop_in(served, FCGI)
    served.run("systemctl", "restart", FCGI)
    eventually(healthy)


# where there are no namespaces

def test_slots_in_the_folder_that_the_unit_gives(served, client):
    drop_in(served, EXECUTOR, "[Service]\nRestrictNamespaces=yes\nEnvironment=VIVARIUM_SLOTS=4\n"
            "Environment=VIVARIUM_POOL_SIZE=1\n")
    served.run("systemctl", "restart", EXECUTOR)
    eventually(healthy, within=120)
    assert client.health().json["isolation"]["tier"] == "confined"
    assert client.session(fresh_id()).value("import os; os.getcwd()") == "/home/earth"
    assert served.output("stat", "--format=%a %U", "/var/lib/vivarium") == "711 root"
    without_drop_in(served, EXECUTOR)
    served.run("systemctl", "restart", EXECUTOR)
    eventually(healthy, within=120)


# the end

def test_a_stop_ends_all(served, client):
    client.session(fresh_id()).value("1")
    members = processes.tree(served.pid)
    served.run("systemctl", "stop", *SERVICES)
    for unit in SERVICES:
        state = served.unit(unit, "ActiveState", "Result")
        assert state == {"ActiveState": "inactive", "Result": "success"}, unit
    left = [each for each in members
            if each.alive() and each.program().startswith(("vivarium", "lighttpd"))]
    assert left == []
    assert served.output("ls", "/run/vivarium", "/run/vivarium/web") \
        == "/run/vivarium:\nexecutor.sock.lock\nupload\nweb\n\n" \
        "/run/vivarium/web:\nfcgi.sock\nfcgi.sock.lock"  # the first is nobody's any more


def test_an_uninstalled_host_is_as_it_was(host, build, before):
    host.run("rm", "-r", "/run/vivarium", "/var/lib/vivarium")
    build.make("uninstall", f"DESTDIR={host.path('/')}")
    host.run("systemctl", "daemon-reload")

    def others(found):
        return {path: state for path, state in found.items()
                if not path.startswith(OF_SYSTEMD + OF_USERS)}

    assert others(host.written()) == others(before)
    host.run("userdel", "vivarium")
    assert "vivarium" not in host.path("/etc/passwd").read_text() \
        + host.path("/etc/group").read_text()
