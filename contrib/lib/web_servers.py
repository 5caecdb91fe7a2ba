# SPDX-License-Identifier: MIT
"""The web servers that dev-server can start, each with the rules that an installed one has.

Knows where their files are in the sources and in a build, and how each is given a socket that
listens already. Nothing here starts a process.
"""

import os
import pathlib
import shutil
import signal

from .processes import Part

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CONFIGURATION = SOURCE / "www-conf"

LIGHTTPD_CONF = """\
server.bind = "/dev/stdin"
server.upload-dirs = ( {spool} )
var.vivarium_socket = "{socket}"
var.vivarium_errors = "{home}/errors/"
include "rules.conf"
"""

NGINX_CONF = """\
daemon off;
pid {spool}/nginx.pid;
error_log stderr;
worker_processes 2;
worker_rlimit_nofile 8192;
events {{
    worker_connections 2048;
}}
http {{
    client_body_temp_path {spool}/body;
    fastcgi_temp_path {spool}/body;
    proxy_temp_path {spool}/body;
    scgi_temp_path {spool}/body;
    uwsgi_temp_path {spool}/body;
    upstream vivarium {{
        server unix:{socket};
    }}
    server {{
        listen {address};
        include {home}/nginx-server.conf;
    }}
}}
"""


class Place:
    """What a web server is given: directories, its listening socket, where vivarium-fcgi is.

    `home` is a directory that it can read, `spool` those for request bodies, which are its own,
    the better one first; `build` is the build tree.
    """

    def __init__(self, build, home, spool, socket, listener):
        self.build = build
        self.home = home
        self.spool = spool
        self.socket = socket
        self.listener = listener

    def write(self, name, text):
        path = self.home / name
        path.write_text(text)
        path.chmod(0o644)
        return path

    def copy(self, path):
        """A copy in `home`, with that as the directory where Vivarium is installed."""
        name = path.name.removesuffix(".in")
        return self.write(name, path.read_text().replace("@pkgdatadir@", str(self.home)))


def lighttpd(program, identity, place):
    """lighttpd takes over a socket as its standard input."""
    errors = place.home / "errors"
    shutil.copytree(CONFIGURATION / "errors", errors)
    for path in errors.iterdir():
        path.chmod(0o644)
    errors.chmod(0o755)
    for name in ("rules.conf", "lighttpd-location.conf"):
        place.copy(CONFIGURATION / name)
    configuration = place.write("lighttpd.conf", LIGHTTPD_CONF.format(
        home=place.home, socket=place.socket,
        spool=", ".join(f'"{path}"' for path in place.spool)))
    part = Part([program, "-D", "-f", configuration], identity, place.listener.fileno(),
                litter=[path / "lighttpd-upload-*" for path in place.spool])
    part.stop_signal = signal.SIGINT  # lighttpd(8): once all requests are answered
    return part


def nginx(program, identity, place):
    """nginx takes over the sockets that NGINX names, as it does from itself at an upgrade."""
    spool = place.spool[0]
    for name in ("nginx-error-pages.conf", "nginx-location.conf.in", "nginx-server.conf.in"):
        place.copy(CONFIGURATION / name)
    place.copy(place.build / "www-conf/nginx-errors.conf")
    host, port, *_ = place.listener.getsockname()
    configuration = place.write("nginx.conf", NGINX_CONF.format(
        home=place.home, socket=place.socket, spool=spool,
        address=f"[{host}]:{port}" if ":" in host else f"{host}:{port}"))
    # What it takes over it leaves as it is, and none of its processes may wait in accept(2).
    place.listener.setblocking(False)
    part = Part([program, "-e", "stderr", "-c", configuration], identity,
                place.listener.fileno(), litter=[spool / "body/*"])
    part.variables = {"NGINX": "0;"}
    part.takes_group = True
    part.stop_signal = signal.SIGQUIT  # nginx(8): once all requests are answered
    return part


WEB_SERVERS = {"lighttpd": lighttpd, "nginx": nginx}


def find(name):
    """The program of a web server, or None."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
