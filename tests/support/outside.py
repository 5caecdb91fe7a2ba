# SPDX-License-Identifier: MIT
"""The same code outside of a sandbox, to show that it would have had its effect."""

import os
import subprocess

from .must import only_root_can

PYTHON = "/usr/bin/python3"
# with a process beside it, for code that looks for one
ALONE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
         'sleep 60 & exec "$@"', "sh")


def run(code, directory, timeout=60, alone=False, **environment):
    """Run `code` as a program of this machine's Python in `directory`; the completed process.

    `alone` is in a mount and PID namespace of its own; `environment` is added to the test's.
    """
    if alone:
        only_root_can("make namespaces of every kind")
    return subprocess.run(
        [*(ALONE if alone else ()), PYTHON, "-I", "-c", code], cwd=directory, capture_output=True,
        text=True, timeout=timeout, check=False, env={**os.environ, **environment})
