"""Whose a namespace is, by a Lease of a real API server: one server without Redis at a time."""

import httpx
import pytest

from orchard_server import eventually


@pytest.fixture
def pair(make_pod_server):
    """Two servers of one namespace; the first has it."""
    first = make_pod_server(cleanup_interval_seconds=1).start()
    second = make_pod_server(namespace=first.namespace, cleanup_interval_seconds=1)
    yield first, second
    for one in first, second:
        if one.process is not None and one.process.poll() is None:
            one.kill_all()


def lease(server):
    return server.cluster.get(f"/apis/coordination.k8s.io/v1/namespaces/{server.namespace}/leases/orchard")


def holder(server):
    return lease(server)["spec"].get("holderIdentity", "")


def answer_of(server):
    """Of /ready; None while nobody answers there."""
    try:
        return server.client.get("/ready")
    except httpx.TransportError:
        return None


def waits(server):
    server.spawn()

    def told():
        answer = answer_of(server)
        return answer is not None and answer.status_code == 503 and "holds the namespace" in answer.text
    eventually(told, 30, server.log)


def test_who_leaves_gives_the_namespace_back(pair):
    first, second = pair
    box, name = first.create(), holder(first)
    waits(second)
    assert name in answer_of(second).text
    renewed = lease(first)["spec"]["renewTime"]
    eventually(lambda: lease(first)["spec"]["renewTime"] != renewed, 30, "it is renewed")
    assert first.pod(box.id) is not None and holder(first) == name
    box.delete()
    assert first.stop() == 0, first.log()
    second.wait_ready()
    assert holder(second) not in ("", name)
    other = second.create()
    other.delete()
    assert second.stop() == 0, second.log()
    assert holder(second) == ""


def test_who_is_killed_has_it_until_it_runs_out(pair):
    first, second = pair
    box, before = first.create(), lease(first)["spec"]
    waits(second)
    first.kill_all()
    second.wait_ready(90)
    assert lease(second)["spec"]["leaseTransitions"] == before.get("leaseTransitions", 0) + 1
    eventually(lambda: second.pod(box.id) is None, 90, "the pod that it has no record of")
    waits(first)  # which finds the namespace taken
    assert second.stop() == 0, second.log()
    first.wait_ready()


def test_a_lease_that_is_edited_is_believed(pair):
    first, _ = pair
    first.cluster.kubectl("-n", first.namespace, "patch", "lease", "orchard", "--type=merge",
                          "-p", '{"spec": {"holderIdentity": "jo", "leaseDurationSeconds": 3600}}')
    eventually(lambda: "another server, jo, holds" in answer_of(first).text, 30, first.log)
    first.cluster.kubectl("-n", first.namespace, "delete", "lease", "orchard")
    first.wait_ready()
    assert holder(first) not in ("", "jo")


def test_an_account_without_the_right_goes_on_as_before(make_pod_server):
    server = make_pod_server()
    role = ("-n", server.namespace, "patch", "role", "orchard", "--type=json", "-p")
    rules = server.cluster.get(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{server.namespace}/roles/orchard")["rules"]
    for number in sorted((at for at, rule in enumerate(rules) if "leases" in rule["resources"]), reverse=True):
        server.cluster.kubectl(*role, f'[{{"op": "remove", "path": "/rules/{number}"}}]')
    server.start()
    server.create().delete()
    assert "no Lease guards the namespace" in server.log(1_000_000) and lease(server) is None
