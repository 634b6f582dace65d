"""A host and a world for the network tests, both namespaces of their own: nothing of this machine is touched."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

CLONE_NEWNET = 0x40000000
HOST = "198.51.100.2"
LINK = "198.51.100.1"
WORLD = ("1.2.3.4", "1.2.3.53", "8.8.8.8", "203.0.114.9",  # public
         "10.1.2.3", "10.9.9.9", "172.16.5.5", "192.168.7.7", "100.64.1.1",  # private
         "169.254.169.254", "100.100.100.200")  # metadata
libc = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), "namespace")


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


class Lab:
    """While it is entered this thread, and what it starts, lives on the host of the lab."""

    def __init__(self, directory):
        self.noted = Path(directory) / "noted"
        self.noted.touch()

    def __enter__(self):
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        check(libc.unshare(CLONE_NEWNET))
        self.world = subprocess.Popen(
            ["unshare", "--net", sys.executable, Path(__file__).with_name("networld.py"), self.noted],
            stdout=subprocess.PIPE)
        assert self.world.stdout.readline() == b"ready\n"
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "wan", "type", "veth", "peer", "name", "wan", "netns", self.world.pid)
        run("ip", "address", "add", f"{HOST}/24", "dev", "wan")
        run("ip", "link", "set", "wan", "up")
        self.in_world("ip", "link", "set", "lo", "up")
        self.in_world("ip", "address", "add", f"{LINK}/24", "dev", "wan")
        self.in_world("ip", "link", "set", "wan", "up")
        for address in WORLD:
            self.in_world("ip", "address", "add", f"{address}/32", "dev", "lo")
        run("ip", "route", "add", "default", "via", LINK)
        return self

    def __exit__(self, *_):
        self.world.kill()
        self.world.wait()
        self.world.stdout.close()
        check(libc.setns(self.home, CLONE_NEWNET))
        os.close(self.home)

    def in_world(self, *command):
        return run("nsenter", "--net", "--target", self.world.pid, *command)

    def in_gateway(self, server, *command):
        return run("nsenter", f"--net={server.run_dir}/network", *command)


def rules():
    return run("nft", "list", "ruleset")


def devices():
    return {line.split(":")[1].split("@")[0].strip() for line in run("ip", "-o", "link").splitlines()}
