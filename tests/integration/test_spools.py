"""Output beyond the cap: where it lies, what it costs, and that it goes."""

import os
import re
import subprocess
from pathlib import Path

from orchard_server import eventually

MIB = 1 << 20


def spools(pid):
    """Sizes of the files that a process holds open in the spool directory: they have no name and show no path."""
    sizes = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(link)
            if re.fullmatch(r"/#\d+ \(deleted\)", target):
                sizes.append(link.stat().st_size)
        except FileNotFoundError:
            pass
    return sorted(sizes)


def files(directory):
    return {path: path.stat().st_size for path in directory.rglob("*") if path.is_file() and not path.is_symlink()}


def test_b029_spool_is_not_seen_inside_and_goes_with_the_sandbox(server):
    box = server.create()
    directory = server.state_dir / "sandboxes" / box.id
    pid = box.agent_pid()
    before = files(directory / "upper")
    job = box.exec("seq 3000000; seq 3000000 >&2")
    size = sum(len(str(n)) + 1 for n in range(1, 3000001))
    assert job["exit_code"] == 0 and job["stdout_truncated"] and job["stderr_truncated"]
    assert size > 10 * MIB and spools(pid) == [size, size]
    inside = box.exec("cat /proc/self/mountinfo; ls -la /proc/self/fd /tmp; find / -xdev -name '.spool-*'; "
                     "find / -xdev -size +20000k -newer /proc/1/comm; ls /spool; ls -l /proc/1/fd")["stdout"]
    assert "spool" not in inside and str(server.state_dir) not in inside
    assert {path for path, size in files(directory / "upper").items() if size > MIB} <= set(before)
    status = (directory / "spool").stat()
    assert status.st_mode & 0o7777 == 0o700 and status.st_uid == (directory / "upper").stat().st_uid
    assert os.listdir(directory / "spool") == []
    box.delete()
    eventually(lambda: not directory.exists() and not list((server.state_dir / "trash").iterdir()), 20, "removed")
    eventually(lambda: not Path(f"/proc/{pid}").exists(), 20, "the agent is gone")


def test_b029_spools_do_not_use_up_the_memory_of_the_sandbox(server):
    box = server.create(memory="64Mi")
    pid = box.agent_pid()
    command = "head -c 100000000 /dev/zero & head -c 100000000 /dev/zero >&2; wait"
    for _ in range(3):
        job = box.exec(command)
        assert (job["verdict"], job["exit_code"], job["error"]) == ("exited", 0, None)
        assert (job["stdout_bytes"], job["stderr_bytes"]) == (100000000, 100000000)
    assert sum(spools(pid)) <= 256 * MIB and 64 * MIB <= max(spools(pid)) <= 65 * MIB
    box.delete()


def test_b029_output_does_not_end_a_sandbox_whose_disk_is_memory(make_server, work_dir):
    mount = work_dir / "in-memory"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g,mode=755", "none", mount], check=True)
    server = make_server(state_dir=mount / "state")
    try:
        server.start()
        box = server.create(memory="64Mi")
        job = box.exec("head -c 100000000 /dev/zero & head -c 100000000 /dev/zero >&2; wait")
        assert (job["verdict"], job["exit_code"], job["stdout_bytes"]) == ("exited", 0, 100000000)
        assert box.out("echo alive") == "alive\n"
    finally:
        server.close()
        subprocess.run(["umount", "-l", mount], check=False)
