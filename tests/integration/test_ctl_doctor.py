"""orchardctl doctor on the server's host: what its settings say of Redis and of a cluster, and the commands that mend it."""

import json
import re
import shutil

import pytest

from ctl import Ctl
from fake_cluster import REVIEWS, WHOAMI
from orchard_server import REPO
from redis_server import Redis


def examine(server, home, conf, **env):
    done = Ctl(server, home).run("doctor", "-o", "json", "--retry", "0", "--conf", str(conf), env=env)
    found = {}
    for one in json.loads(done.stdout):
        found.setdefault(one["check"], []).append(one)
    return done.returncode, found


@pytest.fixture
def redis(server, tmp_path):
    made = []

    def look(*arguments, **changes):
        if not made:
            made.append(Redis(*arguments).start())
        for name, value in changes.items():
            assert made[0].call("CONFIG", "SET", name.replace("_", "-"), value) == "OK"
        return made[0], lambda url=made[0].url: examine(
            server, tmp_path, server.conf_path, USE_REDIS="on", REDIS_URL=url)[1]
    yield look
    for one in made:
        one.close()


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_doctor_looks_at_what_redis_keeps(redis):
    server, found = redis(maxmemory_policy="allkeys-lru")
    seen = found()
    assert seen["redis-server"][0]["result"] == "ok" and "takes writes" in seen["redis-server"][0]["message"], seen
    cli = f"redis-cli -s '{server.socket}'"
    assert (seen["redis-memory"][0]["result"], seen["redis-disk"][0]["result"]) == ("warn", "warn"), seen
    assert seen["redis-memory"][0]["cure"].startswith(f"{cli} config set maxmemory-policy noeviction")
    assert seen["redis-disk"][0]["cure"].startswith(f"{cli} config set appendonly yes")
    redis(maxmemory_policy="noeviction", appendonly="yes")
    seen = found()
    assert (seen["redis-memory"][0]["result"], seen["redis-disk"][0]["result"]) == ("ok", "ok"), seen
    redis(maxmemory="1")
    seen = found()["redis-server"][0]
    assert seen["result"] == "fail" and "takes no writes" in seen["message"] and "config set maxmemory" in seen["cure"], seen


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_doctor_looks_at_who_redis_takes_us_for(redis):
    server, found = redis()
    assert server.call("ACL", "SETUSER", "low", "on", ">low", "~*", "+ping", "+set", "+role") == "OK"

    def of(user):
        return found(f"unix://{user}{server.socket}")["redis-server"][0]
    low = of("low:low@")
    assert low["result"] == "warn" and "+info" in low["cure"], low
    wrong = of("low:secret-word@")
    assert wrong["result"] == "fail" and "WRONGPASS" in wrong["message"] and "--askpass" in wrong["cure"], wrong
    assert "secret-word" not in json.dumps(wrong)
    assert server.call("ACL", "SETUSER", "low", "-ping") == "OK"
    assert "acl list" in of("low:low@")["cure"]
    assert server.call("CONFIG", "SET", "requirepass", "word") == "OK"
    without = of("")
    assert without["result"] == "fail" and "password into redis_url" in without["cure"], without


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_doctor_tells_a_replica_and_one_that_is_away(redis):
    server, found = redis("--replicaof", "127.0.0.1", "1")
    replica = found()["redis-server"][0]
    assert replica["result"] == "fail" and "replica" in replica["message"] and " role" in replica["cure"], replica
    away = found("redis://127.0.0.1:1")["redis-server"][0]
    assert away["result"] == "fail" and away["cure"].startswith("redis-cli -h 127.0.0.1 -p 1 ping"), away
    nothing = found("unix:///nowhere")["redis-server"][0]
    assert nothing["result"] == "fail" and "No such file" in nothing["message"], nothing
    assert found("rediss://host")["redis-server"][0]["result"] == "fail"


