"""What an image may lack or say (fault group F, images of N)."""

import io
import os
import signal
import tarfile

import images
import pytest
from orchard_server import eventually


def test_b037_no_bash(server, busybox):
    box = server.create(image=busybox)
    assert box.out("echo hi") == "hi\n"
    assert box.out("echo hi", login_shell=True).endswith("hi\n")
    box.delete()


def test_a_musl_root(server, image_dir):
    """Nothing of the agent needs the image's C library, and programs of another one run."""
    box = server.create(image=f"dir:{images.musl(image_dir / 'musl')}")
    assert not box.exec("ls /lib/*-linux-gnu /lib64")["stdout"]
    assert box.out("whoami-by-musl") == box.out(["/bin/whoami-by-musl"]) == "root\n"
    assert box.out("whoami-by-musl; id -u; echo $HOME", user="user") == "user\n1000\n/home/user\n"
    assert box.out("whoami-by-musl", login_shell=True).endswith("root\n")
    box.delete()


OLD_PROGRAM = r"""
use POSIX; use Socket;
my @who = getpwuid($<); print "$who[0] ";
pipe(my $in, my $out); my $pid = fork();
if (!$pid) { print $out "child"; exit 7 }
close $out; print <$in>; waitpid($pid, 0); print " ", $? >> 8;
socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die; print " pair";
POSIX::mkfifo("/tmp/fifo", 0600) or die; utime(1, 2, "/tmp/fifo") or die; print " ", (stat "/tmp/fifo")[9];
$SIG{ALRM} = sub { print " alarm\n"; exit 0 }; alarm(1); select(undef, undef, undef, 20);
"""


def test_a_root_of_an_old_glibc(server):
    """Its programs ask for what a kernel of their time had, by other calls than the ones that the filter's tests make."""
    try:
        root = images.old_glibc()
    except RuntimeError as why:
        pytest.skip(f"NO PACKAGES OF {images.OLD_RELEASE} CAN BE FETCHED: {str(why)[-300:]}")
    box = server.create(image=f"dir:{root}")
    assert "2.31" in box.out("/lib/x86_64-linux-gnu/libc.so.6 | head -1")
    assert box.out(["perl", "-e", OLD_PROGRAM]) == "root child 7 pair 2 alarm\n"
    box.exec("rm /tmp/fifo")
    assert box.out(["perl", "-e", OLD_PROGRAM], user="user").startswith("user child 7")
    assert box.out("seq 300000 | sort --parallel=4 -rn | head -1") == "300000\n"
    assert box.out("[ -r /etc/passwd ] && [ ! -w /proc/version ] && echo access") == "access\n"
    moved = "cd /tmp && mkdir -p a/b && cp -a /etc/passwd a/b/ && mv a c && comm -3 c/b/passwd /etc/passwd && df / | wc -l"
    assert box.out(moved) == "2\n"
    timed_out = box.exec("trap '' TERM; sleep 100", timeout_seconds=1)
    assert timed_out["verdict"] == "timed_out"
    box.delete()


@pytest.mark.skipif("ORCHARD_BIG_IMAGE" not in os.environ, reason="BIG IMAGE: minutes and 3 GiB of disk; set ORCHARD_BIG_IMAGE=1")
def test_an_image_of_2_gib_and_100_000_files(make_server, image_dir):
    path = images.big_layout(image_dir / "big")
    server = make_server().start()
    first, second = [server.create(image=f"oci:{path}", wait=False, timeout=1200) for _ in range(2)]
    first.wait_ready(900)
    second.wait_ready(900)
    assert len(os.listdir(server.state_dir / "images/layers")) == 1
    assert first.out("find /many -type f | wc -l; stat -c %s /large; cat /many/99/99999", timeout_seconds=300) == \
        f"100000\n{2 << 30}\n99999"
    first.out("rm -r /many /large; ls /", timeout_seconds=300)
    assert second.out("ls /many | wc -l; stat -c %s /large") == f"100\n{2 << 30}\n"
    third = server.create(image=f"oci:{path}")  # it is there by now
    third.delete()
    first.delete()
    second.delete()
    server.close()


def test_b037_no_shell_at_all(server, no_shell):
    box = server.create(image=no_shell)
    assert box.out(["/app/busybox", "echo", "hi"]) == "hi\n"
    job = box.exec("echo hi")
    assert (job["status"], job["exit_code"]) == ("failed", 127)
    assert "no shell in image" in job["error"]
    box.delete()


