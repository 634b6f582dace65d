"""Ten thousand requests later the server is as small as before."""

from concurrent.futures import ThreadPoolExecutor

import httpx

from orchard_server import SANITIZED, eventually


def footprint(server):
    """Private memory in KiB and open descriptors, over all processes."""
    memory = descriptors = 0
    import os
    for role in server.processes().values():
        for pid in role:
            with open(f"/proc/{pid}/smaps_rollup") as rollup:
                memory += sum(int(line.split()[1]) for line in rollup if line.startswith(("Private_Clean", "Private_Dirty")))
            descriptors += len(os.listdir(f"/proc/{pid}/fd"))
    return memory, descriptors


def test_no_leak_over_ten_thousand_requests(make_server, busybox):
    server = make_server().start()
    box = server.create(image=busybox)
    job = box.exec("echo warm")["job_id"]

    def burst(count):
        with httpx.Client(base_url=str(server.client.base_url), headers=server.client.headers) as own:
            for number in range(count):
                own.get("/health")
                own.get(box.url)
                own.get(f"/jobs/{job}")
                own.post("/sandboxes", json={"image": 5})
                if number % 10 == 0:
                    own.post(f"{box.url}/exec", json={"command": "echo hi", "wait": True})
    with ThreadPoolExecutor(8) as pool:  # every worker opens what it keeps open
        list(pool.map(burst, [100] * 8))
    memory_before, descriptors_before = footprint(server)
    burst(2500)
    eventually(lambda: footprint(server)[1] <= descriptors_before + 4, 10, "descriptors are given back")
    memory_after, _ = footprint(server)
    assert SANITIZED or memory_after - memory_before < 1500, (memory_before, memory_after)
