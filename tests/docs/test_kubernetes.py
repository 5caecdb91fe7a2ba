# SPDX-License-Identifier: MIT
"""The manifests for Kubernetes, without a cluster: against the types of its API as the Python
client has them, the settings, and the services' own port and path."""

import json
import os
import re
import subprocess

import pytest
import yaml

from docs import markdown, memory, sources
from support.must import cannot

FOLDER = "contrib/kubernetes"
# fields that are younger than the client of some releases of Debian
YOUNGER = {"hostUsers": bool, "appArmorProfile": dict}


def merge(base, patch):
    """A strategic merge: lists of objects with names by these, other lists replaced."""
    if isinstance(base, dict) and isinstance(patch, dict):
        merged = {**base, **{key: merge(base.get(key), value) for key, value in patch.items()}}
        return {key: value for key, value in merged.items() if value is not None}
    if isinstance(patch, list) and all(isinstance(item, dict) and "name" in item
                                       for item in patch):
        by_name = {item["name"]: item for item in base or []}
        for item in patch:
            by_name[item["name"]] = merge(by_name.get(item["name"], {}), item)
        return list(by_name.values())
    return patch


def documents(variant):
    """The objects of a variant: the manifest, or what the patch makes of it."""
    found = list(yaml.safe_load_all(markdown.read(f"{FOLDER}/vivarium.yaml")))
    if variant == "confined":
        found[0] = merge(found[0], yaml.safe_load(markdown.read(f"{FOLDER}/confined.yaml")))
    return found


@pytest.fixture(params=["isolated", "confined"])
def objects(request):
    """The objects of each variant by kind and name."""
    found = documents(request.param)
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


@pytest.fixture
def pod(objects):
    """The pod's specification."""
    return objects["StatefulSet", "vivarium"]["spec"]["template"]["spec"]


@pytest.fixture
def container(pod):
    """Its container."""
    assert len(pod["containers"]) == 1
    return pod["containers"][0]


@pytest.fixture
def environment(container):
    """The container's variables."""
    return {entry["name"]: entry["value"] for entry in container["env"]}


def setting(environment, key):
    """The value of a setting in the pod."""
    default = {each.key: each.default for each in sources.settings()}[key]
    return environment.get(f"VIVARIUM_{key.upper()}", default)


# Against the API's types

MODELS = {"StatefulSet": "V1StatefulSet", "Service": "V1Service",
          "NetworkPolicy": "V1NetworkPolicy"}
PLAIN = {"str": str, "int": int, "bool": bool, "object": (str, int)}  # object: a name or number


def check(value, kind, models, place):
    """Hold a value against a type of the client: no field that it does not know."""
    container = re.fullmatch(r"(list|dict)[\[(](?:str, ?)?(\w+)[\])]", kind)
    if container:
        assert type(value).__name__ == container[1], place
        for key, item in value.items() if container[1] == "dict" else enumerate(value):
            check(item, container[2], models, f"{place}.{key}")
    elif kind in PLAIN:
        assert isinstance(value, PLAIN[kind]), (place, value)
        assert kind == "bool" or not isinstance(value, bool), place
    else:
        model = getattr(models, kind)
        types = {name: model.openapi_types[attribute]
                 for attribute, name in model.attribute_map.items()}
        assert isinstance(value, dict), place
        for name, item in value.items():
            if name not in types and name in YOUNGER:
                assert isinstance(item, YOUNGER[name]), place
                continue
            assert name in types, f"{place}: there is no field {name}"
            check(item, types[name], models, f"{place}.{name}")


def test_every_field_is_one_of_the_api(objects):
    try:
        from kubernetes.client import models
    except ImportError:
        cannot("the client is not there; Debian package: python3-kubernetes")
    for (kind, name), each in objects.items():
        check(each, MODELS[kind], models, f"{kind} {name}")


def test_a_field_that_is_none_is_found():
    try:
        from kubernetes.client import models
    except ImportError:
        cannot("the client is not there; Debian package: python3-kubernetes")
    for spec in ({"replica": 1}, {"replicas": "1"}, {"template": {"spec": {"containers": {}}}}):
        with pytest.raises(AssertionError):
            check({"spec": spec}, "V1StatefulSet", models, "")


# Among themselves

