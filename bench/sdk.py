# SPDX-License-Identifier: MIT
"""Many sandboxes at once through the Python SDK, by one asyncio program: what fails, how long it takes, what the client costs."""

import asyncio
import resource
import sys
import time
from pathlib import Path

from measure import median_ms, show
from own_server import OwnServer

EXECS = 8  # commands of each sandbox


def cpu_of_client():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def one(client, spent, failures):
    from orchard_env import SandboxError

    try:
        async with client.create_sandbox("default") as sandbox:
            for number in range(EXECS):
                begin = time.monotonic()
                job = await sandbox.exec(["/bin/echo", str(number)])
                spent.append(time.monotonic() - begin)
                if job.stdout != f"{number}\n":
                    failures.append(job)
    except SandboxError as error:
        failures.append(error)


async def all_at_once(server, count):
    from orchard_env import AsyncSandboxClient

    spent, failures = [], []
    begin, cpu = time.monotonic(), cpu_of_client()
    async with AsyncSandboxClient(server.url, server.key) as client:
        await asyncio.gather(*(one(client, spent, failures) for _ in range(count)))
    took, cpu = time.monotonic() - begin, cpu_of_client() - cpu
    requests = count * (EXECS + 3)  # with create, wait and delete
    show(f"SDK, {count} sandboxes at once", f"{count - len(failures)} went well; {took:.1f} s for {len(spent)} commands, median "
         f"{median_ms(spent):.0f} ms, p99 {sorted(spent)[len(spent) * 99 // 100] * 1000:.0f} ms; client {cpu / requests * 1000:.1f} ms CPU a request")


def bench_sdk(options):
    """Needs what the SDK needs: httpx and websockets."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sdk" / "python" / "src"))
    with OwnServer(options.build, options.image, default_memory="64Mi", default_cpu="0.1",
                   max_sandboxes=2 * options.boxes, exec_queue_limit=2 * options.boxes) as server:
        asyncio.run(all_at_once(server, options.boxes))
