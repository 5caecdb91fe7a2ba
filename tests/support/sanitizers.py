# SPDX-License-Identifier: MIT
"""What services say that were built with a sanitizer, in the log of the rest."""

import re

# each kind of report begins like this; LeakSanitizer also when it could not look
REPORT = re.compile(r"^.*(?:\w+Sanitizer[ :]|: runtime error: )", re.MULTILINE)
MOST = 20000  # characters that are shown


def no_reports(messages):
    """Fail when a sanitizer has found something, with all that it said."""
    found = REPORT.search(messages)
    assert not found, f"a sanitizer reports:\n{messages[found.start():][:MOST]}"
