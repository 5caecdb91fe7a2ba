# SPDX-License-Identifier: MIT
"""The tables of the pages are those of the code: errors, system calls, events, reasons, times."""

import json
import re

import pytest

from docs import markdown, sources, system_calls

API, SECURITY, OPERATIONS = "docs/api.md", "docs/security.md", "docs/operations.md"
LOG = "docs/logging.md"


# Errors

def error_cells():
    """The rows of the table of errors."""
    text = markdown.section(markdown.read(API), "Errors that are not the code's")
    return [cells for cells in markdown.rows(text) if len(cells) == 5]


def test_every_error_type_and_status():
    shown = {(markdown.names(cells[0])[0], int(cells[1])) for cells in error_cells()}
    assert shown == {(kind, status) for kind, status, _ in sources.error_rows()}


def test_retry_after():
    for kind, status, seconds in sources.error_rows():
        found = [cells[2] for cells in error_cells()
                 if markdown.names(cells[0]) == [kind] and int(cells[1]) == status]
        if kind != "rate_limit":  # it says when a call is allowed
            assert found == [str(seconds) if seconds else "-"], (kind, status)


def test_the_types_of_failed_executions():
    text = markdown.section(markdown.read(API), "When it did not")
    shown = {name for cells in markdown.rows(text) for name in markdown.names(cells[0])}
    assert shown == {*sources.execution_types(), "resource_limit", "interrupted"}


def test_both_sides_keep_the_same_types():
    kinds = {kind for kind, _, _ in sources.error_rows()} | set(sources.execution_types())
    assert sources.service_types() == kinds


def test_the_web_servers_own_errors():
    text = markdown.section(markdown.read(API), "What the web server answers by itself")
    shown = {status: markdown.names(cells[1])[0] for cells in markdown.rows(text)
             for status in re.findall(r"\d+", cells[0])}
    documents = (markdown.ROOT / "www-conf/errors").glob("*.html")
    assert shown == {path.stem: re.search(r'"type": "(\w+)"', path.read_text())[1]
                     for path in documents}


def test_why_files_are_left_out():
    text = markdown.section(markdown.read(API), "output_files")
    shown = {markdown.names(cells[0])[0] for cells in markdown.rows(text)}
    words = sources.listing("fcgi-app/call_result.c", "words")
    no_room = re.search(r'CALL_NO_ROOM +"(\w+)"', markdown.read("fcgi-app/call_result.h"))[1]
    assert shown == {*re.findall(r'"(\w+)"', words), no_room} - {"included"}


def test_the_members_of_isolation():
    text = markdown.section(markdown.read(API), "GET /health")
    shown = {markdown.names(cells[0])[0] for cells in markdown.rows(text)}
    function = markdown.read("fcgi-app/routes.c").split("void write_isolation(")[1]
    written = set(re.findall(r'\\"(\w+)\\":', function.split("\n}\n")[0]))
    assert shown == written
    example = next(block for _, block in markdown.blocks(text) if "isolation" in block)
    assert set(json.loads(example)["isolation"]) == written - {"slots"}


def test_the_members_of_a_check():
    text = markdown.section(markdown.read(OPERATIONS), "What the host allows")
    shown = {name for cells in markdown.rows(text) for name in markdown.names(cells[0])}
    written = set(re.findall(r'\\"(\w+)\\":',
                             markdown.read("executor/launcher/check.c").split("void check_")[-1]))
    assert shown == written


def test_the_exit_statuses_of_a_check():
    text = markdown.section(markdown.read(OPERATIONS), "What the host allows")
    shown = {markdown.names(cells[1])[0]: int(cells[0]) for cells in markdown.rows(text)
             if cells[0].isdigit()}
    header = markdown.read("executor/isolation.h")
    names = re.findall(r"^    ISOLATION_(\w+)", header, re.MULTILINE)
    statuses = {name.lower(): status for status, name in enumerate(reversed(names))}
    assert shown == statuses | {"min_isolation": len(names)}


# System calls

def test_the_allowed_system_calls():
    shown = system_calls.allowed() + system_calls.allowed_with_arguments()
    assert len(shown) == len(set(shown))
    assert set(shown) == sources.allowed_calls(sources.WORKER_FILTER)
    assert len(shown) > 140


def test_which_calls_are_allowed_with_certain_arguments_only():
    unchecked = {"recvfrom", "shutdown", "getsockname", "getpeername", "getsockopt"}
    signals = {"kill", "tgkill"}  # looked at in front of the list
    shown = set(system_calls.allowed_with_arguments())
    assert shown - unchecked - signals \
        == sources.checked_calls(sources.WORKER_FILTER) - {"utimensat"}


def test_the_arguments_of_fcntl_and_ioctl():
    shown = {cells[0]: set(cells[1].split(", "))
             for cells in system_calls.table("Allowed with certain arguments")}
    assert shown["fcntl"] == sources.names_in(sources.WORKER_FILTER, "fcntl_commands")
    assert shown["ioctl"] == sources.names_in(sources.WORKER_FILTER, "ioctl_commands")