@pytest.fixture(scope="module")
def layered(image_dir):
    """Two layers: the second removes a file, replaces a directory, adds links; with ENV, USER and WORKDIR."""
    root = images.busybox(image_dir / "oci-root")
    (root / "gone").write_text("x")
    (root / "opaque").mkdir()
    (root / "opaque/old").write_text("x")
    (root / "app").mkdir()

    def edit(rootfs):
        (rootfs / "gone").unlink()
        (rootfs / "opaque/old").unlink()
        (rootfs / "opaque").rmdir()
        (rootfs / "opaque").mkdir()
        (rootfs / "opaque/new").write_text("y")
        (rootfs / "climb").symlink_to("../../../../etc/passwd")

    return images.oci_layout(image_dir / "layered", root, tag="v1", second_layer=edit,
                             env=["FOO=bar", "PATH=/bin:/usr/bin"], workingdir="/app", entrypoint="/bin/false")


def test_b043_oci_image_env_workdir_entrypoint(server, layered):
    box = server.create(image=f"oci:{layered}:v1")
    assert box.out("echo $FOO; pwd") == "bar\n/app\n"
    assert box.exec("ls /gone /opaque/old")["exit_code"] != 0
    assert box.out("cat /opaque/new") == "y"
    assert box.out("readlink /climb") == "../../../../etc/passwd\n"
    assert "user" in box.out("cat /climb")
    box.delete()


def test_oci_layers_are_unpacked_once(server, layered):
    boxes = [server.create(image=f"oci:{layered}:v1", wait=False) for _ in range(4)]
    for box in boxes:
        box.wait_ready()
        box.delete()
    directory = server.state_dir / "images" / "layers"
    names = [entry.name for entry in directory.iterdir()]
    assert len(names) == 2 and not any(name.endswith(".tmp") for name in names), names


def test_a_layer_without_the_parents_of_its_files(server, image_dir):
    """Some builders pack "tmp/x" and no "tmp": the directory is still the one of the layers below."""
    root = images.busybox(image_dir / "implied-root")
    (root / "tmp").chmod(0o1777)
    home = root / "home/user"
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o750)
    os.chown(home, 1000, 1000)
    path = images.oci_layout(image_dir / "implied", root, user="1000")
    tar = image_dir / "implied.tar"
    with tarfile.open(tar, "w") as layer:
        for name in ("tmp/x", "home/user/project/x", "opt/new/x"):
            item = tarfile.TarInfo(name)
            item.size = 1
            layer.addfile(item, io.BytesIO(b"x"))
    images.run("umoci", "raw", "add-layer", "--image", f"{path}:latest", tar)
    box = server.create(image=f"oci:{path}")
    assert box.out("stat -c '%a %u %n' /tmp /home/user /home/user/project /opt/new; touch /tmp/mine ~/mine && cat /tmp/x") == \
        "1777 0 /tmp\n750 1000 /home/user\n755 0 /home/user/project\n755 0 /opt/new\nx"
    box.delete()


def test_b040_image_of_a_plain_user(server, image_dir):
    root = images.busybox(image_dir / "user-root")
    path = images.oci_layout(image_dir / "user", root, user="1000", workingdir="/workspace")
    box = server.create(image=f"oci:{path}")
    assert box.out("id -u; echo $HOME; touch /workspace/a && echo made") == "1000\n/home/user\nmade\n"
    box.delete()


def test_image_files_are_never_changed(server, image_dir):
    root = images.busybox(image_dir / "untouched")
    box = server.create(image=f"dir:{root}")
    box.out("echo new > /etc/passwd; rm /bin/ls; touch /added")
    box.delete()
    assert (root / "bin/ls").is_symlink() and not (root / "added").exists()
    assert (root / "etc/passwd").read_text().startswith("root:")


@pytest.mark.parametrize("image,words", [
    ("dir:/no/such/dir", "dir:"),
    ("python:3.11 slim", "oci:"),
    ("oci-archive:x.tar", "absolute"),
    ("docker-archive:/no/such/file.tar", "local_image_paths"),
    ("", "image"),
    ("dir:relative", "absolute"),
])
def test_unknown_images_are_told_at_once(server, image, words):
    answer = server.client.post("/sandboxes", json={"image": image})
    assert answer.status_code in (403, 422), answer.text
    assert words in answer.text


def test_images_outside_the_allowed_paths_are_refused(server):
    assert server.client.post("/sandboxes", json={"image": "dir:/etc"}).status_code == 403
    path = f"dir:{images.CACHE}/../../etc"
    assert server.client.post("/sandboxes", json={"image": path}).status_code in (403, 422)


