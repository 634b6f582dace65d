"""Networks of sandboxes: who reaches what, what survives, and what is left of it."""

import hashlib
import json
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from netlab import HOST, Lab, devices, rules, run
from orchard_server import eventually, is_zombie
from test_host import start_wrapped

GATEWAY, UPLINK = "10.200.0.1", "10.200.0.2"
PROBE = """
import socket, sys
for target in sys.argv[1:]:
    s = socket.socket()
    s.settimeout(8)
    try:
        s.connect((target.split(":")[0], int(target.split(":")[1])))
        print(target)
    except OSError:
        pass
    s.close()
"""
PUBLIC = {"1.2.3.4:80", "8.8.8.8:443", "203.0.114.9:5432"}
PRIVATE = {"10.1.2.3:443", "172.16.5.5:80", "192.168.7.7:80", "100.64.1.1:80"}
METADATA = {"169.254.169.254:80", "100.100.100.200:80"}


@pytest.fixture(scope="module", autouse=True)
def lab(work_dir):
    with Lab(work_dir) as made:
        yield made


@pytest.fixture(scope="module")
def netted(lab, make_server_session):
    """A server whose sandboxes may have a network, open to the world on its own port."""
    shared = make_server_session(listen_host="0.0.0.0", network_dns=["1.2.3.53", "10.9.9.9"]).start()
    yield shared
    shared.close()


count = [200]


@pytest.fixture
def make_netted(make_server):
    """Servers of one test's own, each with a range of its own."""
    def make(**settings):
        count[0] += 1
        return make_server(**{"network_dns": ["1.2.3.53"], "network_subnet": f"10.{count[0]}.0.0/16"} | settings).start()
    return make


@pytest.fixture(scope="module")
def open_box(netted):
    box = netted.create(block_network=False)
    yield box
    box.delete()


def allowing(server, *allow, **fields):
    return server.create(egress={"allow": list(allow)}, **fields)


def reached(box, *targets):
    """Those of the targets (address:port) that a connection could be made to."""
    return set(box.out(["python3", "-c", PROBE, *targets], timeout_seconds=100).split())


def address_of(server, box):
    return json.loads((server.state_dir / "sandboxes" / box.id / "state.json").read_text())["address"]


def failure(server, **fields):
    """The words of a create that fails."""
    box = server.create(wait=False, **fields)
    state = server.client.get(f"{box.url}/wait?timeout=20").json()
    assert state["status"] == "failed", state
    box.delete()
    return state["status_message"]


def elements(lab, server):
    """What the sets of sandboxes hold in the gateway."""
    found = set()
    for name in ("open", "allow", "allow_port"):
        listing = json.loads(lab.in_gateway(server, "nft", "-j", "list", "set", "inet", "orchard", name))
        for item in listing["nftables"]:
            found |= {json.dumps(element) for element in item.get("set", {}).get("elem", [])}
    return found


def uplink(server):
    """The host's end of a server's uplink, and the name of its table."""
    return "orchard-" + hashlib.sha256(str(server.state_dir).encode()).hexdigest()[:7]


def wires(lab, server):
    listing = lab.in_gateway(server, "ip", "-o", "link")
    return {line.split(":")[1].split("@")[0].strip() for line in listing.splitlines() if "box-" in line}


# --- who reaches what ---------------------------------------------------

def test_the_internet_is_reached_and_sees_the_host(open_box):
    script = "import socket; s = socket.create_connection(('1.2.3.4', 80), 8); print(s.recv(64).decode().strip())"
    assert open_box.out(["python3", "-c", script]).strip() == HOST
    assert reached(open_box, *PUBLIC) == PUBLIC


def test_what_is_private_or_ours_is_not_reached(netted, open_box):
    ours = {f"{address}:{netted.port}" for address in (HOST, GATEWAY, UPLINK)} | {f"{GATEWAY}:53", f"{HOST}:22"}
    assert reached(open_box, *PRIVATE, *METADATA, *ours) == set()
    # The port is there: only the sandbox is kept out.
    with socket.create_connection((HOST, netted.port), 5):
        pass


def test_a_refusal_comes_at_once(open_box):
    script = """
import errno, socket
for target in (("169.254.169.254", 80), ("10.1.2.3", 80), ("10.200.0.1", 80)):
    s = socket.socket()
    s.settimeout(30)
    print(errno.errorcode[s.connect_ex(target)])
"""
    assert set(open_box.out(["python3", "-c", script]).split()) == {"EHOSTUNREACH"}


