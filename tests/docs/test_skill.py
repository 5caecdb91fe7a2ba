# SPDX-License-Identifier: MIT
"""The skill for agents: its form, its limits and errors against the settings and the tables.

Its examples are run by tests/integration/test_skill.py, in every tier.
"""

import re

import pytest
import yaml

from docs import markdown, sources

PAGE = "contrib/skill/SKILL.md"
API = "docs/api.md"


@pytest.fixture(scope="module")
def page():
    """The text of the skill."""
    return markdown.read(PAGE)


def spelt(setting):
    """A default as the page has it: times of a call in ms where it says so, sizes as words."""
    number, unit = re.fullmatch(r"(\d+)([A-Za-z]*)", setting.default).groups()
    word = {"K": " KiB", "M": " MiB", "G": " GiB", "s": " s", "m": " minutes", "": ""}[unit]
    return f"{int(number):,}{word}"


def milliseconds(setting):
    """A default in seconds, as a request has it."""
    return str(int(setting.default.removesuffix("s")) * 1000)


def ladder():
    """Seconds that an answer may come after the deadline: all steps but the code's own."""
    keys = ("max_queue_wait", "interrupt_grace")
    waits = [int(setting.default.removesuffix("s")) for setting in sources.settings()
             if setting.key in keys]
    steps = [("fcgi-app/executor_client.h", r"EXECUTOR_ACQUIRE_MS (\d+)"),
             ("fcgi-app/sandbox_call.h", r"#define SANDBOX_SEND_MS +(\d+)"),
             ("fcgi-app/sandbox_call.h", r"#define SANDBOX_COLLECT_MS +(\d+)")]
    return sum(waits) + sum(sources.constant(*step) for step in steps) // 1000


# what stands in each row, with a place for each number
LIMITS = {
    "calls of a session": "{rate_limit} in any 60 seconds; `RateLimit-Remaining` in each answer "
                          "says how many are left",
    "calls that wait in a session": "{max_queued}, each at most {max_queue_wait}",
    "`timeout_ms`": "{exec_timeout_ms} if you name none, at most {max_exec_timeout_ms}",
    "grace after the interrupt": "{interrupt_grace}",
    "an answer after `timeout_ms`": "up to {ladder} s later, waiting included",
    "a session without a call": "ends after {session_idle_timeout}",
    "sessions": "{max_sessions} at a time; {slots} in a container without further rights",
    "session id": "1 to {id} bytes, no control characters",
    "`code`, `stdin`": "{max_code} each",
    "`files`": "{max_files}, each at most {max_file_size} before base64; names relative, without "
               "`..`, at most {depth} folders and name together",
    "`output_files`": "{max_output_files}, each at most {max_file_size}, {total} in all",
    "`std_out`, `std_err`": "{max_output} each, then cut; the code goes on",
    "`final_expression`": "{max_result} of JSON, then cut",
    "memory": "{session_memory} beyond the fresh interpreter, then MemoryError",
    "files in the session": "{session_disk} and {session_inodes} files and folders",
    "threads": "{session_threads}",
}


def test_the_front_matter_is_that_of_a_skill(page):
    _, head, body = page.split("---\n", 2)
    fields = yaml.safe_load(head)
    assert set(fields) == {"name", "description"}
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"]) and len(fields["name"]) <= 64
    assert 100 < len(fields["description"]) <= 1024
    assert body.lstrip().startswith("# ")


def test_every_limit_is_a_default(page):
    defaults = {setting.key: setting for setting in sources.settings()}
    values = {key: spelt(setting) for key, setting in defaults.items()
              if re.fullmatch(r"\d+[KMGsm]?", setting.default)}
    values |= {f"{key}_ms": milliseconds(defaults[key])
               for key in ("exec_timeout", "max_exec_timeout")}
    assert defaults["max_stdin"].default == defaults["max_code"].default
    values["total"] = f"{10 * int(defaults['max_file_size'].default.removesuffix('M'))} MiB"
    values["ladder"] = ladder()
    values["id"] = sources.constant("fcgi-app/session_id.h", r"SESSION_ID_MAX (\d+)")
    values["depth"] = sources.constant("common/filename.h", r"FILENAME_DEPTH_MAX +(\d+)")
    shown = dict(markdown.rows(markdown.section(page, "Limits")))
    assert shown == {name: text.format(**values) for name, text in LIMITS.items()}


def test_numbers_of_limits_stand_in_one_place(page):
    rest = page.replace(markdown.section(page, "Limits"), "").split("---\n", 2)[2]
    rest = re.sub(r"`[^`]*`", "", markdown.prose(rest))
    statuses = {str(status) for _, status, _ in sources.error_rows()} | {"200", "504"}
    assert set(re.findall(r"\b\d[\d,.]*\b", rest)) - statuses <= {"0", "8888", "3080"}


def test_every_error_is_there(page):
    lines = markdown.rows(markdown.section(page, "When code fails"))
    shown = {(name, int(status)) for cells in lines for name in markdown.names(cells[0])
             for status in re.findall(r"\d+", cells[1])}
    for kind, status, _ in sources.error_rows():
        assert any(name == kind and number == status for name, number in shown), (kind, status)
    for kind in sources.execution_types():
        assert (kind, 200) in shown
    assert all(cells[3] for cells in lines)


def members(text, head):
    """The members in the table whose head begins so."""
    table = text.split(f"| {head}", 1)[1].split("\n\n")[0]
    return {name for line in table.splitlines()[2:]
            for name in markdown.names(line.split("|")[1])}


def test_members_are_those_of_the_reference(page):
    request = markdown.section(markdown.read(API), "The request")
    assert members(page, "member of the request |") == members(request, "member |")
    ran = markdown.section(markdown.read(API), "When the code ran to its end")
    assert members(page, "member of `result` |") | {"success", "more_files_left_out"} \
        == members(ran, "member |")
