# SPDX-License-Identifier: MIT
"""What sessions leave in the folder of slots does not outlive dev-server."""

import subprocess
import sys

import pytest

from support.program import program
from support.server import DevServer
from support.tiers import TIERS

LITTER = program("""
    import os
    os.mkdir('hidden')
    open('hidden/file', 'w').close()
    os.chmod('hidden', 0)
    os.mkdir('closed', 0)
    os.symlink('/', 'link')
    for _ in range(3000):
        os.mkdir('deep')
        os.chdir('deep')
""")


@pytest.mark.parametrize("tier", TIERS)
def test_what_is_left_goes(tier):
    instance = DevServer(tier=tier, rate_limit=0, pool_size=0)
    try:
        instance.start()
        slots = next(instance.scratch.glob("*/slots"))
        assert slots.stat().st_mode & 0o777 == 0o700  # what is in it is nobody else's
        place = slots / "left"
        place.mkdir()
        place.chmod(0o777)
        subprocess.run([sys.executable, "-c", LITTER], cwd=place, check=True,
                       user=instance.tier.user, group=instance.tier.user, extra_groups=[])
        assert instance.stop()[0] == 0
        assert list(instance.scratch.iterdir()) == []
        assert "event=remove" not in instance.messages()
    finally:
        instance.discard()
