# SPDX-License-Identifier: MIT
"""Count what contrib/check ran, from what each step left in a directory.

`NAME.step` holds the exit status of a step. A folder NAME beside it holds the reports of its
tests: JUnit files of pytest, or logs in the Test Anything Protocol, each with the file in which
automake notes the result of the program. A step with a report counts as its tests; one without,
or one that failed though its tests passed, counts as itself. The status 77 is, as
everywhere in automake, that of a step that was skipped.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree


class Count:
    """Tests that passed; names of those that failed and of those that were skipped."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []


def count_junit(path, count):
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            count.failed.append(name)
        elif case.find("skipped") is not None:
            count.skipped.append(name)
        else:
            count.passed += 1


def count_tap(path, count):
    """A program that ended badly without a failed test has died, and counts as one failure."""
    failed_before = len(count.failed)
    planned = seen = 0
    for line in path.read_text(errors="replace").splitlines():
        plan = re.fullmatch(r"1\.\.(\d+)", line)
        result = re.match(r"(not )?ok \d+ -? ?(# SKIP)? ?(.*)", line)
        if plan:
            planned += int(plan[1])
        elif result:
            seen += 1
            name = f"{path.stem}.{result[3]}"
            if result[2]:
                count.skipped.append(name)
            elif result[1]:
                count.failed.append(name)
            else:
                count.passed += 1
    verdict = path.with_suffix(".trs").read_text()
    if ":test-result: SKIP" in verdict and seen == 0:  # a build in which it can show nothing
        count.skipped.append(path.stem)
        return
    passed = ":test-result: PASS" in verdict
    if len(count.failed) == failed_before and (not passed or seen != planned or seen == 0):
        count.failed.append(f"{path.stem} (ended early)")


def count_step(path):
    """All that belongs to one step."""
    count = Count()
    reports = path.with_suffix("")
    for report in sorted(reports.rglob("*.xml")):
        count_junit(report, count)
    for report in sorted(reports.rglob("*.log")):
        count_tap(report, count)
    status = path.read_text().strip()
    step_passed = status == "0"
    if status == "77" and not reports.is_dir():
        count.skipped.append(path.stem)
    elif not step_passed and not count.failed:
        count.failed.append(path.stem)
    elif reports.is_dir() and not count.passed and not count.failed:
        count.failed.append(f"{path.stem} (no test ran)")
    elif not reports.is_dir() and step_passed:
        count.passed = 1
    return count


def main(directory):
    total = Count()
    for path in sorted(pathlib.Path(directory).glob("*.step")):
        count = count_step(path)
        print(f"{path.stem + ':':24}{count.passed:5} passed, {len(count.failed)} failed, "
              f"{len(count.skipped)} skipped")
        total.passed += count.passed
        total.failed += count.failed
        total.skipped += count.skipped
    for name in total.skipped:
        print(f"skipped: {name}")
    for name in total.failed:
        print(f"FAILED: {name}")
    print(f"{total.passed} passed, {len(total.failed)} failed")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