def test_loopback_only_has_no_interface_but_lo(netted, busybox):
    box = netted.create(image=busybox, block_network=True)
    assert box.out("ls /sys/class/net 2>/dev/null || grep -o '^ *[a-z0-9]*:' /proc/net/dev | tr -d ' :'").split() == ["lo"]
    assert "address" not in json.loads((netted.state_dir / "sandboxes" / box.id / "state.json").read_text())
    box.delete()


def test_names_resolve_by_servers_that_are_open_for_that_alone(open_box):
    assert open_box.out("getent ahostsv4 anything.example | cut -d' ' -f1 | sort -u").strip() == "1.2.3.4"
    assert open_box.out("cat /etc/resolv.conf").splitlines()[1:] == ["nameserver 1.2.3.53", "nameserver 10.9.9.9"]
    assert reached(open_box, "10.9.9.9:53", "10.9.9.9:80") == {"10.9.9.9:53"}
    limited = allowing(open_box.server)
    assert limited.out("getent ahostsv4 other.example | cut -d' ' -f1 | sort -u").strip() == "1.2.3.4"
    assert reached(limited, "1.2.3.53:53", "1.2.3.53:80", "8.8.8.8:53") == {"1.2.3.53:53"}
    limited.delete()


def test_resolv_conf_of_the_image_stays_what_it_is(netted, busybox, image_dir):
    etc = image_dir / "busybox" / "etc"
    for make in (lambda: (etc / "resolv.conf").write_text("nameserver 192.0.2.1\n"),
                 lambda: (etc / "resolv.conf").symlink_to("../run/systemd/resolve/stub-resolv.conf"),
                 lambda: None):
        (etc / "resolv.conf").unlink(missing_ok=True)
        make()
        box = netted.create(image=busybox, block_network=False)
        assert "nameserver 1.2.3.53" in box.out("cat /etc/resolv.conf")
        assert box.exec("echo x > /etc/resolv.conf")["status"] == "failed"
        assert box.exec("rm -f /etc/resolv.conf")["status"] == "failed"
        box.delete()
        if (etc / "resolv.conf").is_file():
            assert (etc / "resolv.conf").read_text() == "nameserver 192.0.2.1\n"
    (etc / "resolv.conf").unlink(missing_ok=True)


def test_egress_names_what_is_reached(netted):
    box = allowing(netted, "10.1.2.0/24:443", "1.2.3.4", "8.8.0.0/16:80", "8.0.0.0/8:80", "8.8.8.8:80")
    shown = box.get().json()
    assert shown["block_network"] is False
    assert shown["egress"] == {"allow": ["10.1.2.0/24:443", "1.2.3.4", "8.8.0.0/16:80", "8.0.0.0/8:80", "8.8.8.8:80"]}
    assert reached(box, *PUBLIC, *PRIVATE, *METADATA, "10.1.2.3:80", "1.2.3.4:5432", "8.8.8.8:80") == {
        "10.1.2.3:443", "1.2.3.4:80", "1.2.3.4:5432", "8.8.8.8:80"}
    box.delete()


def test_no_egress_reaches_metadata_the_host_or_us(netted):
    box = allowing(netted, "0.0.0.0/0")
    ours = {f"{address}:{netted.port}" for address in (HOST, GATEWAY, UPLINK)}
    assert reached(box, *PUBLIC, *PRIVATE, *METADATA, *ours) == PUBLIC | PRIVATE
    box.delete()
    box = allowing(netted, f"0.0.0.0/0:{netted.port}", f"{HOST}", "0.0.0.0/0:80")
    assert reached(box, *METADATA, *ours, "10.1.2.3:80") == {"10.1.2.3:80"}
    box.delete()


@pytest.mark.parametrize("fields,words", [
    ({"egress": {"allow": ["example.org"]}}, "no IPv4 address"),
    ({"egress": {"allow": ["10.0.0.1/8"]}}, "10.0.0.0/8"),
    ({"egress": {"allow": ["169.254.169.254"]}}, "metadata"),
    ({"egress": {"allow": []}, "block_network": True}, "block_network"),
    ({"egress": {"allow": ["1.2.3.4"] * 65}}, "64"),
    ({"egress": {"allow": ["1.2.3.4", "2001:db8::/32"]}}, "on loopback only"),
    ({"egress": {"allow": ["[2001:db8::1]:443"]}}, "on loopback only"),
    ({"egress": {"allow": ["::ffff:169.254.169.254"]}}, "write 169.254.169.254"),
    ({"egress": {"allow": ["fe80::1%eth0"]}}, "no IPv6 address"),
])
def test_wrong_egress_is_told(netted, fields, words):
    answer = netted.client.post("/sandboxes", json={"image": "default"} | fields)
    assert answer.status_code == 422 and words in answer.text, answer.text