def test_the_system_calls_refused_with_an_error_of_their_own():
    shown = system_calls.refused_with_an_error()
    newest = sources.constant("executor/seccomp/preface.h", r"NEWEST_REVIEWED_CALL (\d+)")
    for word in f"numbers above {newest}".split():
        assert shown.pop(word) == "ENOSYS"
    assert shown == sources.refused_calls()


def test_the_system_calls_refused_by_path():
    assert sorted(system_calls.refused_by_path()) \
        == sorted(sources.calls_in(sources.WORKER_FILTER, "path_modes"))


def test_the_system_calls_refused_without_namespaces():
    shown = system_calls.refused_without_namespaces()
    assert shown == sources.refused_to_take_disk()
    assert sorted(shown) == sorted(sources.calls_in(sources.WORKER_FILTER, "taking_disk"))


def test_no_call_is_said_to_be_refused_that_is_allowed():
    tail = system_calls.section().split("Every other call fails with EPERM")[1]
    named = re.split(r",\s+|\s+and\s+", tail.split("Among them are")[1].split(".")[0].strip())
    assert len(named) > 15
    assert not set(named) & sources.allowed_calls(sources.WORKER_FILTER)


def test_the_system_calls_of_the_supervisor():
    shown = system_calls.of_the_supervisor()
    checked = {name for name, arguments in shown.items() if arguments}
    assert set(shown) == sources.allowed_calls(sources.SUPERVISOR_FILTER)
    assert checked == sources.checked_calls(sources.SUPERVISOR_FILTER)
    for name, array in (("fcntl", "fcntl_commands"), ("ioctl", "ioctl_commands")):
        assert set(shown[name].split(", ")) == sources.names_in(sources.SUPERVISOR_FILTER, array)


# Tiers

def test_the_tiers():
    names = re.findall(r'\] = "(\w+)"', sources.listing("executor/isolation.c", "names"))
    tables = [markdown.section(markdown.read(SECURITY), heading)
              for heading in ("The tiers", "How to get each")]
    firsts = [[markdown.names(cells[0])[0] for cells in markdown.rows(text)
               if re.fullmatch(r"`\w+`", cells[0])] for text in tables]
    assert firsts == [names[::-1] * 2, names[::-1]]  # the first section has the second one in it
    assert set(markdown.names(markdown.section(markdown.read(API), "GET /health"))) >= set(names)


def test_the_capabilities_that_a_container_needs():
    needed = re.findall(r'\{CAP_(\w+),', sources.listing(
        "executor/launcher/probe_confinement.c", "needed"))
    text = markdown.section(markdown.read(SECURITY), "How to get each")
    shown = re.search(r"`--cap-add` ([A-Z_, ]+)\.", text)[1].split(", ")
    assert sorted(shown) == sorted([*needed, "MKNOD"])
    said = "".join(re.findall(r'"(.*)"', markdown.read("executor/launcher/probe.c")))
    assert re.search(r"--cap-add for ([A-Z]+[A-Z_, ]*)", said)[1].split(", ") == shown


# The log

def test_the_events_of_the_log():
    text = markdown.section(markdown.read(LOG), "Events")
    shown = [name for cells in markdown.rows(text) if len(cells) == 3
             for name in markdown.names(cells[0])]
    assert sorted(shown) == sorted(sources.events() - {"request"})


def test_the_fields_of_a_request():
    text = markdown.section(markdown.read(LOG), "Requests")
    shown = {name.split("=")[0] for cells in markdown.rows(text) if len(cells) == 2
             for name in markdown.names(cells[0])}
    function = markdown.read("fcgi-app/exchange.c").split("void exchange_log(")[1]
    assert shown == set(re.findall(r"(\w+)=(?:%|1|\")", function))


# Times

def test_the_ladder_of_time_outs():
    lines = markdown.rows(markdown.section(markdown.read(OPERATIONS), "Time-outs"))
    shown = [int(cells[0]) for cells in lines]
    keys = ("max_queue_wait", "max_exec_timeout", "interrupt_grace")
    defaults = {setting.key: int(setting.default.removesuffix("s"))
                for setting in sources.settings() if setting.key in keys}
    steps = [
        defaults["max_queue_wait"],
        sources.constant("fcgi-app/executor_client.h", r"EXECUTOR_ACQUIRE_MS (\d+)") // 1000,
        sources.constant("fcgi-app/sandbox_call.h", r"#define SANDBOX_SEND_MS +(\d+)") // 1000,
        defaults["max_exec_timeout"],
        defaults["interrupt_grace"],
        sources.constant("fcgi-app/sandbox_call.h", r"#define SANDBOX_COLLECT_MS +(\d+)") // 1000,
    ]
    rules = "www-conf/lighttpd-location.conf"
    outside = [sources.constant(rules, r'"read-timeout" +=> (\d+)'),
               sources.constant(rules, r"max-write-idle = (\d+)")]
    assert shown == [*steps, sum(steps), *outside]
    assert shown[-3:] == sorted(set(shown[-3:]))


def seconds(key):
    """The default of a setting in seconds."""
    return int({each.key: each.default for each in sources.settings()}[key].removesuffix("s"))


