# SPDX-License-Identifier: MIT
"""The one way to leave out a test."""

import os

import pytest


def cannot(reason):
    """End the test because this machine cannot show it: a skip, or a failure if all must run."""
    if os.environ.get("VIVARIUM_MUST_WORK") == "1":
        pytest.fail(f"everything must work here, but: {reason}")
    pytest.skip(reason)