def test_sandboxes_do_not_reach_each_other(netted, open_box):
    other = allowing(netted, "0.0.0.0/0")
    serve = "import socket; s = socket.create_server(('0.0.0.0', 9000)); print('up', flush=True)\nwhile 1: s.accept()"
    job = other.start(["python3", "-c", serve], lane="serve")
    eventually(lambda: reached(other, "127.0.0.1:9000"), 20, "the other one listens")
    target = f"{address_of(netted, other)}:9000"
    assert reached(other, target) == {target}
    assert reached(open_box, target) == set()
    third = allowing(netted, target, "10.200.0.0/16")
    assert reached(third, target) == set()
    third.delete()
    # nor does the host, whose routes lead there
    with pytest.raises(OSError):
        socket.create_connection(tuple([target.split(":")[0], 9000]), 1).close()
    other.client.post(f"/jobs/{job}/cancel")
    other.delete()


def test_forged_senders_are_dropped(lab, netted, open_box):
    other = netted.create(block_network=False)
    forge = """
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
for sender in sys.argv[1:]:
    words = b"forged " + sender.encode()
    udp = struct.pack("!HHHH", 5353, 7000, 8 + len(words), 0) + words
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0,
                     socket.inet_aton(sender), socket.inet_aton("1.2.3.4"))
    s.sendto(ip + udp, ("1.2.3.4", 0))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"honest", ("1.2.3.4", 7000))
"""
    own = address_of(netted, open_box)
    senders = [address_of(netted, other), "9.9.9.9", HOST, GATEWAY, UPLINK, "10.200.77.77", own]
    open_box.out(["python3", "-c", forge, *senders])
    eventually(lambda: "honest" in lab.noted.read_text(), 10, "the honest one arrives")
    assert [line for line in lab.noted.read_text().splitlines() if "forged" in line] == [f"{HOST} forged {own}"]
    other.delete()


def test_no_ipv6_but_on_loopback(open_box):
    assert {line.split()[-1] for line in open_box.out("cat /proc/net/if_inet6").splitlines()} <= {"lo"}
    script = "import socket; s = socket.socket(socket.AF_INET6); s.settimeout(5); s.connect(('2001:db8::1', 80))"
    assert open_box.exec(["python3", "-c", script])["status"] == "failed"


def test_a_sandbox_cannot_change_its_network(open_box):
    script = """
import errno, fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def ask(number, data):
    try:
        fcntl.ioctl(s, number, data)
        return "done"
    except OSError as e:
        return errno.errorcode[e.errno]
inet = lambda text: struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(text))
print(ask(0x8916, b"eth0".ljust(16, b"\\0") + inet("10.200.9.9") + bytes(8)))      # address
print(ask(0x8914, b"eth0".ljust(16, b"\\0") + struct.pack("H", 0) + bytes(22)))    # down
print(ask(0x890b, bytes(8) + inet("1.0.0.0") + inet("10.200.0.1") + inet("255.0.0.0") + bytes(64)))  # route
for path in ("/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/conf/eth0/rp_filter"):
    try:
        open(path, "w").write("1")
        print("done")
    except OSError as e:
        print("no")
try:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12).send(b"")
    import ctypes
    print("done" if ctypes.CDLL(None).unshare(0x40000000) == 0 else "no")
except (OSError, ImportError):
    print("no")
"""
    assert open_box.out(["python3", "-c", script]).split() == ["EPERM", "EPERM", "EPERM", "no", "no", "no"]


def test_one_sandbox_cannot_fill_the_table_of_connections(lab, netted):
    box = netted.create(block_network=False)
    script = """
import socket
for port in range(6000):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        s.sendto(b"x", ("1.2.3.4", 10000 + port))
    except OSError:
        pass
    s.close()
"""
    box.out(["python3", "-c", script], timeout_seconds=60)
    count = int(lab.in_gateway(netted, "cat", "/proc/sys/net/netfilter/nf_conntrack_count"))
    assert 1000 < count < 4300
    box.delete()


# --- what survives ------------------------------------------------------

