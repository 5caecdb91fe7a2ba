# SPDX-License-Identifier: MIT
"""Tables of code in text files. A row: `=== NAME`, lines about it, an empty line, the code."""


def rows(path):
    """The rows of a file: triples of the name, the list of lines about it, and the code."""
    for section in ("\n" + path.read_text("utf-8")).split("\n=== ")[1:]:
        head, _, code = section.partition("\n\n")
        name, *about = head.split("\n")
        yield name, about, code.rstrip("\n") + "\n"
