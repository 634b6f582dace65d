"""Containers of the tests' node: crun in a root that is an overlay on an image's directory, on an address of the pod's own."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import lab

CAPABILITIES = ["CAP_" + name for name in (
    "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL "
    "AUDIT_WRITE").split()]
MASKED = ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
          "/proc/sched_debug", "/proc/scsi", "/sys/firmware"]
READONLY = ["/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")


def batch(text, *options):
    done = subprocess.run(["ip", *options, "-batch", "-"], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"ip: {done.stderr.strip()}: {text}")


class Network:
    """The pods' addresses: the lowest free one is given out, so an address comes back as soon as may be."""

    def __init__(self, first):
        self.first = first
        self.taken = {}
        self.family = 4

    def attach(self, uid):
        """A network namespace of the pod's own on a routed pair of interfaces; returns its only address."""
        number = next(n for n in range(self.first, self.first + 20000) if n not in self.taken)
        self.taken[number] = uid
        address = f"10.88.{number >> 8}.{number & 255}" if self.family == 4 else f"fd88::{number:x}"
        host, bits, sure = (lab.HOST, 32, "") if self.family == 4 else (lab.HOST6, 128, " nodad")
        name, link = f"pod{number}", f"v{number}"
        run("ip", "netns", "add", name)
        batch(f"link add {link} type veth peer name eth0 netns {name}\naddress add {host}/{bits} dev {link}{sure}\n"
              f"link set {link} up\nroute add {address}/{bits} dev {link} src {host}\n")
        batch(f"link set lo up\naddress add {address}/{bits} dev eth0{sure}\nlink set eth0 up\nroute add {host} dev eth0\n"
              f"route add default via {host}\n", "-n", name)
        return number, address

    def detach(self, number):
        subprocess.run(["ip", "netns", "delete", f"pod{number}"], capture_output=True)
        subprocess.run(["ip", "link", "delete", f"v{number}"], capture_output=True)
        del self.taken[number]


