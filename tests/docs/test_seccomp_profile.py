# SPDX-License-Identifier: MIT
"""The seccomp profile for containers against the filters of sessions, and what is said of it."""

import json
import re
import socket
import termios

import pytest

from docs import markdown, system_calls

PATH = "contrib/docker/seccomp.json"
PAGE = "contrib/docker/README.md"


def groups():
    """The groups of calls in the profile."""
    return json.loads(markdown.read(PATH))["syscalls"]


def allowed():
    """The names of the calls that it allows, some with certain arguments only."""
    return [name for group in groups() if group["action"] == "SCMP_ACT_ALLOW"
            for name in group["names"]]


def permits(call, *arguments):
    """Whether it allows a call with these arguments."""
    def holds(index, value, op, valueTwo=None):
        given = arguments[index]
        return {"SCMP_CMP_EQ": given == value, "SCMP_CMP_LT": given < value,
                "SCMP_CMP_MASKED_EQ": given & value == valueTwo}[op]

    return any(call in group["names"] and group["action"] == "SCMP_ACT_ALLOW"
               and all(holds(**one) for one in group.get("args", [])) for group in groups())


def test_it_has_what_every_runtime_reads_and_nothing_more():
    profile = json.loads(markdown.read(PATH))
    assert set(profile) == {"defaultAction", "defaultErrnoRet", "syscalls"}
    assert (profile["defaultAction"], profile["defaultErrnoRet"]) == ("SCMP_ACT_ERRNO", 1)
    for group in groups():
        assert set(group) <= {"names", "action", "args", "errnoRet", "comment"}


def test_each_call_stands_in_one_place():
    names = [name for group in groups() if "args" not in group for name in group["names"]]
    assert len(names) == len(set(names))
    for group in groups():
        assert group["names"] == sorted(group["names"])


def test_what_a_session_may_call_the_container_may():
    # of certain arguments only clone's and socket's are looked at
    wanted = {*system_calls.allowed(), *system_calls.allowed_with_arguments(),
              *system_calls.of_the_supervisor()}
    assert len(wanted) > 100
    assert wanted - set(allowed()) == set()


@pytest.mark.parametrize("call", ["getsockopt", "setsockopt"])
def test_no_option_of_a_socket_leads_to_packet_filters(call):
    """Who makes a network namespace may do there what takes CAP_NET_ADMIN."""
    for level in (socket.IPPROTO_IP, socket.IPPROTO_IPV6):
        for option in (64, 96, 128, 200, 1152):  # iptables, arptables, ebtables, routes, IPVS
            assert not permits(call, 3, level, option)
    for level, option in ((socket.SOL_SOCKET, socket.SO_REUSEADDR),
                          (socket.IPPROTO_TCP, socket.TCP_NODELAY),
                          (socket.IPPROTO_IP, 11),  # IP_RECVERR, which libc sets to ask for a name
                          (socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)):
        assert permits(call, 3, level, option)
    assert not permits(call, 3, 255, 1)
    assert not permits("socket", socket.AF_NETLINK, socket.SOCK_RAW, 0)


def test_no_request_makes_or_changes_a_network_interface():
    for request in (0x8914, 0x8946, 0x8983, 0x89a0, 0x89f1, 1 << 32 | 0x89a0):
        assert not permits("ioctl", 3, request)
    for request in (termios.TIOCGWINSZ, termios.FIONREAD, termios.FIONBIO, termios.FIOCLEX,
                    0x5401):  # TCGETS
        assert permits("ioctl", 0, request)


def test_the_page_says_what_is_allowed_and_refused():
    text = markdown.section(markdown.read(PAGE), "The profile")
    more, less = (cells[1] for cells in markdown.rows(text)[-2:])
    last = next(group for group in groups() if "namespaces" in group.get("comment", "")
                and "mount" in group["names"])
    assert set(re.findall(r"\b[a-z_]+2?\b", more.replace(" with any flags", ""))) \
        == {*last["names"], "clone"}
    for name in ("ptrace", "process_vm_readv", "personality", "memfd_secret", "remap_file_pages",
                 "modify_ldt", "vmsplice", "tee"):
        assert name in less and name not in allowed()
    families = [group["args"] for group in groups() if group["names"] == ["socket"]]
    assert [one[0]["value"] for one in families] == [1, 2, 10]
    assert not {"io_uring_setup", "io_setup", "msgget", "mq_open", "open_by_handle_at", "bpf",
                "perf_event_open", "userfaultfd", "keyctl", "add_key"} & set(allowed())
