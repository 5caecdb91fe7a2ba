# SPDX-License-Identifier: MIT
"""The place of a service manager: who starts a service and is told of it, by sd_notify(3)."""

import socket

from .together import eventually


class ServiceManager:
    """A socket that services tell, and the environment that says so to them."""

    def __init__(self, path, watchdog=None):
        self.path = path
        self.watchdog = watchdog  # seconds
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        path.chmod(0o777)
        self.socket.setblocking(False)
        self.told = []

    def environment(self):
        """The variables that a service is started with."""
        variables = {"NOTIFY_SOCKET": str(self.path)}
        if self.watchdog:
            variables["WATCHDOG_USEC"] = str(int(self.watchdog * 1e6))
        return variables

    def messages(self):
        """All messages so far, in order, each as a text."""
        try:
            while True:
                self.told.append(self.socket.recv(4096).decode())
        except BlockingIOError:
            return self.told

    def beats(self):
        """How many of them say that the service works."""
        return self.messages().count("WATCHDOG=1")

    def wait_for(self, start):
        """Wait for a message that begins so."""
        def was_told():
            return next((each for each in self.messages() if each.startswith(start)), None)

        return eventually(was_told, within=120)

    def close(self):
        """Nobody is told from now on."""
        self.socket.close()
