# SPDX-License-Identifier: MIT
"""The most memory that there can be with some settings, by the formula of docs/operations.md."""

import re

from docs import sources

MIB = 1 << 20
SANDBOX = 6  # MiB of one that has run nothing
SERVICES = 300  # MiB: two zygotes, while one succeeds the other, and the services
UNITS = {"K": 1 << 10, "M": MIB, "G": 1 << 30, "k": 1 << 10, "m": MIB, "g": 1 << 30}


def size(text):
    """MiB of a size: of a setting, of Docker or, with an i at its end, of Kubernetes."""
    number, unit = re.fullmatch(r"(\d+)([KMGkmg])i?", text).groups()
    return int(number) * UNITS[unit] // MIB


class Most:
    """The parts of the sum in MiB, for an environment with VIVARIUM_KEY in it."""

    def __init__(self, environment, volumes):
        values = {each.key: environment.get(f"VIVARIUM_{each.key.upper()}", each.default)
                  for each in sources.settings()}
        self.sessions = int(values["max_sessions"])
        self.session = size(values["session_memory"]) + size(values["session_disk"]) * 5 // 4 \
            + SANDBOX
        self.pool = int(values["pool_size"]) * SANDBOX
        self.in_flight = size(values["max_in_flight"])
        self.volumes = sum(map(size, volumes))

    def total(self):
        """All of it."""
        return self.sessions * self.session + self.pool + SERVICES + self.in_flight + self.volumes
