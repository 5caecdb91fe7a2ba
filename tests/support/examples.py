# SPDX-License-Identifier: MIT
"""The examples of a page: shell, run as it stands, and held against what is shown behind it.

As a program it does so with a server that is there already, in the folder that it is started in:

    examples.py PAGE http://ADDRESS:PORT
"""

import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from docs import markdown  # noqa: E402
from support import strict_json  # noqa: E402

ADDRESS = "http://127.0.0.1:3080"  # in the pages

# What is not the same from one run or machine to the next: only its kind is compared.
VOLATILE = {"code_runtime", "createdAt", "lastAccessedAt", "ageMinutes", "idleMinutes", "version",
            "isolation", "checkpoints"}


def calls(page):
    """The examples of a page: a command, and language and text of the answer shown behind it."""
    found = markdown.blocks(markdown.read(page))
    return [(text, *found[number + 1]) for number, (language, text) in enumerate(found)
            if language == "sh" and ADDRESS in text]


def kind(value):
    """The JSON type of a value."""
    return "number" if type(value) in (int, float) else type(value).__name__


def without_marks(text):
    """A traceback without the marks below its lines: each Python sets them in its own way."""
    return re.sub(r"\n *[~^][ ~^]*(?=\n)", "", text)


def compare(shown, got, place="$"):
    """Hold an answer against the one that is shown."""
    if isinstance(shown, dict) and isinstance(got, dict):
        assert list(got) == list(shown), place
        for name, value in shown.items():
            if name == "checkpoint":  # made when the session was idle long enough
                assert kind(got[name]) in ("number", "NoneType"), f"{place}.{name}"
            elif name in VOLATILE:
                assert kind(got[name]) == kind(value), f"{place}.{name}"
            else:
                compare(value, got[name], f"{place}.{name}")
    elif isinstance(shown, list) and isinstance(got, list):
        assert len(got) == len(shown), place
        for number, value in enumerate(shown):
            compare(value, got[number], f"{place}[{number}]")
    elif isinstance(shown, str) and isinstance(got, str):
        assert without_marks(got) == without_marks(shown), place
    else:
        assert (kind(got), got) == (kind(shown), shown), place


def check(example, address, folder):
    """Run one example of `calls` against the server at an address, and compare."""
    command, language, shown = example
    done = subprocess.run(["bash", "-c", command.replace(ADDRESS, address)], cwd=folder,
                          stdout=subprocess.PIPE, timeout=60)
    assert done.returncode == 0, command
    if language == "json":
        compare(json.loads(shown), strict_json.loads(done.stdout))
    else:
        assert done.stdout.decode() == shown, command


def main(page, address):
    """Run all examples of a page."""
    found = calls(pathlib.Path(page).resolve().relative_to(markdown.ROOT))
    for example in found:
        print(example[0], flush=True)
        check(example, address, None)
    print(f"{len(found)} examples of {page} are answered as shown")


if __name__ == "__main__":
    main(*sys.argv[1:])
