"""Namespaces of this run alone: its mounts, addresses and ports meet nobody's, and are gone with its last process."""

import ctypes
import os
import subprocess

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
# Where pods find the API server, and what the network namespace of the run is called by them.
HOST = "10.88.0.1"
HOST6 = "fd88::1"
PORT = 6443


def enter():
    """Moves this process, and whatever it starts from here on, into a mount and a network namespace of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "no namespaces of its own for the test run")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for words in ("link set lo up", f"address add {HOST}/32 dev lo", f"address add {HOST6}/128 dev lo"):
        subprocess.run(["ip", *words.split()], check=True)
    with open("/proc/sys/net/ipv4/ip_forward", "w") as forward:
        forward.write("1")


def spawn(command, log, **options):
    """A process that ends with this one, however that ends."""
    with open(log, "ab") as out:
        return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)],
                                stdin=options.pop("stdin", subprocess.DEVNULL), stdout=options.pop("stdout", out),
                                stderr=out, env=options.pop("env", None) or {"PATH": os.environ["PATH"], "HOME": "/root"},
                                **options)
