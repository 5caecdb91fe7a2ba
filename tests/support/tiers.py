# SPDX-License-Identifier: MIT
"""The kinds of places that the services run in, and how a test comes by each on this machine.

Where the services may make namespaces, the tier is `isolated`, for root and for an ordinary user.
A program of the tests takes from them what a container takes by default: then it is `confined`
for the container's root and `minimal` for another user of it.
"""

import os
import pathlib
import random
import shutil

from .must import cannot, only_root_can

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOBODY = 65534
# all of them, or those that the environment names
TIERS = tuple(os.environ.get("VIVARIUM_TIERS", "isolated isolated-user confined minimal").split())
BUILT = ("vivarium-fcgi", "vivarium-executor", "vivarium-zygote", "www-conf/nginx-errors.conf")
MEMORY = "/dev/shm"
MEMORY_NEEDED = 4 << 30  # bytes
NAMES_NEEDED = 40000  # of each slot, with what its session may make
UNSUITABLE = os.ST_NODEV | os.ST_NOEXEC
PROFILE = "tests/support/container_profile"


def build_file(name):
    """A file of the build tree."""
    for place in filter(None, (os.environ.get("VIVARIUM_BUILDDIR"), ROOT / "build", ROOT)):
        path = pathlib.Path(place, name)
        if path.is_file():
            return path
    return cannot(f"{name} is not built")


class Tier:
    """One of TIERS: its name, what /health calls it, and what is put in front of a command."""

    def __init__(self, name):
        self.name = name
        self.isolation = name.removesuffix("-user")
        self.user = NOBODY if name in ("isolated-user", "minimal") else 0

    def __repr__(self):
        return self.name

    def prefix(self):
        """The words in front of a command that is to run there."""
        only_root_can("start the services as every kind of user")
        if self.name == "isolated":
            return []
        if self.name == "isolated-user":
            return ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups",
                    "--pdeathsig", "TERM"]
        user = [f"--user={self.user}"] if self.user else []
        return [build_file(PROFILE), *user]

    def settings(self):
        """The settings without which the services do not start there, or not twice."""
        if self.name == "minimal":
            return {"min_isolation": "minimal"}
        if self.name == "confined":  # instances side by side may not share users
            return {"slot_uid_base": random.randrange(1 << 20, 1 << 30, 1 << 13), "slots": 192}
        return {}

    def folder_of_scratch(self, slots):
        """Where the files of an instance with so many slots are to be; None for anywhere.

        The root of a slot has many thousand names, which come and go soonest in memory.
        """
        if self.isolation != "confined" or not os.path.isdir(MEMORY):
            return None
        status = os.statvfs(MEMORY)
        roomy = (status.f_bavail * status.f_frsize >= MEMORY_NEEDED
                 and status.f_favail >= NAMES_NEEDED * (slots + 3))
        return MEMORY if roomy and not status.f_flag & UNSUITABLE else None

    def sources(self, folder):
        """The sources with what is built of them in build/, where the tier's user can read it."""
        if not self.user:
            return ROOT
        copy = folder / "sources"
        shutil.copytree(ROOT / "contrib", copy / "contrib")
        shutil.copytree(ROOT / "www-conf", copy / "www-conf")
        (copy / "build/www-conf").mkdir(parents=True)
        for name in BUILT:
            shutil.copy(build_file(name), copy / "build" / name)
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755)
        return copy
