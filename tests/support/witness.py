# SPDX-License-Identifier: MIT
"""Proof that a refused request did nothing."""

from .client import b64

LISTING = ("import os\n"
           "sorted(os.path.join(d, f) for d, ds, fs in os.walk('/home/earth') for f in fs + ds)")
# code and a file that leave traces, to be sent in requests that must be refused
CODE = "ran = True; open('/home/earth/ran', 'w').close()"
FILE = {"filename": "written", "b64_data": b64(b"written")}


class Witness:
    """A session whose state, files and count of executions are known before a refused request."""

    def __init__(self, session):
        self.session = session
        answer = session.exec("globals().pop('ran', None)\n" + LISTING)
        self.files = answer.value
        self.count = answer.session["execution_count"]

    def refused(self, answer, status, kind):
        """Assert that `answer` refuses with `status` and `kind`, and that nothing has happened."""
        assert (answer.status, answer.error_type) == (status, kind), answer
        after = self.session.exec(LISTING.replace("sorted(", "'ran' in globals() or sorted("))
        assert after.value == self.files, "the refused request ran, or wrote files"
        self.count += 1
        assert after.session["execution_count"] == self.count, "the refused request was counted"
        assert after.lost == "none"
        return answer
