# SPDX-License-Identifier: MIT
"""Every setting stands in the manual, on the page for operators and in the sample, as it is."""

import re

import pytest

from docs import markdown, sources

PAGE = "docs/operations.md"
MANUAL = "docs/vivarium.conf.5"


@pytest.fixture(scope="module")
def settings():
    """All settings of the program."""
    found = sources.settings()
    assert len(found) > 30
    return found


@pytest.fixture(scope="module")
def table():
    """The rows of the page's table by key."""
    lines = markdown.rows(markdown.section(markdown.read(PAGE), "Settings"))
    return {markdown.names(cells[0])[0]: cells for cells in lines if len(cells) == 5}


def manual_entry(key):
    """What the manual says of a setting."""
    entries = re.split(r"^\.It Ic ", markdown.read(MANUAL), flags=re.MULTILINE)[1:]
    found = [entry.split("\n.El", 1)[0] for entry in entries if entry.split("\n", 1)[0] == key]
    assert len(found) == 1, f"{key} stands {len(found)} times in the manual"
    return found[0]


def test_the_page_has_all_settings_and_no_other(settings, table):
    assert list(table) == [setting.key for setting in settings]


def test_the_page_has_defaults_forms_and_ranges(settings, table):
    for setting in settings:
        _, default, form, limits, _ = table[setting.key]
        assert (markdown.names(default) or [""]) == [setting.default], setting
        assert form == setting.form, setting
        if setting.form == "choice":
            assert markdown.names(limits) == setting.choices, setting
        elif setting.range():
            assert limits == setting.range(), setting


def test_the_manual_has_all_settings_and_no_other(settings):
    keys = re.findall(r"^\.It Ic (\S+)$", markdown.read(MANUAL), re.MULTILINE)
    assert sorted(keys) == sorted(setting.key for setting in settings)


def test_the_manual_has_defaults_forms_and_ranges(settings):
    for setting in settings:
        entry = manual_entry(setting.key)
        shown = f"default\n.Ql {setting.default} ." if setting.default else "empty by default."
        assert shown in entry, setting
        if setting.form == "choice":
            choices = re.findall(r"^\.Ql (\w+) [,;]$", entry, re.MULTILINE)
            assert choices == setting.choices, setting
        elif setting.range():
            assert f"A {setting.form}, {setting.range()};" in entry, setting
        else:
            assert f"A {setting.form}" in entry, setting


def test_the_sample_shows_every_default(settings):
    shown = re.findall(r"^#(\w+) = ?(.*)$", markdown.read("contrib/vivarium.conf"), re.MULTILINE)
    assert [(key, value.strip()) for key, value in shown] \
        == [(setting.key, setting.default) for setting in settings]


@pytest.mark.parametrize("text", [
    content for page in (PAGE, "docs/web-servers.md")
    for language, content in markdown.blocks(markdown.read(page))
    if language == "" and re.match(r"\w+ = ", content)])
def test_the_pages_examples_are_settings(text, tmp_path):
    example = tmp_path / "vivarium.conf"
    example.write_text(text)
    said, status = sources.run("vivarium-fcgi", "-f", example, "-t")
    assert status == 0, said


def test_the_manuals_example_is_settings(tmp_path):
    text = re.search(r"^\.Bd -literal.*?\n(.*?)^\.Ed", markdown.read(MANUAL),
                     re.DOTALL | re.MULTILINE)[1]
    example = tmp_path / "vivarium.conf"
    example.write_text(text)
    said, status = sources.run("vivarium-fcgi", "-f", example, "-t")
    assert status == 0, said


@pytest.mark.parametrize("configuration, place", [
    ("www-conf/lighttpd.conf.in", r'vivarium_socket = "(.*)"'),
    ("www-conf/nginx.conf.in", r"server unix:(.*);"),
    ("www-conf/nginx-location.conf.in", r"server unix:(.*);"),
])
def test_the_installed_web_server_finds_the_socket(configuration, place):
    path = re.search(place, markdown.read(configuration))[1]
    settings = {setting.key: setting for setting in sources.settings()}
    name = re.search(r"empty is (\S+) in run_directory", settings["listen"].help)[1]
    assert path == f'{settings["run_directory"].default}/{name}'
    assert f"`{path}`" in markdown.read(PAGE)


# sizes and times as people write them
UNITS = {"K": "KiB", "M": "MiB", "G": "GiB", "s": "s", "m": "minutes"}


def spelt(value):
    """A default as the pages for readers spell it."""
    number, unit = re.fullmatch(r"(\d+)([A-Za-z]*)", value).groups()
    return f"{int(number):,} {UNITS[unit]}" if unit else f"{int(number):,}"


SHOWN = {
    "README.md": [
        "exec_timeout", "max_exec_timeout", "session_memory", "session_disk", "session_inodes",
        "session_threads", "max_files", "max_file_size", "max_output_files", "max_code",
        "max_stdin", "max_output", "max_sessions", "session_idle_timeout", "rate_limit",
        "max_queued"],
    "docs/api.md": [
        "session_disk", "session_inodes", "session_threads", "max_files", "max_file_size",
        "max_output_files", "max_code", "max_stdin", "max_output", "max_result", "max_sessions",
        "session_idle_timeout", "rate_limit", "max_queued", "max_queue_wait", "interrupt_grace"],
}


@pytest.mark.parametrize("page", SHOWN)
def test_pages_for_readers_show_the_defaults(settings, page):
    defaults = {setting.key: setting.default for setting in settings}
    text = " ".join(markdown.read(page).split())
    for key in SHOWN[page]:
        if page == "README.md":  # has no keys
            places = [markdown.section(markdown.read(page), "Limits")]
        else:
            places = [text[max(0, match.start() - 80):match.start()]
                      for match in re.finditer(f"`{key}`", text)]
        shown = rf"\b{re.escape(spelt(defaults[key]))}\b"
        assert any(re.search(shown, place) for place in places), (key, shown)


def test_the_api_page_has_the_times_of_a_call(settings):
    defaults = {setting.key: setting.default for setting in settings}
    milliseconds = {key: int(defaults[key].removesuffix("s")) * 1000
                    for key in ("exec_timeout", "max_exec_timeout")}
    assert (f"1 to {milliseconds['max_exec_timeout']} (`max_exec_timeout`); "
            f"without it {milliseconds['exec_timeout']} (`exec_timeout`)") \
        in markdown.read("docs/api.md")


def test_the_api_page_has_the_calls_at_a_time(settings):
    defaults = {setting.key: setting.default for setting in settings}
    calls = int(defaults["threads"]) - int(defaults["reserved_threads"])
    assert f"up to {calls} calls in all (`threads`" in markdown.read("docs/api.md")
