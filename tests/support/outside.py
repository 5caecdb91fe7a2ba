# SPDX-License-Identifier: MIT
"""The same code outside of a sandbox, to show that it would have had its effect."""

import subprocess

PYTHON = "/usr/bin/python3"


def run(code, directory, timeout=60):
    """Run `code` as a program of this machine's Python in `directory`; the completed process."""
    return subprocess.run(
        [PYTHON, "-I", "-c", code], cwd=directory, capture_output=True, text=True,
        timeout=timeout, check=False)