def test_b109_broken_images_fail_with_words(server, image_dir):
    (image_dir / "not-oci").mkdir(exist_ok=True)
    for image, words in ((f"oci:{image_dir}/not-oci", "index.json"), (f"dir:{image_dir}/missing", "missing")):
        box = server.create(image=image, wait=False)
        state = box.client.get(f"{box.url}/wait", params={"timeout": 30}).json()
        assert state["status"] == "failed", state
        assert words in state["status_message"]
        box.delete()


@pytest.fixture(scope="module")
def archives(image_dir, layered):
    """The layered image in the two kinds of archives, plain and compressed."""
    made = {}
    for kind, name, tag in (("oci", "oci-archive", ":v1"), ("docker", "docker-archive", ":team/app:v1")):
        made[kind] = image_dir / f"{kind}.tar"
        images.run("skopeo", "copy", f"oci:{layered}:v1", f"{name}:{made[kind]}{tag}")
        images.run("gzip", "-k", made[kind])
    return made


@pytest.mark.parametrize("image", ["oci-archive:{oci}", "oci-archive:{oci}.gz:v1", "docker-archive:{docker}",
                                   "docker-archive:{docker}.gz:team/app:v1"])
def test_b043_archives(make_server, archives, image):
    server = make_server().start()
    boxes = [server.create(image=image.format(**archives), wait=False) for _ in range(2)]
    for box in boxes:
        box.wait_ready()
        assert box.out("echo $FOO; pwd; cat /opaque/new") == "bar\n/app\ny"
        assert box.exec("ls /gone /opaque/old")["exit_code"] != 0
        box.delete()
    assert len(list((server.state_dir / "images/layers").iterdir())) == 2
    assert not [name for name in os.listdir(server.state_dir / "images/tmp") if not name.endswith(".lock")]


def test_b109_broken_archives_fail_with_words(server, archives, image_dir):
    cut = image_dir / "cut.tar"
    cut.write_bytes(archives["docker"].read_bytes()[:5000])
    for image, words in ((f"docker-archive:{image_dir}/none.tar", "No such file"),
                         (f"docker-archive:{archives['oci']}", "no docker archive"),
                         (f"oci-archive:{archives['docker']}", "no OCI archive"),
                         (f"docker-archive:{archives['docker']}:other:v1", "team/app:v1"),
                         (f"oci-archive:{archives['oci']}:v9", "v1"),
                         (f"docker-archive:{cut}", "damaged"),
                         (f"docker-archive:{image_dir}", "not a plain file")):
        box = server.create(image=image, wait=False)
        state = box.client.get(f"{box.url}/wait", params={"timeout": 30}).json()
        assert state["status"] == "failed" and words in state["status_message"], state
        box.delete()


def test_missing_tag_is_named(server, layered):
    box = server.create(image=f"oci:{layered}:v9", wait=False)
    state = box.client.get(f"{box.url}/wait", params={"timeout": 30}).json()
    assert state["status"] == "failed" and "v9" in state["status_message"] and "v1" in state["status_message"]
    box.delete()


def test_b110_image_without_anything(server, image_dir):
    (image_dir / "empty").mkdir(exist_ok=True)
    box = server.create(image=f"dir:{image_dir}/empty")
    assert box.exec(["/bin/true"])["exit_code"] == 127
    box.delete()


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as listing:
        return [int(word) for word in listing.read().split()]


def test_unpacking_outlives_the_spawner(make_server, image_dir, debian):
    """Whoever unpacks dies with the spawner; the next one clears the half layer away and starts again."""
    path = images.oci_layout(image_dir / "large", images.debian())
    server = make_server().start()
    spawner = server.processes()["spawner"][0]
    box = server.create(image=f"oci:{path}", wait=False)
    imager, unpacker = eventually(
        lambda: next(((one, two) for one in children(spawner) for two in children(one)), None), what="unpacker")
    eventually(lambda: box.client.get(box.url).json()["status_message"] == "unpacking layer 1 of 1", what="progress")
    os.kill(spawner, signal.SIGKILL)
    eventually(lambda: not os.path.exists(f"/proc/{imager}") and not os.path.exists(f"/proc/{unpacker}"),
               what="the end of the unpackers")
    box.wait_ready()
    assert box.out("git --version").startswith("git version")
    unfinished = [name for name in os.listdir(server.state_dir / "images/tmp") if not name.endswith(".lock")]
    assert not unfinished and len(os.listdir(server.state_dir / "images/layers")) == 1
    box.delete()