def test_what_stands_around_a_call():
    lines = markdown.rows(markdown.section(markdown.read(OPERATIONS), "Time-outs"))
    total = next(int(cells[0]) for cells in lines if cells[1] == "the sum")
    text = " ".join(markdown.read(OPERATIONS).split())
    assert f"what stands around it, {total - seconds('max_exec_timeout')} s here" in text
    assert f"running calls have `stop_timeout`, {seconds('stop_timeout')} s" in text
    proxy = re.search(r'"read-timeout" => (\d+)',
                      markdown.section(markdown.read("docs/web-servers.md"), "As a proxy"))[1]
    assert f"wait {proxy} s. Clients" in text and int(proxy) > total


def test_the_most_memory_that_there_can_be():
    defaults = {each.key: each.default for each in sources.settings()}
    mib = {"M": 1, "G": 1024}
    size = {key: int(defaults[key][:-1]) * mib[defaults[key][-1]]
            for key in ("session_memory", "checkpoint_memory", "session_disk")}
    session = (size["session_memory"] + size["checkpoint_memory"]
               + size["session_disk"] * 5 // 4 + 6)
    text = markdown.section(markdown.read(OPERATIONS), "Sizing")
    assert f"is {defaults['max_sessions']} x {session:,} MiB and more" in text


# Numbers in sentences: where the code has them, and the sentence with a place for each

NUMBERS = [
    (API, "1 to {} bytes of UTF-8", [("fcgi-app/session_id.h", r"SESSION_ID_MAX (\d+)")]),
    (API, "nested deeper than {}, of more than {} tokens",
     [("fcgi-app/body_scan.h", r"BODY_DEPTH_MAX +(\d+)"),
      ("fcgi-app/body_scan.h", r"BODY_TOKENS_MAX +(\d+)")]),
    (API, "1 to {} components divided by `/`, each of 1 to {} bytes",
     [("common/filename.h", r"FILENAME_DEPTH_MAX +(\d+)"),
      ("common/filename.h", r"FILENAME_COMPONENT_MAX (\d+)")]),
    (API, "At most {} are told", [("fcgi-app/validation.h", r"VALIDATION_DETAILS_MAX (\d+)")]),
    (API, "more than {} of these", [("common/session_wire.h", r"SESSION_LEFT_OUT_MAX (\d+)")]),
    (API, "is a folder below {} others",
     [("executor/supervisor/home_walk.h", r"HOME_DEPTH_MAX (\d+)")]),
    (API, "nesting deeper than {}", [("executor/runner_value.py", r"MAX_DEPTH = (\d+)")]),
    (API, "a line of code {} characters", [("executor/runner_source.py", r"MAX_LINE = (\d+)")]),
    (API, "the innermost {} frames", [("executor/runner_error.py", r"MAX_FRAMES = (\d+)")]),
    (API, "more than {} open files", [("executor/confine.c", r"OPEN_FILES +(\d+)")]),
    (SECURITY, "| RLIMIT_NOFILE | {} |", [("executor/confine.c", r"OPEN_FILES +(\d+)")]),
    (SECURITY, "| RLIMIT_SIGPENDING | {} |", [("executor/confine.c", r"PENDING_SIGNALS +(\d+)")]),
    (SECURITY, "`session_threads` and {},",
     [("executor/launcher/zygote_process.c", r"RESERVED_THREADS[\s\\]+(\d+)")]),
    (SECURITY, "a quarter of `session_disk`, {} inodes",
     [("executor/supervisor/session_folders.c", r"TMP_INODES (\d+)")]),
    (SECURITY, "1 MiB, {} inodes",
     [("executor/supervisor/session_folders.c", r"SHM_INODES (\d+)")]),
    (SECURITY, "5/4 of `session_disk` and {} MiB",
     [("executor/launcher/cgroups_sandbox.c", r"MEMORY_EXTRA +\(?UINT64_C\((\d+)\) << 20")]),
    (SECURITY, "`session_threads` and {} |",
     [("executor/launcher/cgroups_sandbox.c", r"PROCESSES_EXTRA +(\d+)")]),
    (SECURITY, "`cpu.weight` {}",
     [("executor/launcher/cgroups_sandbox.c", r'"cpu.weight", "(\d+)"')]),
    (SECURITY, "`oom_score_adj` {}", [("executor/oom_score.h", r"OOM_SCORE_OF_SESSIONS (\d+)")]),
    (SECURITY, "a name of {} random bytes",
     [("executor/launcher/slot_folders.c", r"RANDOM_BYTES +(\d+)")]),
    (OPERATIONS, "first of the {} user ids",
     [("executor/launcher/user_namespace.h", r"OUTER_IDS +(\d+)")]),
]


@pytest.mark.parametrize("page, sentence, places", NUMBERS, ids=[each[1] for each in NUMBERS])
def test_numbers_in_sentences(page, sentence, places):
    values = [f"{sources.constant(path, pattern):,}" for path, pattern in places]
    assert sentence.format(*values) in " ".join(markdown.read(page).split())
