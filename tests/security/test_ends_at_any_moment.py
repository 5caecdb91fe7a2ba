# SPDX-License-Identifier: MIT
"""A session may end at any moment, also while it gets a worker in place of one that died."""

import random
import time

import pytest

from support.client import fresh_id
from support.processes import ZYGOTE
from support.server import running
from support.tiers import TIERS

TURNS = 60
SOON = 5  # seconds for a session to begin on a busy machine


@pytest.mark.parametrize("tier", TIERS)
def test_the_interpreter_that_workers_are_forked_from_stays_well(tier):
    with running(tier=tier, rate_limit=0, pool_size=0, max_sessions=512, slots=4) as instance:
        zygote = instance.part(ZYGOTE)
        for _ in range(TURNS):
            session = instance.client.session(fresh_id())
            began = time.monotonic()
            answer = session.exec("import os; os._exit(1)")
            assert answer.error_type == "crash", answer
            assert time.monotonic() < began + SOON
            time.sleep(random.choice((0, 0.001, 0.003, 0.005, 0.01)))
            instance.end_session(session.name)
        assert zygote.alive()
        assert instance.client.session(fresh_id()).value("6 * 7") == 42
