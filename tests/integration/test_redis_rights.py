"""The rights that docs/redis.md says a user of Redis needs are enough, and none is missing there."""

import re
from pathlib import Path

from orchard_server import eventually

TOP = Path(__file__).resolve().parents[2]
GREETING = {"ROLE", "INFO", "CLIENT"}  # done without where they are denied


def listed():
    text = (TOP / "docs/redis.md").read_text()
    item = re.search(r"- a user with the commands it needs.*?(?=`ROLE`)", text, re.S)
    return set(re.findall(r"`([A-Z]+)`", item[0]))


def test_every_command_is_listed():
    used = set()
    for path in (TOP / "src").rglob("*.c"):
        text = path.read_text()
        used |= set(re.findall(r"redis\.p?call\('([A-Z]+)'", text))
        used |= set(re.findall(r"redis_args_init\([^;]*;\s*redis_args_text\([^,;]*, \"([A-Z]+)\"", text))
    assert {"TIME", "RPUSH", "XREAD", "PING"} <= used, "nothing is found where commands are"
    assert used - GREETING <= listed()


# All that is shared, done by users who may do no more than that
def test_the_listed_rights_are_enough(redis, make_server):
    redis.call("ACL", "SETUSER", "orchard", "reset", "on", ">secret", "~orchard:*",  # from 6.2 on that takes channels, too
               *(f"+{command.lower()}" for command in sorted(listed())))
    redis.call("ACL", "LOG", "RESET")
    url = redis.url.replace("unix://", "unix://orchard:secret@")
    servers = [make_server(use_redis=True, redis_url=url, redis_lane_seconds=2, workers=1).start() for _ in range(2)]
    for server in servers:
        eventually(lambda s=server: s.client.get("/ready").status_code == 200, 30, "Redis serves it")
    here, there = servers
    box = here.create(labels={"a": "b"})
    eventually(lambda: there.client.get(box.url).status_code == 200, 30, "it is known elsewhere")
    keyed = {"Idempotency-Key": "k"}
    body = {"command": "echo once", "wait": True, "timeout_seconds": 60}
    for server in servers:
        answer = server.client.post(f"{box.url}/exec", json=body, headers=keyed)
        assert answer.status_code == 200 and answer.json()["stdout"] == "once\n", answer.text
    held = box.start("sleep 600")
    box.wait_running(held)
    waits = there.client.post(f"{box.url}/exec", json={"command": "true", "wait": False}).json()["job_id"]
    assert there.client.post(f"/jobs/{waits}/cancel", timeout=90).json()["verdict"] == "canceled"
    assert there.client.post(f"/jobs/{held}/cancel", timeout=90).json()["verdict"] == "canceled"
    assert there.client.post(f"{box.url}/exec", json=body).json()["stdout"] == "once\n"
    assert there.client.delete(box.url).status_code in (200, 202, 204)
    eventually(lambda: here.client.get(box.url).status_code in (404, 410), 30, "it is deleted at home")
    here.stop()
    there.stop()
    denied = {entry[7] for entry in redis.call("ACL", "LOG") if entry[3] != "auth"}
    assert {word.split("|")[0].upper() for word in denied} <= GREETING
