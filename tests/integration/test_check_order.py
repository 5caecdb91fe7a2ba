# SPDX-License-Identifier: MIT
"""Of several faults the first in the order of the contract is answered."""

import json

import pytest

from support.client import exec_target
from support.witness import CODE

# each fault, in the order in which they are looked for: what it does to a good request, and the
# answer that it deserves
FAULTS = [
    ("method", {"method": "PUT"}, 405, "method"),
    ("content type", {"content_type": "text/plain"}, 415, "validation"),
    ("session id", {"target": "/exec?sessionId=a%00"}, 422, "validation"),
    ("JSON", {"spoil": True}, 400, "validation"),
    ("types", {"timeout_ms": "soon"}, 422, "validation"),
    ("counts", {"count": 11}, 413, "resource_limit"),
    ("names", {"name": "../x"}, 422, "parsing"),
    ("base64", {"data": "Q"}, 422, "parsing"),
]


def send(client, target="/exec?sessionId=order", method="POST", content_type="application/json",
         spoil=False, timeout_ms=1000, count=2, name="f", data="QQ=="):
    """Send a request that is good but for what the arguments say."""
    files = [{"filename": f"{name}{n}", "b64_data": data} for n in range(count)]
    body = json.dumps({"code": CODE, "timeout_ms": timeout_ms, "files": files}).encode()
    return client.request(method, target, body[:-1] if spoil else body,
                          {"Content-Type": content_type})


@pytest.mark.parametrize("first", range(len(FAULTS)), ids=[fault[0] for fault in FAULTS])
def test_the_first_of_all_later_faults_is_answered(client, first):
    _, _, status, kind = FAULTS[first]
    faults = {}
    for _, fault, _, _ in FAULTS[first:]:
        faults.update(fault)
    answer = send(client, **faults)
    assert (answer.status, answer.error_type) == (status, kind)


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[fault[0] for fault in FAULTS])
def test_each_fault_alone_is_answered_the_same(client, number):
    _, fault, status, kind = FAULTS[number]
    answer = send(client, **fault)
    assert (answer.status, answer.error_type) == (status, kind)


def test_an_unknown_path_comes_before_everything(client):
    answer = send(client, target="/run?sessionId=", method="PUT", content_type="x", spoil=True)
    assert (answer.status, answer.error_type) == (404, "not_found")


def test_names_come_before_base64_whichever_file_they_belong_to(client, session):
    answer = client.post(exec_target(session.name), {"code": "1", "files": [
        {"filename": "a", "b64_data": "Q"}, {"filename": "../b", "b64_data": "QQ=="}]})
    assert (answer.status, answer.error_type) == (422, "parsing")
    assert "files[1]" in answer.error["message"]


def test_without_a_fault_the_same_request_runs(client):
    assert send(client).status == 200
