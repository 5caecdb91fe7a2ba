#!/usr/bin/python3 -B
# SPDX-License-Identifier: MIT
"""Measure one build of Vivarium against a floor and an alternative, in one run.

Prints a table; --json writes the same as JSON. docs/benchmarks.md says how to read it.
"""

import argparse
import contextlib
import gc
import json
import os
import pathlib
import platform
import sys

import busy
import checkpoints
import measures
import recovery
from report import Report
from services import Alternative, Floor, Vivarium

# how often each is measured
FULL = {"calls": 3000, "rounds": 20, "in_a_round": 10, "jobs": 40, "files": 20, "bodies": 3,
        "idle": 100, "burst": 100, "pauses": 100, "at_once": 112, "probes": 100,
        "deaths": 10}
QUICK = {"calls": 100, "rounds": 2, "in_a_round": 3, "jobs": 3, "files": 2, "bodies": 1,
         "idle": 10, "burst": 12, "pauses": 6, "at_once": 4, "probes": 5,
         "deaths": 2}

RESERVED = 16  # threads that calls never hold, as by default

# Only what the measurements themselves would run into.
SETTINGS = {"rate_limit": 0, "max_sessions": 4096, "session_idle_timeout": "1h"}


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path,
                        help="write the results there, too")
    parser.add_argument("--quick", action="store_true",
                        help="few of each: shows that it works, and no figures to rely on")
    parser.add_argument("--build", metavar="DIR", default=os.environ.get("VIVARIUM_BUILDDIR"),
                        help="where the programs are; default: $VIVARIUM_BUILDDIR")
    options = parser.parse_args()
    if not options.build:
        parser.error("say with --build where the programs are")
    return options


def about(options):
    """What the figures depend on."""
    return {"quick": options.quick, "cpus": os.cpu_count(), "machine": platform.machine(),
            "kernel": platform.release(), "python": platform.python_version(),
            "user": "root" if os.geteuid() == 0 else "ordinary"}


def measure(report, build, counts):
    """All measurements; those of memory first, while the instance is fresh."""
    with contextlib.ExitStack() as stack:
        def started(service):
            stack.callback(service.stop)
            return service

        def say(text):
            print(f"bench: {text}", file=sys.stderr, flush=True)

        say("starting")
        pooled = started(Vivarium(build, **SETTINGS))
        unpooled = started(Vivarium(build, pool_size=0, **SETTINGS))
        floor = started(Floor(build))
        alternative = started(Alternative(measures.LIBRARIES))
        pooled.wait()
        unpooled.wait()
        say("memory of idle sessions")
        measures.idle_sessions(report, unpooled, counts["idle"])
        say("calls in a live session")
        measures.warm_calls(report, floor, pooled, counts["calls"])
        say("new sessions")
        measures.new_sessions(report, pooled, unpooled, alternative, counts["rounds"],
                              counts["in_a_round"])
        say("sessions per second")
        measures.sessions_per_second(report, pooled, counts["burst"])
        say("job, files and large bodies")
        measures.job(report, pooled, counts["jobs"])
        measures.files(report, pooled, counts["files"])
        measures.large_body(report, pooled, counts["bodies"])
        say("recovery")
        recovery.measure(report, pooled, counts["deaths"])
    compare_checkpoints(report, build, counts)
    keep_all_busy(report, build, counts)


def compare_checkpoints(report, build, counts):
    """With two instances that nothing else has used."""
    with contextlib.ExitStack() as stack:
        print("bench: checkpoints", file=sys.stderr, flush=True)
        both = []
        for setting in ("on", "off"):
            both.append(Vivarium(build, pool_size=0, checkpoint=setting, **SETTINGS))
            stack.callback(both[-1].stop)
        for service in both:
            service.wait()
        checkpoints.measure(report, *both, counts)


def keep_all_busy(report, build, counts):
    """With one that has so many threads for calls; it goes with the sessions that compute."""
    with contextlib.ExitStack() as stack:
        print("bench: all threads busy", file=sys.stderr, flush=True)
        service = Vivarium(build, threads=counts["at_once"] + RESERVED, reserved_threads=RESERVED,
                           exec_timeout="300s", **SETTINGS)
        stack.callback(service.stop)
        service.wait()
        busy.measure(report, service, counts["at_once"], counts["probes"])


def main():
    """Run."""
    options = arguments()
    report = Report(about(options))
    gc.disable()  # no pause of this process in a sample
    measure(report, pathlib.Path(options.build).resolve(), QUICK if options.quick else FULL)
    print(report.table())
    if options.json:
        options.json.write_text(json.dumps(report.json(), indent=1) + "\n")


if __name__ == "__main__":
    main()
