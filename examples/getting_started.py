#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A first tour: make a sandbox, run commands, follow output, move files, use a terminal."""

import argparse
import sys

from orchard_env import SandboxClient, SandboxError


def tour(sandbox):
    job = sandbox.exec("echo hello from $(hostname); id -un")
    print(job.stdout, end="")

    # A command that fails is an answer, not an exception.
    job = sandbox.exec("cat /no/such/file", timeout=10)
    print(f"exit code {job.exit_code}, {job.verdict}, {job.usage['wall_s']:.3f} s: {job.stderr.strip()}")

    # Output as it comes. The last event carries the ended job.
    for event in sandbox.exec_stream("for n in 1 2 3; do echo step $n; done"):
        if event.stream == "exit":
            print(f"ended with {event.job.exit_code}")
        else:
            print(event.text, end="")

    # A file is there whole or not at all; parents are made.
    sandbox.upload_content("one\ntwo\nthree\n", "/tmp/tour/lines.txt")
    print(sandbox.exec("wc -l < lines.txt", cwd="/tmp/tour").stdout.strip(), "lines")
    for entry in sandbox.list_files("/tmp/tour"):
        print(f"{entry.type} {entry.name}, {entry.size} bytes")

    # A terminal, for programs that want one.
    with sandbox.exec(["sh"], pty=True, rows=40, cols=120) as terminal:
        terminal.write_stdin("stty size; exit\n")
        print("the terminal says:", b"40 120" in terminal.read_all(timeout=30))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", default="default", help="image of the sandbox (default %(default)s)")
    options = parser.parse_args()
    # Both blocks delete what they made, whatever happens in them.
    with SandboxClient() as client, client.create_sandbox(options.image, memory="256Mi") as sandbox:
        print(f"sandbox {sandbox.sandbox_id} is ready")
        tour(sandbox)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SandboxError as error:
        sys.exit(f"{sys.argv[0]}: {error}")
