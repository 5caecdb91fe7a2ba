# SPDX-License-Identifier: MIT
"""The one way to leave out a test."""

import os

import pytest


def cannot(reason):
    """End the test because this machine cannot show it: a skip, or a failure if all must run."""
    if os.environ.get("VIVARIUM_MUST_WORK") == "1":
        pytest.fail(f"everything must work here, but: {reason}")
    pytest.skip(reason)


def only_root_can(what):
    """Leave a test out for an ordinary user, however the suite was asked for: root runs it."""
    if os.geteuid() != 0:
        pytest.skip(f"only root can {what}")


def few_can(reason):
    """Leave a test out, however the suite was asked for: most machines for it cannot show it."""
    pytest.skip(reason)


def only_a_quota_shows(what):
    """Leave a test out where the kernel does not bound a session's files: others show that."""
    if os.environ.get("VIVARIUM_TIER") in ("confined", "minimal"):
        pytest.skip(f"only a quota shows {what}")


def not_with_slots(why):
    """Leave a test out where sessions live in slots, for what these do otherwise, and may."""
    if os.environ.get("VIVARIUM_TIER") in ("confined", "minimal"):
        pytest.skip(why)