def kill_role(server, role):
    for pid in server.processes()[role]:
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: is_zombie(pid), 10, f"{role} is gone")


def test_networks_outlive_the_spawner(lab, make_netted):
    server = make_netted()
    box, limited = server.create(block_network=False), allowing(server, "10.1.2.3:443")
    wired, granted = wires(lab, server), elements(lab, server)
    kill_role(server, "spawner")
    server.wait_ready()
    again = eventually(lambda: server.create(block_network=False), 20, "a sandbox by the new spawner")
    assert address_of(server, again) not in (address_of(server, box), address_of(server, limited))
    again.delete()
    eventually(lambda: wires(lab, server) == wired and elements(lab, server) == granted, 20, "only the old ones")
    assert reached(box, "1.2.3.4:80", "10.1.2.3:443") == {"1.2.3.4:80"}
    assert reached(limited, "1.2.3.4:80", "10.1.2.3:443") == {"10.1.2.3:443"}


def test_networks_outlive_the_death_of_everything(lab, make_netted):
    server = make_netted()
    box, limited, doomed = server.create(block_network=False), allowing(server, "10.1.2.3:443"), allowing(server)
    hold = "import socket; s = socket.create_connection(('1.2.3.4', 5432)); print('up', flush=True); s.recv(9); input()"
    box.start(["python3", "-c", hold], lane="hold")
    address, pid = address_of(server, doomed), doomed.agent_pid()
    server.kill_all()
    os.kill(pid, signal.SIGKILL)
    lab.in_gateway(server, "nft", "add", "element", "inet", "orchard", "open", "{ 10.0.0.77 }")
    server.start()
    eventually(lambda: len(elements(lab, server)) == 2, 20, "rights of the living only")
    assert "10.0.0.77" not in str(elements(lab, server)) and address not in str(elements(lab, server))
    assert reached(box, "1.2.3.4:80", "10.1.2.3:443") == {"1.2.3.4:80"}
    assert reached(limited, "1.2.3.4:80", "10.1.2.3:443") == {"10.1.2.3:443"}
    assert limited.get().json()["egress"] == {"allow": ["10.1.2.3:443"]}


def test_killed_in_the_middle_of_everything(lab, make_netted, busybox):
    server = make_netted()
    server.create(image=busybox, block_network=False, sandbox_id="keeper")

    def one(number):
        fields = {"block_network": False} if number % 2 else {"egress": {"allow": ["1.2.3.4:80", "10.0.0.0/8"]}}
        name = f"storm-{number}"
        server.client.post("/sandboxes", json={"image": busybox, "memory": "32Mi", "sandbox_id": name} | fields)
        if number % 3 == 0:
            server.client.delete(f"/sandboxes/{name}")
        return name

    for round_ in range(4):
        with ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(one, round_ * 20 + number) for number in range(20)]
            eventually(lambda: len(wires(lab, server)) > 3, 20, "some are wired")
            for role in ("helper", "spawner"):
                pid = server.processes().get(role, [None])[0]
                if pid:
                    os.kill(pid, signal.SIGKILL)
            names = [job.result() for job in jobs]
        server.wait_ready()
        for name in names:
            if server.client.get(f"/sandboxes/{name}/wait", params={"timeout": 60}).status_code == 200:
                assert server.client.delete(f"/sandboxes/{name}").status_code == 200
        eventually(lambda: wires(lab, server) == {"box-3"} and len(elements(lab, server)) == 1, 60,
                   lambda: f"only the keeper is left: {wires(lab, server)} {elements(lab, server)}")


def test_a_lost_gateway_is_made_again(lab, make_netted):
    server = make_netted()
    box, limited = server.create(block_network=False), allowing(server, "10.1.2.3:443")
    server.kill_all()
    run("umount", server.run_dir / "network")
    eventually(lambda: uplink(server) not in devices(), 20, "the old gateway is gone")
    server.start()
    assert reached(box, "1.2.3.4:80", "10.1.2.3:443") == {"1.2.3.4:80"}
    assert reached(limited, "1.2.3.4:80", "10.1.2.3:443") == {"10.1.2.3:443"}
    assert "wired to a new one" in server.log(100000)


def test_a_lost_uplink_is_made_again(make_netted):
    server = make_netted()
    box = server.create(block_network=False)
    server.kill_all()
    run("ip", "link", "delete", uplink(server))
    server.start()
    assert "no network" not in server.log()
    assert reached(box, "1.2.3.4:80") == {"1.2.3.4:80"}


