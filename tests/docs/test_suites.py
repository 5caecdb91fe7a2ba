# SPDX-License-Identifier: MIT
"""Every folder of tests is run, by make check and by contrib/check, and is in the releases."""

import re

import pytest

from docs import markdown

SUITES = sorted({path.parent.name for path in markdown.ROOT.glob("tests/*/test_*.py")})


def makefile(variable):
    """The words that Makefile.am gives a variable, in all places."""
    text = markdown.read("Makefile.am").replace("\\\n", " ")
    found = re.findall(rf"^{variable} \+?= *(.*)$", text, re.MULTILINE)
    assert found, variable
    return " ".join(found).split()


ON_DEMAND = ["docker"]  # which installs what it needs


def test_make_check_runs_all_suites_and_no_other():
    assert len(SUITES) > 4
    assert sorted(makefile("PYTEST_SUITES") + ON_DEMAND) == SUITES


@pytest.mark.parametrize("suite", SUITES)
def test_contrib_check_runs_and_counts_it(suite):
    steps = re.findall(r'^ *suite (\w+) "\$work/gcc" check-(\w+) tests/(\w+)\.xml$',
                       markdown.read("contrib/check"), re.MULTILINE)
    assert steps.count((suite, suite, suite)) == 1


@pytest.mark.parametrize("again", ["confined", "nginx"])
def test_contrib_check_runs_and_counts_what_is_run_in_other_places_too(again):
    assert f'suite {again} "$work/gcc" check-{again} tests/{again}.xml\n' \
        in markdown.read("contrib/check")
    assert f"--junitxml=tests/{again}.xml" in markdown.read("Makefile.am")
    assert f"check-{again}" in markdown.read("CONTRIBUTING.md")


@pytest.mark.parametrize("suite", SUITES)
def test_it_is_in_a_release(suite):
    shipped = makefile("EXTRA_DIST") + makefile("BENCH_PY")
    files = [str(path.relative_to(markdown.ROOT))
             for path in markdown.ROOT.glob(f"tests/{suite}/*.py")]
    assert f"tests/{suite}" in shipped or set(files) <= set(shipped)


@pytest.mark.parametrize("suite", SUITES)
def test_the_pages_name_it(suite):
    assert f"`tests/{suite}/`" in markdown.read("docs/architecture.md")
    assert re.search(rf"-{suite}\b", markdown.read("CONTRIBUTING.md"))


def test_there_is_one_way_to_leave_out_a_test():
    found = {str(path.relative_to(markdown.ROOT)) for path in markdown.ROOT.glob("tests/*/*.py")
             if re.search(r"\bpytest\.(mark\.)?(skip|importorskip)", path.read_text("utf-8"))}
    assert found == {"tests/support/must.py"}
