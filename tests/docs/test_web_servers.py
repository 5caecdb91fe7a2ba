# SPDX-License-Identifier: MIT
"""lighttpd and nginx are given the same rules."""

import re

import pytest

from docs import markdown, sources

LIGHTTPD_SERVER = "www-conf/rules.conf"
LIGHTTPD_LOCATION = "www-conf/lighttpd-location.conf"
SERVER = "www-conf/nginx-server.conf.in"
LOCATION = "www-conf/nginx-location.conf.in"
DOCUMENTS = sorted(path.stem for path in (markdown.ROOT / "www-conf/errors").glob("*.html"))


@pytest.mark.parametrize("lighttpd, nginx", [
    (r"max-request-size = (\d+)", r"client_max_body_size (\d+)k;"),
    (r'"connect-timeout" +=> (\d+)', r"fastcgi_connect_timeout (\d+)s;"),
    (r'"write-timeout" +=> (\d+)', r"fastcgi_send_timeout (\d+)s;"),
    (r'"read-timeout" +=> (\d+)', r"fastcgi_read_timeout (\d+)s;"),
    (r"max-read-idle = (\d+)", r"client_body_timeout (\d+)s;"),
])
def test_limits_and_times_of_a_location(lighttpd, nginx):
    assert sources.constant(LIGHTTPD_LOCATION, lighttpd) == sources.constant(LOCATION, nginx)


@pytest.mark.parametrize("lighttpd, nginx", [
    (r"max-keep-alive-idle = (\d+)", r"keepalive_timeout (\d+)s;"),
    (r"max-keep-alive-requests = (\d+)", r"keepalive_requests (\d+);"),
])
def test_limits_and_times_of_a_server(lighttpd, nginx):
    assert sources.constant(LIGHTTPD_SERVER, lighttpd) == sources.constant(SERVER, nginx)


def test_the_time_for_headers_is_that_for_the_body():
    assert sources.constant(SERVER, r"client_header_timeout (\d+)s;") \
        == sources.constant(LOCATION, r"client_body_timeout (\d+)s;")


def test_the_room_for_headers():
    size = sources.constant(LIGHTTPD_SERVER, r"max-request-field-size = (\d+)")
    assert f"client_header_buffer_size {size // 1024}k;" in markdown.read(SERVER)
    assert f"have room for {size // 1024} KiB together" in \
        " ".join(markdown.read("docs/api.md").split())


def test_the_page_names_the_largest_body():
    size = sources.constant(LIGHTTPD_LOCATION, r"max-request-size = (\d+)")
    assert f"The web server refuses above {size} KiB" in markdown.read("docs/operations.md")


def test_every_error_document_is_used_by_nginx():
    pages = re.findall(r"^error_page (\d+) /vivarium-error/(\d+);$",
                       markdown.read("www-conf/nginx-error-pages.conf"), re.MULTILINE)
    assert pages == [(status, status) for status in DOCUMENTS]


def test_errors_that_nginx_alone_knows_become_errors_of_http():
    pages = re.findall(r"^error_page ([\d ]+) =(\d+) /vivarium-error/(\d+);$",
                       markdown.read("www-conf/nginx-error-pages.conf"), re.MULTILINE)
    assert pages == [("494", "431", "431"), ("495 496 497", "400", "400")]


def test_no_error_page_leads_anywhere_else():
    text = markdown.read("www-conf/nginx-error-pages.conf")
    assert text.count("error_page") == len(DOCUMENTS) + 2
