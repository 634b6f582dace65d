#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small agent harness: a model, three tools that act in a sandbox, limits, and a transcript in JSON lines.

The model is any function from the messages so far to the next action, such as {"tool": "bash", "command": "ls"} or
{"tool": "finish", "answer": "..."}. The one here follows fixed rules, so that the example needs no network and no key.
"""

import argparse
import json
import sys

from orchard_env import APIError, SandboxClient, SandboxError

TASK = "Which file below /tmp/data has the most lines? Write its path to /tmp/answer and finish with it."
OUTPUT_LIMIT = 8000  # characters of a tool's output that a model gets to see


class Harness:
    """Runs one task in one sandbox. Whatever a tool answers, also a refusal, goes back to the model."""

    def __init__(self, sandbox, model, transcript, max_steps=20, command_timeout=60):
        self.sandbox = sandbox
        self.model = model
        self.transcript = transcript
        self.max_steps = max_steps
        self.command_timeout = command_timeout
        self.messages = []

    def say(self, role, **content):
        message = {"role": role} | content
        self.messages.append(message)
        print(json.dumps(message), file=self.transcript, flush=True)

    def run(self, task):
        """The answer, or None when the steps ran out."""
        self.say("user", text=task)
        for _ in range(self.max_steps):
            action = self.model(self.messages)
            self.say("assistant", action=action)
            if action["tool"] == "finish":
                return action["answer"]
            self.say("tool", **self.call(action))
        return None

    def call(self, action):
        tools = {"bash": self.bash, "read": self.read, "write": self.write}
        tool = tools.get(action["tool"])
        if tool is None:
            return {"error": f"there is no tool {action['tool']!r}, only {', '.join(tools)} and finish"}
        try:
            return tool(action)
        except (APIError, KeyError) as error:
            return {"error": str(error)}

    def bash(self, action):
        job = self.sandbox.exec(action["command"], timeout=self.command_timeout)
        return {"output": clip(job.stdout + job.stderr), "exit_code": job.exit_code, "verdict": job.verdict}

    def read(self, action):
        return {"output": clip(self.sandbox.download_content(action["path"]).decode("utf-8", "replace"))}

    def write(self, action):
        self.sandbox.upload_content(action["text"], action["path"])
        return {"output": "written"}


def clip(text):
    """The head and the tail of what is too long: errors stand at the end."""
    if len(text) <= OUTPUT_LIMIT:
        return text
    half = OUTPUT_LIMIT // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


def scripted_model(messages):
    """Looks, counts, writes, checks: what a language model would do here."""
    last = messages[-1]
    if last["role"] == "user":
        return {"tool": "bash", "command": "find /tmp/data -type f -exec wc -l {} +"}
    step = sum(message["role"] == "assistant" for message in messages)
    if step == 1:
        counts = [line.split(maxsplit=1) for line in last["output"].splitlines()]
        path = max((int(count), path) for count, path in counts if path != "total")[1]
        return {"tool": "write", "path": "/tmp/answer", "text": path + "\n"}
    if step == 2:
        return {"tool": "read", "path": "/tmp/answer"}
    return {"tool": "finish", "answer": last["output"].strip()}


def prepare(sandbox):
    for name, lines in {"a.txt": 3, "deep/b.txt": 40, "c.txt": 12}.items():
        sandbox.upload_content("line\n" * lines, f"/tmp/data/{name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", default="default", help="image of the sandbox (default %(default)s)")
    parser.add_argument(
        "--transcript",
        type=argparse.FileType("w"),
        default=sys.stdout,
        metavar="FILE",
        help="where the messages go (default: standard output)",
    )
    parser.add_argument("--max-steps", type=int, default=20, help="actions allowed (default %(default)s)")
    options = parser.parse_args()
    with SandboxClient() as client, client.create_sandbox(options.image, memory="512Mi") as sandbox:
        prepare(sandbox)
        answer = Harness(sandbox, scripted_model, options.transcript, options.max_steps).run(TASK)
    print(f"answer: {answer}", file=sys.stderr)
    return 0 if answer == "/tmp/data/deep/b.txt" else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SandboxError as error:
        sys.exit(f"{sys.argv[0]}: {error}")