@pytest.mark.parametrize("damage", ["table", "rules", "forwarding", "uplink", "route", "gateway"])
def test_what_others_take_away_comes_back(lab, make_netted, busybox, damage):
    server = make_netted(cleanup_interval_seconds=1)
    box, limited = server.create(block_network=False), allowing(server, "10.1.2.3:443")
    ours, granted, wired = ("table", "ip", uplink(server)), elements(lab, server), wires(lab, server)
    before = run("nft", "list", *ours)
    if damage == "table":  # as "nft flush ruleset" does, which would meet this lab's other server too
        run("nft", "delete", *ours)
    elif damage == "rules":
        run("nft", "flush", *ours)
    elif damage == "forwarding":
        run("sysctl", "-qw", "net.ipv4.ip_forward=0")
    elif damage == "uplink":
        run("ip", "link", "delete", uplink(server))
    elif damage == "route":
        run("ip", "link", "set", uplink(server), "down")
    else:
        lab.in_gateway(server, "nft", "flush", "ruleset")
    eventually(lambda: "made right again" in server.log(100000), 30, server.log)
    eventually(lambda: uplink(server) in rules() and run("nft", "list", *ours) == before, 20, rules)
    assert elements(lab, server) == granted and wires(lab, server) == wired
    assert reached(box, "1.2.3.4:80", "10.1.2.3:443") == {"1.2.3.4:80"}
    assert reached(limited, "1.2.3.4:80", "10.1.2.3:443") == {"10.1.2.3:443"}
    again = server.create(block_network=False, image=busybox)  # and nobody counts what is there twice
    again.delete()
    assert server.log(100000).count("made right again") == 1


def test_an_address_the_host_gets_later_is_not_reached(lab, make_netted):
    # The host is left to its administrator, so the gateway alone stands before it.
    server = make_netted(network_host_setup=False, listen_host="0.0.0.0")
    before = rules()
    run("nft", "add table ip mine; add chain ip mine post { type nat hook postrouting priority 100 ; };"
               "add rule ip mine post ip saddr " + server.settings["network_subnet"] + " masquerade")
    run("sysctl", "-qw", "net.ipv4.ip_forward=1")
    later = f"203.0.113.77:{server.port}"
    box = server.create(block_network=False)
    assert reached(box, "1.2.3.4:80", f"{HOST}:{server.port}") == {"1.2.3.4:80"}
    run("ip", "address", "add", "203.0.113.77/32", "dev", "lo")
    eventually(lambda: "203.0.113.77" in lab.in_gateway(server, "nft", "list", "set", "inet", "orchard", "host"), 10,
               "the gateway hears of it")
    assert reached(box, "1.2.3.4:80", later) == {"1.2.3.4:80"}
    run("ip", "address", "del", "203.0.113.77/32", "dev", "lo")
    eventually(lambda: "203.0.113.77" not in lab.in_gateway(server, "nft", "list", "set", "inet", "orchard", "host"), 10,
               "and that it is gone")
    run("nft", "delete", "table", "ip", "mine")
    assert rules() == before


# --- what is left -------------------------------------------------------

def test_the_host_gets_everything_back(make_netted):
    run("nft", "add table inet theirs; add chain inet theirs c { type filter hook forward priority 0 ; policy accept ; };"
               "add rule inet theirs c counter accept")
    run("sysctl", "-qw", "net.ipv4.ip_forward=0")
    before, interfaces, routes = run("nft", "-s", "list", "ruleset"), devices(), run("ip", "route")
    server = make_netted()
    server.create(block_network=True).delete()
    assert (run("nft", "-s", "list", "ruleset"), devices()) == (before, interfaces)  # untouched while none has a network
    box = server.create(block_network=False)
    assert devices() - interfaces == {uplink(server)}
    ours = run("nft", "-s", "list", "table", "ip", uplink(server))
    assert ours in run("nft", "-s", "list", "ruleset")
    assert run("nft", "-s", "list", "ruleset").replace(ours, "") == before
    box.delete()
    eventually(lambda: not server.remains(), 20, "nothing remains")
    assert server.stop() == 0
    assert (run("nft", "-s", "list", "ruleset"), devices(), run("ip", "route")) == (before, interfaces, routes)
    assert not (server.run_dir / "network").exists()
    assert run("sysctl", "-n", "net.ipv4.ip_forward").strip() == "1"  # others may rely on it by now
    run("nft", "delete", "table", "inet", "theirs")