def test_objects_find_each_other(objects, container):
    stateful = objects["StatefulSet", "vivarium"]["spec"]
    labels = stateful["template"]["metadata"]["labels"]
    assert stateful["selector"]["matchLabels"] == labels
    assert objects["Service", stateful["serviceName"]]["spec"]["clusterIP"] == "None"
    for service in (value["spec"] for (kind, _), value in objects.items() if kind == "Service"):
        assert service["selector"] == labels
        assert [port["targetPort"] for port in service["ports"]] == ["http"]
    policy = objects["NetworkPolicy", "vivarium"]["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert policy["egress"] == [] and "Egress" in policy["policyTypes"]
    assert [port["port"] for port in policy["ingress"][0]["ports"]] == ["http"]
    assert [port["name"] for port in container["ports"]] == ["http"]


def test_mounts_are_volumes_in_memory(pod, container):
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume["emptyDir"]["medium"] for volume in pod["volumes"]}
    assert volumes == dict.fromkeys(mounts, "Memory")
    assert {"/tmp", "/dev/shm"} <= set(mounts.values())


# Against the services

def test_the_port_is_the_web_servers(objects, container):
    port = int(re.search(r"server\.port = (\d+)", markdown.read("www-conf/lighttpd.conf.in"))[1])
    assert [each["containerPort"] for each in container["ports"]] == [port]
    for service in (value["spec"] for (kind, _), value in objects.items() if kind == "Service"):
        assert [each["port"] for each in service["ports"]] == [port]


# without vivarium-executor /health is 503 and /sessions is not
@pytest.mark.parametrize("probe, path", [
    ("startupProbe", "/health"), ("readinessProbe", "/health"), ("livenessProbe", "/sessions")])
def test_probes_ask_for_what_is_there(container, probe, path):
    get = container[probe]["httpGet"]
    assert get == {"path": path, "port": "http"}
    assert f'"{get["path"]}"' in markdown.read("fcgi-app/routes.c")


@pytest.mark.parametrize("program", ["vivarium-fcgi", "vivarium-executor"])
def test_variables_are_settings(environment, program):
    keys = {f"VIVARIUM_{each.key.upper()}" for each in sources.settings()}
    assert set(environment) <= keys
    done = subprocess.run([sources.program(program), "-f", os.devnull, "-t",
                           "--executor_client=root"], env=environment,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_it_is_not_ended_before_its_calls(pod, environment):
    seconds = int(setting(environment, "stop_timeout").removesuffix("s"))
    assert pod["terminationGracePeriodSeconds"] >= seconds + 5


def test_clients_stay_with_a_pod_for_as_long_as_their_sessions(objects, environment):
    service = objects["Service", "vivarium"]["spec"]
    minutes = int(setting(environment, "session_idle_timeout").removesuffix("m"))
    assert service["sessionAffinity"] == "ClientIP"
    assert service["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"] > 60 * minutes


def test_the_limit_of_memory_holds_the_sum(pod, container, environment):
    most = memory.Most(environment, [each["emptyDir"]["sizeLimit"] for each in pod["volumes"]])
    limit = memory.size(container["resources"]["limits"]["memory"])
    lines = markdown.rows(markdown.section(markdown.read(f"{FOLDER}/README.md"),
                                           "Memory and processors"))
    assert [cells[1] for cells in lines] == [
        f"{most.sessions} × {most.session} MiB", f"{most.pool} MiB", f"{memory.SERVICES} MiB",
        f"{most.in_flight} MiB", f"{most.volumes} MiB", f"{most.total():,} MiB of {limit:,}"]
    assert most.total() <= limit


def test_what_the_tiers_need(objects, pod, container, environment):
    tier = environment["VIVARIUM_MIN_ISOLATION"]
    profile = pod["securityContext"]["seccompProfile"]
    for field in ("hostUsers", "automountServiceAccountToken", "enableServiceLinks"):
        assert pod[field] is False
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    added = container["securityContext"]["capabilities"].get("add", [])
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
    if tier == "isolated":
        assert profile == {"type": "Localhost", "localhostProfile": "vivarium.json"}
        assert pod["securityContext"]["runAsUser"] != 0 and added == []
    else:
        needed = re.findall(r"\{CAP_(\w+),", sources.listing(
            "executor/launcher/probe_confinement.c", "needed"))
        assert tier == "confined" and profile == {"type": "RuntimeDefault"}
        assert pod["securityContext"]["runAsUser"] == 0
        assert sorted(added) == sorted([*needed, "MKNOD"])


def test_the_profile_is_one_that_every_runtime_reads_alike():
    profile = json.loads(markdown.read("contrib/docker/seccomp.json"))
    assert set(profile) <= {"defaultAction", "defaultErrnoRet", "architectures", "syscalls"}
    for rule in profile["syscalls"]:  # conditions, which Docker has besides, are passed over there
        assert set(rule) <= {"names", "action", "errnoRet", "args", "comment"}


def test_the_readme_says_that_no_cluster_has_seen_them():
    assert "have not been run on a cluster" in markdown.read(f"{FOLDER}/README.md")