class Container:
    """One container of a pod, from its spec and its image's description: root, env, user, workdir, entrypoint, cmd."""

    def __init__(self, name, spec, image, directory, network):
        self.name = name
        self.spec = spec
        self.image = image
        self.directory = directory
        self.network = network
        self.runtime = directory.parents[2] / "crun"
        self.process = None

    async def start(self, environment, mounts, pod):
        self.directory.mkdir(parents=True)
        rootfs = self.directory / "rootfs"
        for part in ("rootfs", "upper", "work"):
            (self.directory / part).mkdir()
        run("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir={self.image['root']},upperdir={self.directory}/upper,workdir={self.directory}/work", rootfs)
        (self.directory / "config.json").write_text(json.dumps(self.config(environment, mounts, pod)))
        with open(self.directory / "log", "wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self.crun("run", "--bundle", self.directory, self.name), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        # Only what crun knows by now can be sent a signal.
        status = self.runtime / self.name / "status"
        while self.process.returncode is None and not status.exists():
            await asyncio.sleep(0.005)

    def crun(self, *words):
        """Its own words of trouble go to a file that the container does not write."""
        return ["crun", "--root", str(self.runtime), "--cgroup-manager=disabled",
                "--log", f"file:{self.directory}/crun.log", *map(str, words)]

    def output(self, tail=2048):
        """The end of what it wrote, as kubelet tells it of containers that fail."""
        return (self.directory / "log").read_text(errors="replace")[-tail:]

    def error(self):
        path = self.directory / "crun.log"
        return path.read_text(errors="replace").strip() if path.exists() else ""

    def signal(self, name):
        if self.process is not None and self.process.returncode is None:
            subprocess.run(self.crun("kill", self.name, name), capture_output=True)

    def remove(self):
        subprocess.run(self.crun("delete", "--force", self.name), capture_output=True)
        subprocess.run(["umount", "--lazy", self.directory / "rootfs"], capture_output=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    # --- what the runtime is told ---------------------------------------
    def security(self, pod):
        return pod["spec"].get("securityContext", {}) | self.spec.get("securityContext", {})

    def user(self, security):
        user = security.get("runAsUser")
        if user is None:
            return ids_of(Path(self.image["root"]), str(self.image.get("user") or "0"))
        return user, security.get("runAsGroup", 0)

    def capabilities(self, security, uid):
        changes = security.get("capabilities", {})
        dropped = {"CAP_" + name for name in changes.get("drop", [])}
        kept = [] if "CAP_ALL" in dropped else [name for name in CAPABILITIES if name not in dropped]
        kept += ["CAP_" + name for name in changes.get("add", [])]
        active = kept if uid == 0 else []
        return {"bounding": kept, "permitted": active, "effective": active, "inheritable": [], "ambient": []}

    def arguments(self, environment):
        """Variables of the container's own are filled in, as kubelet does."""
        command = self.spec.get("command") or self.image.get("entrypoint") or []
        arguments = self.spec.get("args") or ([] if self.spec.get("command") else self.image.get("cmd") or [])
        return [re.sub(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)", lambda m: environment.get(m[1], m[0]), word) for word in command + arguments]

    def config(self, environment, mounts, pod):
        security = self.security(pod)
        uid, gid = self.user(security)
        named = {"PATH": DEFAULT_PATH, "HOSTNAME": pod["metadata"]["name"]}
        named |= dict(item.split("=", 1) for item in self.image.get("env", [])) | environment
        return {
            "ociVersion": "1.0.2", "hostname": pod["metadata"]["name"],
            "process": {
                "args": self.arguments(environment), "cwd": self.spec.get("workingDir") or self.image.get("workdir") or "/",
                "env": [f"{name}={value}" for name, value in named.items()],
                "user": {"uid": uid, "gid": gid}, "capabilities": self.capabilities(security, uid),
                "noNewPrivileges": security.get("allowPrivilegeEscalation") is False},
            "root": {"path": "rootfs", "readonly": bool(security.get("readOnlyRootFilesystem"))},
            "mounts": base_mounts() + mounts,
            "linux": {
                "namespaces": [{"type": kind} for kind in ("pid", "mount", "uts", "ipc")] +
                              [{"type": "network", "path": f"/run/netns/pod{self.network}"}],
                "maskedPaths": MASKED, "readonlyPaths": READONLY}}


def ids_of(root, user):
    """The numbers of an image's USER: name or number, with a group or without."""
    name, _, group = user.partition(":")
    uid, gid = (int(name), 0) if name.isdigit() else (None, None)
    for line in (root / "etc/passwd").read_text().splitlines() if (root / "etc/passwd").exists() else []:
        fields = line.split(":")
        if name in (fields[0], fields[2]):
            uid, gid = int(fields[2]), int(fields[3])
    if uid is None:
        raise RuntimeError(f"unable to find user {name}: no matching entries in passwd file")
    return uid, int(group) if group.isdigit() else gid


def base_mounts():
    def mount(kind, target, *options):
        return {"type": kind, "source": kind, "destination": target, "options": list(options)}
    return [
        mount("proc", "/proc", "nosuid", "noexec", "nodev"),
        mount("tmpfs", "/dev", "nosuid", "strictatime", "mode=755", "size=65536k"),
        mount("devpts", "/dev/pts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"),
        mount("tmpfs", "/dev/shm", "nosuid", "noexec", "nodev", "mode=1777", "size=65536k"),
        mount("mqueue", "/dev/mqueue", "nosuid", "noexec", "nodev"),
        mount("sysfs", "/sys", "nosuid", "noexec", "nodev", "ro"),
    ]


def bind(source, target, readonly):
    return {"type": "bind", "source": str(source), "destination": target,
            "options": ["rbind", "rprivate", "ro" if readonly else "rw"]}


def write_files(directory, files, mode=0o644):
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.chmod(path, mode)