def test_two_hundred_come_and_go(lab, make_netted, busybox):
    server = make_netted()
    keeper = server.create(image=busybox, block_network=False)
    wired, granted = wires(lab, server), elements(lab, server)

    def one(number):
        fields = {"block_network": False} if number % 2 else {"egress": {"allow": ["1.2.3.4:80", "10.0.0.0/8"]}}
        answer = server.client.post("/sandboxes", json={"image": busybox, "memory": "32Mi"} | fields).json()
        state = server.client.get(f"/sandboxes/{answer['sandbox_id']}/wait").json()
        assert state["status"] == "ready", state
        return answer["sandbox_id"]

    def gone(name):
        assert server.client.delete(f"/sandboxes/{name}").status_code == 200

    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(one, range(200)))
        assert len(wires(lab, server)) == 201
        assert len(elements(lab, server)) == 1 + 100 + 200
        list(pool.map(gone, names))
    eventually(lambda: wires(lab, server) == wired and elements(lab, server) == granted, 60, "only the first one is left")
    assert "1.2.3.53" in keeper.out("cat /etc/resolv.conf")


def test_addresses_run_out_and_come_back(make_netted, busybox):
    server = make_netted(network_subnet="10.199.0.0/28")
    boxes = [server.create(image=busybox, block_network=False) for _ in range(12)]
    assert len({address_of(server, box) for box in boxes}) == 12
    answer = server.client.post("/sandboxes", json={"image": busybox, "block_network": False})
    assert answer.status_code == 503 and answer.json()["code"] == "no_capacity" and answer.headers["retry-after"]
    server.create(image=busybox, block_network=True).delete()
    freed = address_of(server, boxes[5])
    boxes[5].delete()
    eventually(lambda: not (server.state_dir / "sandboxes" / boxes[5].id).exists(), 20, "the address is free")
    again = server.create(image=busybox, egress={"allow": ["1.2.3.4:80"]})
    assert address_of(server, again) == freed
    assert again.out("nc -w 5 1.2.3.4 80 </dev/null").strip() == HOST
    assert again.exec("nc -w 5 1.2.3.4 443 </dev/null")["status"] == "failed"


# --- hosts that lack something ------------------------------------------

def test_a_range_in_use_is_refused(make_server, busybox):
    run("ip", "route", "add", "10.77.3.0/24", "via", "198.51.100.1")
    server = make_server(network_subnet="10.77.0.0/16").start()
    said = failure(server, image=busybox, block_network=False)
    assert "network_subnet" in said and "10.77.3.0/24" in said and "wan" in said
    assert "10.77.3.0/24" in server.log()
    server.create(image=busybox, block_network=True).delete()
    run("ip", "route", "del", "10.77.3.0/24")
    server.create(image=busybox, block_network=False).delete()  # it is looked at again


def test_a_network_by_default_is_there_from_the_start(make_netted, busybox):
    server = make_netted(block_network_default=False)
    assert uplink(server) in devices()
    box = server.create(image=busybox)
    assert box.get().json()["block_network"] is False
    assert box.out("nc -w 5 1.2.3.4 80 </dev/null").strip() == HOST


def test_no_subnet_no_network(make_server, busybox):
    server = make_server(network_subnet="").start()
    assert "network_subnet" in failure(server, image=busybox, block_network=False)
    server.create(image=busybox).delete()


def test_no_right_to_make_a_network(make_server, busybox):
    server = start_wrapped(make_server(network_subnet="10.198.0.0/16"), "setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin")
    server.wait_ready()
    said = failure(server, image=busybox, block_network=False)
    assert "no network for sandboxes" in said and ("permitted" in said or "CAP_NET_ADMIN" in said), said
    server.create(image=busybox).delete()


def test_private_ranges_can_be_opened_and_others_closed(make_netted):
    server = make_netted(network_block_private=False, network_blocked_cidrs=["8.8.8.0/24", "10.1.2.3"])
    box = server.create(block_network=False)
    assert reached(box, *PUBLIC, *PRIVATE, *METADATA) == (PUBLIC | PRIVATE) - {"8.8.8.8:443", "10.1.2.3:443"}
    limited = allowing(server, "8.8.8.8", "10.0.0.0/8")
    assert reached(limited, "8.8.8.8:443", "10.1.2.3:443", "10.9.9.9:80") == {"10.9.9.9:80"}
