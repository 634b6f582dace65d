#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A rollout loop: many sandboxes at once, several turns in each, one line of JSON for each rollout.

The environment is a small game: a number is hidden in the sandbox, and a program there tells whether a guess is too
low or too high. The policy bisects; put your model in its place.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import time

from orchard_env import AsyncSandboxClient, SandboxError

GAME = """#!/bin/sh
read hidden < /tmp/game/hidden
if [ "$1" -lt "$hidden" ]; then echo low; elif [ "$1" -gt "$hidden" ]; then echo high; else echo right; fi
"""


class Policy:
    """Plays by halves. `act` gets what the environment answered last and gives the next guess."""

    def __init__(self, top):
        self.low, self.high, self.guess = 1, top, None

    def act(self, answer):
        if answer == "low":
            self.low = self.guess + 1
        elif answer == "high":
            self.high = self.guess - 1
        self.guess = (self.low + self.high) // 2
        return self.guess


async def play(sandbox, options, seed):
    """One episode: reward 1 when the number was found within the turns allowed."""
    hidden = random.Random(seed).randint(1, options.top)
    await sandbox.upload_content(GAME, "/tmp/game/guess")
    await sandbox.upload_content(f"{hidden}\n", "/tmp/game/hidden")
    policy, answer, latencies = Policy(options.top), None, []
    for turn in range(1, options.turns + 1):
        start = time.monotonic()
        job = await sandbox.exec(["sh", "/tmp/game/guess", str(policy.act(answer))], timeout=30)
        latencies.append(time.monotonic() - start)
        if not job.succeeded:
            raise RuntimeError(f"the game ended with {job.verdict} {job.exit_code}: {job.stderr}")
        answer = job.stdout.strip()
        if answer == "right":
            return {"reward": 1, "turns": turn}, latencies
    return {"reward": 0, "turns": options.turns}, latencies


async def rollout(client, options, seed):
    """A fault of one rollout is its result; the others go on."""
    try:
        # The time to live is for the case that this program is killed before it can delete anything.
        async with client.create_sandbox(
            options.image, cpu="0.1", memory="64Mi", ttl_seconds=900, labels={"run": options.run}
        ) as sandbox:
            result, latencies = await play(sandbox, options, seed)
    except (SandboxError, RuntimeError) as error:
        result, latencies = {"error": str(error)}, []
    return {"seed": seed} | result, latencies


async def run(options):
    start = time.monotonic()
    room = asyncio.Semaphore(options.parallel)

    async def one(client, seed):
        async with room:
            return await rollout(client, options, seed)

    async with AsyncSandboxClient() as client:
        outcomes = await asyncio.gather(*(one(client, seed) for seed in range(options.rollouts)))
    for result, _ in outcomes:
        print(json.dumps(result))
    return report(
        [result for result, _ in outcomes], [t for _, some in outcomes for t in some], time.monotonic() - start
    )


def report(results, latencies, took):
    failed = [result for result in results if "error" in result]
    won = sum(result.get("reward", 0) for result in results)
    latencies.sort()
    print(
        f"{len(results)} rollouts in {took:.1f} s: {won} won, {len(failed)} failed; {len(latencies)} turns",
        file=sys.stderr,
    )
    if latencies:
        print(
            f"a turn took {statistics.median(latencies) * 1000:.1f} ms (median), "
            f"{latencies[len(latencies) * 99 // 100] * 1000:.1f} ms (99 of 100)",
            file=sys.stderr,
        )
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", default="default", help="image of the sandboxes (default %(default)s)")
    parser.add_argument("--rollouts", type=int, default=200, help="how many in all (default %(default)s)")
    parser.add_argument("--parallel", type=int, default=200, help="how many at once (default %(default)s)")
    parser.add_argument("--turns", type=int, default=10, help="guesses allowed (default %(default)s)")
    parser.add_argument("--top", type=int, default=1000, help="highest number (default %(default)s)")
    parser.add_argument("--run", default="rollouts-example", help="label of the sandboxes (default %(default)s)")
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SandboxError as error:
        sys.exit(f"{sys.argv[0]}: {error}")
