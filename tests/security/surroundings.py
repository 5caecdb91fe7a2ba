# SPDX-License-Identifier: MIT
"""What an attempt may not change around its session: processes, files, the log."""

import glob
import os
import re

import numpy

from support.together import eventually

# of the machine: what sessions share, and where a planted file would matter
FOLDERS = ["/", "/etc", "/home", "/usr", "/usr/lib", *glob.glob("/usr/lib/*-linux-gnu"),
           os.path.dirname(os.__file__), os.path.dirname(numpy.__file__)]
SERVICE_LINE = re.compile(
    rb'level=(error|warning|info|debug) event=\w+( \w+=("([^"\\]|\\.)*"|[^\s"]*))*')
WEB_SERVER_LINE = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d: \(\w+\.c\.\d+\) [ -~]*")
PATIENCE = 5  # seconds that what ends by itself may take
TELLING = 12  # letters of code that no log line has by chance


class Surroundings:
    """Made before a session begins; told by watch() that it has, and by judge() of the attempt."""

    def __init__(self, server):
        self.server = server
        self.members = self._processes()
        self.own = self.files = self.read = None

    def watch(self):
        """The session has begun. From here on nothing may change."""
        def a_supervisor_and_a_worker():
            self.own = self._more_processes()
            return len(self.own) == 2

        eventually(a_supervisor_and_a_worker)
        self.files = files(self.server)
        self.read = len(self._log())

    def judge(self, code):
        """Assert that after an attempt, which was this code, all is as it was."""
        def no_more_processes():
            return len(self._more_processes()) <= len(self.own)

        eventually(no_more_processes, within=PATIENCE)
        assert differences(self.files, files(self.server)) == []
        # the log of a container comes by way of its engine
        news = eventually(self._whole_news, within=PATIENCE)
        assert wrong_lines(news) == []
        for line in code.splitlines():
            assert len(line.strip()) < TELLING or line.strip().encode() not in news, line

    def _processes(self):
        # a copy of a worker may be parked or not
        return {(each.pid, each.started) for each in self.server.tree() if not each.parked()}

    def _more_processes(self):
        return self._processes() - self.members

    def _log(self):
        return self.server.log.read_bytes()

    def _whole_news(self):
        news = self._log()[self.read:]
        return news.endswith(b"\n") and news


def files(server):
    """What there is in folders of the machine and of the server, the sessions' own left out."""
    found = {}
    for folder in FOLDERS:
        found.update(_entries(folder))
    for folder, folders, _ in os.walk(server.scratch):
        folders[:] = [name for name in folders if name not in ("slots", "upload")]
        found.update(_entries(folder))
    return found


def _entries(folder):
    for entry in os.scandir(folder):
        status = entry.stat(follow_symlinks=False)
        content = () if entry.is_dir(follow_symlinks=False) else (
            status.st_size, status.st_mtime_ns, status.st_ino)
        yield entry.path, (status.st_mode, status.st_uid, status.st_gid, *content)


def differences(before, after):
    """The paths of what came, went or changed."""
    return sorted(path for path in before.keys() | after.keys()
                  if before.get(path) != after.get(path))


def wrong_lines(text):
    """Lines of a log, as bytes, that are not of the form that the services or lighttpd give."""
    return [line for line in text.splitlines(keepends=True)
            if not re.fullmatch(rb"[ -~]+\n", line)
            or not SERVICE_LINE.fullmatch(line[:-1]) and not WEB_SERVER_LINE.fullmatch(line[:-1])]