def test_doctor_on_the_host_needs_no_key_of_its_own(server, tmp_path):
    ctl = Ctl(server, tmp_path)
    del ctl.env["SANDBOX_API_KEY"]
    words = ("doctor", "-o", "json", "--retry", "0")

    def key(*more, **env):
        return next(one["result"] for one in json.loads(ctl.run(*words, *more, env=env).stdout) if one["check"] == "key")
    assert key("--conf", str(server.conf_path)) == "ok"
    assert key("--no-host") == "fail"
    assert key("--conf", str(server.conf_path), SANDBOX_API_KEY="wrong") == "fail"


@pytest.fixture
def cluster(make_play, tmp_path):
    play = make_play()
    play.server.write_conf()
    return play.cluster, lambda **env: examine(play.server, tmp_path, play.server.conf_path, **env)[1]


def test_doctor_asks_for_the_rights_that_the_server_is_given(cluster):
    cluster, found = cluster
    seen = found()
    assert seen["kubernetes"][0]["result"] == "ok" and str(cluster.kubeconfig) in seen["kubernetes"][0]["message"], seen
    assert [one["result"] for one in seen["rights"]] == ["ok"] and cluster.user in seen["rights"][0]["message"], seen
    asked = {(what["resource"], what["verb"]) for what in
             (body["spec"]["resourceAttributes"] for body in cluster.asked("POST", REVIEWS))}
    rules = re.findall(r"resources: \[(\w+)\]\n(?:.*resourceNames.*\n)? *verbs: \[([\w, ]+)\]",
                       (REPO / "k8s/base/rbac.yaml").read_text())
    assert asked == {(resource, verb) for resource, verbs in rules for verb in verbs.split(", ")}


def test_doctor_gives_the_command_that_grants_a_right(cluster):
    cluster, found = cluster
    cluster.denied = {("create", "pods"), ("delete", "pods"), ("list", "nodes"), ("get", "namespaces")}
    pods, nodes, spaces = found()["rights"]
    assert pods["result"] == "fail" and f"{cluster.user} may not create,delete pods in sandbox-pods" == pods["message"]
    assert pods["cure"] == (
        "kubectl -n sandbox-pods create role orchard-pods --verb=create,delete --resource=pods && kubectl -n "
        "sandbox-pods create rolebinding orchard-pods --role=orchard-pods --serviceaccount=orchard:orchard")
    assert "create clusterrole orchard-nodes --verb=list --resource=nodes" in nodes["cure"]
    assert "--resource=namespaces --resource-name=sandbox-pods" in spaces["cure"]
    cluster.denied = {("update", "leases")}
    lease = found()["rights"][0]
    assert lease["result"] == "warn" and "second server" in lease["message"], lease
    assert "create role orchard-leases --verb=update --resource=leases.coordination.k8s.io" in lease["cure"]
    cluster.denied, cluster.user = {("watch", "pods")}, "jo@example"
    assert "--user='jo@example'" in found()["rights"][0]["cure"]
    cluster.fail("POST", WHOAMI, 404)
    assert "--user='NAME'" in found()["rights"][0]["cure"]


def test_doctor_tells_an_api_server_that_does_not_take_us(cluster, tmp_path):
    cluster, found = cluster
    cluster.fail("POST", REVIEWS, *[401] * 13)
    seen = found()["rights"]
    assert [one["result"] for one in seen] == ["fail"] and "credentials" in seen[0]["cure"], seen
    config = json.loads(cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:1"
    (tmp_path / "away").write_text(json.dumps(config))
    seen = found(KUBECONFIG=str(tmp_path / "away"))["rights"]
    assert [one["result"] for one in seen] == ["fail"] and "get --raw /readyz" in seen[0]["cure"], seen
    assert found(KUBECONFIG="/none")["kubernetes"][0]["result"] == "fail"
    assert "kubectl -n orchard exec" in found(IN_CLUSTER="on")["kubernetes"][0]["cure"]
