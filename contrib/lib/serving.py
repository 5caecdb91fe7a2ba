# SPDX-License-Identifier: MIT
"""The three services as one: what those who run all of them do alike, contrib/dev-server on a
developer's machine and contrib/docker/init in a container.

A part that dies is started again (processes.py), and its listening socket for clients outlives
the web server. Knows nothing of settings, users and folders.
"""

import contextlib
import errno
import http.client
import ipaddress
import json
import os
import re
import signal
import socket
import subprocess
import time

from .processes import Stopped, describe, kill_leftovers, log, reap, wait_for_end, wait_for_signal

GRACE = 0.5  # seconds for what a part does besides waiting
LAST_ANSWERS = 1.0  # seconds for clients to take the answers that the web server holds

START_TIMEOUT = 50  # seconds until /health must be healthy; imports take long on a busy machine


class Failure(Exception):
    """What ends all of it; the text is for people."""


# ---- the set-up ----

def listen(address, port, advice=""):
    """The listening socket. It stays with us, so that a new web server takes up where one died.
    `advice` is for who finds the port taken."""
    family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
        listener.listen(1024)
    except OSError as error:
        more = advice if error.errno == errno.EADDRINUSE else ""
        raise Failure(f"cannot listen on {address} port {port}: {error.strerror}{more}") from error
    return listener


def listen_for_web_server(path, identity=None):
    """The socket of vivarium-fcgi, as a descriptor that it is given. It stays with us, so that a
    connection that is made while there is no vivarium-fcgi waits for the next one: lighttpd would
    not try again for a second or two. Its group is the folder's."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o660)
    if identity:
        os.chown(path, identity.uid, -1)
    listener.listen(1024)
    return listener.detach()


def make_directory(path, mode, identity=None):
    path.mkdir()
    # in this order: without CAP_FSETID the bit of another group cannot be set (chmod(2))
    path.chmod(mode)
    if identity:
        os.chown(path, identity.uid, identity.gid)
    return path


def remove_tree(path):
    """Slots hold many files, and sessions leave folders in them that are deep, or not readable."""
    # rm(1) is quick, and does not mind the depth; chmod(1) -R follows no symbolic links
    for command in (["rm", "-rf"], ["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        done = subprocess.run([*command, "--", path], stderr=subprocess.PIPE, text=True,
                              errors="replace", check=False)
        if command[0] == "rm" and done.returncode == 0:
            return
    log("error", "remove", path=path, reason=" ".join(done.stderr.splitlines()[:1]))


def check_settings(part):
    """Let a service judge its settings, and say itself what is wrong with them."""
    part.start("-t")
    _, status = os.waitpid(part.pid, 0)
    part.pid = None
    if status != 0:
        raise Failure(f"{part.name} does not take these settings")


# ---- start, run, stop ----

def health(address, port):
    """Whether it serves, and what it says."""
    connection = http.client.HTTPConnection(address, port, timeout=1)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        return answer.status == 200 and json.loads(text).get("status") == "healthy", text
    except (OSError, ValueError, AttributeError, http.client.HTTPException) as error:
        return False, str(error)
    finally:
        connection.close()


def start(parts, address, port):
    """Start all parts and wait until they serve. None may die meanwhile."""
    deadline = time.monotonic() + START_TIMEOUT
    healthy, text = False, "not all parts have started"
    while not healthy:
        for part in parts:
            if part.pid is None:
                part.start()
        wait_for_signal(0.05)
        for part, status in reap(parts):
            part.pid = None
            raise Failure(f"{part.name} ended before it served: {describe(status)}")
        if all(part.pid for part in parts):
            healthy, text = health(address.strip("[]"), port)
        if not healthy and time.monotonic() > deadline:
            raise Failure(f"not healthy after {START_TIMEOUT} seconds: {text}")
    print(f"ready http://{address}:{port}", flush=True)


def keep_running(parts, most_ends=None):
    """Start again what dies, for ever, or until one has died so often with little time between."""
    while True:
        for part, status in reap(parts):
            part.ended(status)
            if most_ends is not None and part.quick_ends >= most_ends:
                raise Failure(f"{part.name} cannot be kept running: it has ended "
                              f"{part.quick_ends} times in a row, now with {describe(status)}")
        now = time.monotonic()
        waiting = [part for part in parts if part.pid is None]
        for part in waiting:
            if part.start_at <= now:
                part.start()
        wait_for_signal(min([part.start_at - now for part in waiting if part.pid is None],
                            default=3600))


def end(part, parts, *steps):
    """End a part: steps are signals, and the seconds until the next one; at last by force.

    Another order to stop leads to the next step at once.
    """
    for number, seconds in steps:
        part.kill(number)
        with contextlib.suppress(Stopped):
            if wait_for_end(part, parts, time.monotonic() + seconds):
                return
    log("warning", "killed", part=part.name)
    part.kill(signal.SIGKILL)
    with contextlib.suppress(Stopped):
        wait_for_end(part, parts, time.monotonic() + 1)


def stop(parts, seconds):
    """End executor, application and web server: calls that run have so many seconds.

    The application is the first. It refuses further calls while it waits for those that run, and
    the web server carries all these answers to the clients, and its own once the application is
    gone.
    """
    if parts:
        executor, application, web = parts
        term = signal.SIGTERM
        began = time.monotonic()
        end(application, parts, (term, seconds + GRACE), (term, GRACE))  # two: it waits no more
        application.give_listener_up()
        # lighttpd closes idle connections when a second is over; where no call ran, and the
        # application has ended at once, nobody waits for an answer
        took = time.monotonic() - began
        end(web, parts, (web.stop_signal, min(0.2 + took, LAST_ANSWERS)), (term, GRACE))
        end(executor, parts, (term, max(seconds, GRACE)), (term, GRACE))
    kill_leftovers()


def seconds_to_stop(settings, default="5s"):
    """The setting stop_timeout, or its default where the form is not right."""
    value = os.environ.get("VIVARIUM_STOP_TIMEOUT") or default
    for text in settings:
        key, _, given = text[2:].partition("=")
        value = given if key == "stop_timeout" else value
    form = r"(\d+)(ms|s|m|h)?"
    number, unit = (re.fullmatch(form, value) or re.fullmatch(form, default)).groups()
    return int(number) * {"ms": 0.001, "m": 60, "h": 3600}.get(unit, 1)
