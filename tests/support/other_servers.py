# SPDX-License-Identifier: MIT
"""Web servers with other duties, as Debian configures them, with Vivarium as a part.

What is added to their configuration is what docs/web-servers.md says. They run in a directory of
their own, as the user that the web server of an instance runs as.
"""

import hashlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile

from .must import cannot
from .server import ENDS_WITH_US
from .tiers import ROOT, build_file
from .together import eventually

INDEX = b"<html>the other duty</html>\n"
NAME = "python.example.org"  # in the page's snippets
PREFIX = "/python"
SOCKET = "/run/vivarium/web/fcgi.sock"
INSTALLED = "/usr/share/vivarium"
AS_WWW_DATA = ("/usr/bin/setpriv", "--reuid=www-data", "--regid=www-data", "--clear-groups")


def snippets(heading):
    """The blocks of configuration below a heading of the page, in order."""
    page = (ROOT / "docs/web-servers.md").read_text("utf-8") + "##"
    text = re.search(rf"^##+ {heading}\n(.*?)^##", page, re.DOTALL | re.MULTILINE)[1]
    return re.findall(r"^```(?:nginx)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def stock(package, path):
    """A file of /etc as the package has it."""
    said = subprocess.run(["dpkg-query", "--show", "--showformat=${Conffiles}", package],
                          capture_output=True, text=True, check=False).stdout
    known = dict(line.split()[:2] for line in said.splitlines() if line.strip())
    text = pathlib.Path(path).read_bytes() if os.path.exists(path) else b""
    if known.get(path) != hashlib.md5(text).hexdigest():
        cannot(f"{path} is not as Debian's package {package} has it")
    return text.decode()


def replaced(text, *pairs):
    """The text with other words, each of which must be there."""
    for old, new in pairs:
        assert re.search(old, text, re.MULTILINE), f"{old} is not in the configuration of Debian"
        text = re.sub(old, new, text, flags=re.MULTILINE)
    return text


def free_port():
    """A port of 127.0.0.1 that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class OtherServer:
    """A directory, and the web server that is started in it; a context manager.

    `address` is where vivarium-fcgi is: the path of its socket, or a port of 127.0.0.1.
    """

    program = None

    def __init__(self, address):
        if not shutil.which(self.program, path="/usr/sbin:/usr/bin"):
            cannot(f"{self.program} is not there")
        self.address = address
        self.port = free_port()
        self.process = None
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="viv-"))
        self.installed = self.home / "share"
        self.log = self.home / "log"
        shutil.copytree(ROOT / "www-conf", self.installed)
        shutil.copy(build_file("www-conf/nginx-errors.conf"), self.installed)
        for path in self.installed.glob("*.in"):
            path.with_suffix("").write_text(
                path.read_text().replace("@pkgdatadir@", str(self.installed)))
        (self.home / "www").mkdir()
        (self.home / "www/index.html").write_bytes(INDEX)
        try:
            self.command = self.configure()
        except BaseException:
            shutil.rmtree(self.home)
            raise
        for path in (self.home, *self.home.rglob("*")):
            path.chmod(0o755)
            if os.geteuid() == 0:
                shutil.chown(path, "www-data", "www-data")

    def configure(self):
        """Write the configuration; returns the command."""
        raise NotImplementedError

    def snippets(self):
        """Those of the page, with the places of this directory."""
        return [text.replace(INSTALLED, str(self.installed)) for text in snippets(self.program)]

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*ENDS_WITH_US, *(AS_WWW_DATA if os.geteuid() == 0 else ()),
                 *ENDS_WITH_US, *map(str, self.command)],
                cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            eventually(self._listens)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _listens(self):
        assert self.process.poll() is None, self.log.read_text()
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", self.port)) == 0

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.home)


class Lighttpd(OtherServer):
    """With modules and Vivarium enabled as Debian's tools do it."""

    program = "lighttpd"

    def configure(self):
        home, enabled = self.home, self.home / "conf-enabled"
        enabled.mkdir()
        for name in ("05-setenv.conf", "10-fastcgi.conf"):
            (enabled / name).write_text(
                stock("lighttpd", f"/etc/lighttpd/conf-available/{name}"))
        (enabled / "50-vivarium.conf").write_text(self._place("".join(self.snippets())))
        (home / "lighttpd.conf").write_text(replaced(
            stock("lighttpd", "/etc/lighttpd/lighttpd.conf"),
            (r'^(server\.document-root +=).*', rf'\1 "{home}/www"'),
            (r'^(server\.upload-dirs +=).*', rf'\1 ( "{home}" )'),
            (r"^server\.errorlog .*", ""),
            (r'^(server\.pid-file +=).*', rf'\1 "{home}/pid"'),
            (r"^(server\.port +=).*", rf'\1 {self.port}\nserver.bind = "127.0.0.1"'),
            (r"^include_shell .*use-ipv6.*", ""),
            (r'^include "/etc/lighttpd/conf-enabled/', f'include "{enabled}/')))
        return [self.program, "-D", "-f", home / "lighttpd.conf"]

    def _place(self, text):
        if isinstance(self.address, str):
            return replaced(text, (SOCKET, self.address))
        _, _, instead = snippets("The web server on another host")
        instead = replaced(instead, (r'"10\.0\.0\.2"', '"127.0.0.1"'), ("9000", str(self.address)))
        return replaced(text, (r'^( *include .*/lighttpd-location\.conf")$', rf"\1\n{instead}"))


class Nginx(OtherServer):
    """With Vivarium in the server that is there by default, and in one of its own."""

    program = "nginx"

    def configure(self):
        home = self.home
        upstream, location, server = self.snippets()
        if isinstance(self.address, str):
            upstream = replaced(upstream, (SOCKET, self.address))
        else:
            _, upstream, _ = snippets("The web server on another host")
            upstream = replaced(upstream, (r"10\.0\.0\.2:9000", f"127.0.0.1:{self.address}"))
        folders = "".join(f"{kind}_temp_path {home}/temp;\n" for kind in (
            "client_body", "fastcgi", "proxy", "scgi", "uwsgi"))
        (home / "conf.d").mkdir()
        (home / "conf.d/vivarium.conf").write_text(
            folders + upstream + server.replace("listen 80;", f"listen 127.0.0.1:{self.port};"))
        (home / "sites-enabled").mkdir()
        (home / "sites-enabled/default").write_text(replaced(
            stock("nginx-common", "/etc/nginx/sites-available/default"),
            (r"^\tlisten 80 default_server;", f"listen 127.0.0.1:{self.port} default_server;"),
            (r"^\tlisten \[::\]:80 default_server;", ""),
            (r"^\troot /var/www/html;", f"root {home}/www;"),
            (r"^\tserver_name _;", f"server_name _;\n{location}")))
        (home / "nginx.conf").write_text("daemon off;\n" + replaced(
            stock("nginx-common", "/etc/nginx/nginx.conf"),
            (r"^pid .*", f"pid {home}/pid;"),
            (r"^(\s*)error_log .*", r"\1error_log stderr;"),
            (r"^(\s*)access_log .*", rf"\1access_log {home}/access;"),
            (r"^include /etc/nginx/modules-enabled.*", ""),
            (r"/etc/nginx/(conf\.d|sites-enabled)/", rf"{home}/\1/")))
        return [self.program, "-e", "stderr", "-c", home / "nginx.conf"]


OTHER_SERVERS = {"lighttpd": Lighttpd, "nginx": Nginx}
