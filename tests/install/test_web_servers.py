# SPDX-License-Identifier: MIT
"""The web servers that a host has already, with the configuration of their packages and ours
added to it, under systemd. Each has other duties as well."""

import http.client
import json
import os
import socket

import pytest

from docs import markdown
from support.client import exec_target, fresh_id
from support.must import cannot
from support.together import eventually

HOST = "python.example.org"
PAGE = "/var/www/html/page.html"


@pytest.fixture(scope="module")
def served(host):
    """Vivarium without a web server, and a page that is none of its own."""
    host.run("systemctl", "start", "vivarium-executor", "vivarium-fcgi")
    host.write(PAGE, "<p>something else</p>")
    return host


def start(host, unit, configure):
    """Start a web server as its package does, with what `configure` writes."""
    if not host.path(f"/lib/systemd/system/{unit}.service").exists():
        cannot(f"{unit} is not there")
    configure(host)
    host.run("systemctl", "start", unit)
    eventually(listens)


def listens():
    """True when somebody takes connections at port 80."""
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", 80)) == 0


def configurations(web_server):
    """What the page for operators has for it."""
    section = markdown.section(markdown.read("docs/web-servers.md"), web_server)
    return [text for language, text in markdown.blocks(section) if language in ("", "nginx")]


def configure_nginx(host):
    """A prefix in the server that the package has, and a server of its own."""
    upstream, location, server = configurations("nginx")
    host.write("/etc/nginx/conf.d/vivarium.conf", upstream + server)
    site = host.path("/etc/nginx/sites-available/default")
    text = site.read_text()
    assert text.count("\tserver_name _;\n") == 1
    site.write_text(text.replace("\tserver_name _;\n", "\tserver_name _;\n" + location))


def configure_lighttpd(host):
    """A prefix, and a name of its own."""
    host.write("/etc/lighttpd/conf-available/50-vivarium.conf",
               "\n".join(configurations("lighttpd")))
    # 2: one of them was enabled
    done = host.run("lighty-enable-mod", "fastcgi", "setenv", "vivarium", check=False)
    assert done.returncode in (0, 2), done.stderr


@pytest.fixture(scope="module", params=["nginx", "lighttpd"])
def web_server(request, served):
    """One of them, on port 80."""
    configure = {"nginx": configure_nginx, "lighttpd": configure_lighttpd}[request.param]
    start(served, request.param, configure)
    yield request.param
    served.run("systemctl", "stop", request.param)


def ask(method, target, body=None, host="localhost"):
    """One request to port 80: status, content type, body."""
    connection = http.client.HTTPConnection("127.0.0.1", 80, timeout=90)
    headers = {"Host": host, "Content-Type": "application/json"}
    try:
        connection.request(method, target, body and json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get_content_type(), answer.read()
    finally:
        connection.close()


def healthy():
    """True when the whole chain answers."""
    return ask("GET", "/python/health")[0] == 200


def test_it_serves_as_an_ordinary_user(served, web_server):
    def users():
        return set(served.output("ps", "-C", web_server, "-o", "user:20=").split())

    eventually(lambda: "www-data" in users())  # nginx makes its workers when it serves already
    assert users() <= {"www-data", "root"}


def test_its_other_duties_are_as_they_were(web_server):
    assert ask("GET", "/page.html") == (200, "text/html", b"<p>something else</p>")
    status, kind, _ = ask("GET", "/nothing")
    assert (status, kind) == (404, "text/html")


def test_health_below_a_path(web_server):
    eventually(healthy, within=30)
    status, kind, body = ask("GET", "/python/health")
    assert (status, kind) == (200, "application/json")
    assert json.loads(body)["status"] == "healthy"


def test_code_and_files_below_a_path(web_server):
    large = os.urandom(250000).hex()  # more than either keeps in memory
    target = "/python" + exec_target(fresh_id())
    code = "data = input()[:100]\nopen('f', 'w').write(data)"
    _, _, body = ask("POST", target, {"code": code, "stdin": large})
    answer = json.loads(body)
    assert answer["result"]["final_expression"] == 100, answer
    assert [entry["filename"] for entry in answer["result"]["output_files"]] == ["f"]
    assert json.loads(ask("POST", target, {"code": "len(data)"})[2])["session"]["lost"] == "none"


@pytest.mark.parametrize("method, target, status, kind", [
    ("GET", "/python/nowhere", 404, "not_found"),
    ("GET", "/python/exec?sessionId=a", 405, "method"),
    ("POST", "/python/exec", 422, "validation"),
])
def test_errors_are_json_below_a_path(web_server, method, target, status, kind):
    answer = ask(method, target, {"code": "1"} if method == "POST" else None)
    assert answer[:2] == (status, "application/json")
    assert json.loads(answer[2])["error"]["type"] == kind


def test_its_own_errors_are_json_there(served, web_server):
    served.run("systemctl", "stop", "vivarium-fcgi")
    status, kind, body = ask("GET", "/python/health")
    served.run("systemctl", "start", "vivarium-fcgi")
    assert (status, kind) == (502 if web_server == "nginx" else 503, "application/json")
    assert json.loads(body)["error"]["type"] == "system"
    eventually(healthy, within=30)


def test_a_name_of_its_own(web_server):
    assert ask("GET", "/health", host=HOST)[0] == 200
    _, _, body = ask("POST", exec_target(fresh_id()), {"code": "6 * 7"}, HOST)
    assert json.loads(body)["result"]["final_expression"] == 42
    status, kind, _ = ask("GET", "/page.html", host=HOST)
    assert (status, kind) == (404, "application/json")
