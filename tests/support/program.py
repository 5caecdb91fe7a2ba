# SPDX-License-Identifier: MIT
"""Code in tests."""

import textwrap


def program(text):
    """The code of an indented text that begins and ends with a line break."""
    return textwrap.dedent(text).strip("\n")
