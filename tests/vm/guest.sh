# SPDX-License-Identifier: MIT
# The guest: a server of its own on a pure v2 host, with a disk that is ext4 as most are.
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs -o mode=755 run /run
mount -t cgroup2 cgroup /sys/fs/cgroup
exec >/dev/console 2>&1 </dev/null
ip link set lo up
insmod /modules/loop.ko
insmod /modules/overlay.ko
mkdir /disk
mount -o loop -t ext4 /disk.img /disk
echo "kernel $(uname -r)"

# As a service manager delegates a unit's cgroup: controllers from above, the server alone in it.
echo "+cpu +memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/unit
export API_KEYS=key-of-the-guest AGENT_PATH=/opt/orchard-agent STATE_DIR=/disk/state
export DEFAULT_IMAGE=dir:/disk/image LOCAL_IMAGE_PATHS=/disk/image
start() {
	sh -c 'echo $$ >/sys/fs/cgroup/unit/cgroup.procs; exec /opt/orchardd' &
	server=$!
	tries=0
	until wget -qO- $url/ready 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries = 20 ] && break
		sleep 1
	done
}
url=http://127.0.0.1:8000
api() { # PATH [BODY]
	wget -qO- --header "X-API-Key: key-of-the-guest" ${2+--post-data "$2"} "$url$1"
}
run() { # COMMAND
	api /sandboxes/a/exec "{\"command\":\"$1\",\"wait\":true,\"timeout_seconds\":20}"
}
check() { # NAME TEXT PATTERN
	case $2 in
	*"$3"*) echo "CHECK $1 ok" ;;
	*) echo "CHECK $1 FAILED: $2" ;;
	esac
}

start
echo
check ready "$(api /ready)" '"ready"'
api /sandboxes '{"image":"default","sandbox_id":"a","memory":"64Mi","cpu":"0.5"}' >/dev/null
check created "$(api '/sandboxes/a/wait?timeout=30')" '"status":"ready"'
check root "$(run 'id -u; echo changed > /etc/motd; cat /etc/motd')" '"stdout":"0\nchanged\n"'
check image_untouched "$(cat /disk/image/etc/motd 2>&1)" "No such file"
check owners "$(run 'stat -c %u:%g /bin/busybox')" '"stdout":"0:0\n"'
check memory_limit "$(run 'head -c 200m /dev/zero | tail >/dev/null; echo rc=$?')" "rc=137"
check cpu_and_pids "$(cat /sys/fs/cgroup/unit/orchard-*/a/cpu.max) $(cat /sys/fs/cgroup/unit/orchard-*/a/pids.max)" "50000 100000"
check tree_kill "$(api /sandboxes/a/exec '{"command":"setsid sleep 500 & sleep 501","wait":true,"timeout_seconds":1}')" '"timed_out"'
check nothing_survives "$(run 'ps | grep -c [s]leep')" '"stdout":"0\n"'

# kill -9 of the spawner: it stands in the leaf when it comes back, and still finds its sandboxes.
for pid in /proc/[0-9]*; do
	[ "$(cat $pid/comm 2>/dev/null)" = orchard-spawner ] && [ "$(cut -d' ' -f4 $pid/stat)" = $server ] && kill -9 "${pid#/proc/}"
done
api /sandboxes '{"image":"default","sandbox_id":"b","memory":"64Mi"}' >/dev/null
check after_spawner_death "$(api '/sandboxes/b/wait?timeout=30')" '"status":"ready"'
check one_place "$(ls -d /sys/fs/cgroup/unit/orchard-*/a /sys/fs/cgroup/unit/orchard-*/b | wc -l)" 2

# A restart of the server adopts what lives.
kill -TERM $server
wait $server
start
echo
check adopted "$(run 'cat /etc/motd')" '"stdout":"changed\n"'
kill -TERM $server
wait $server
echo "GUEST DONE"
poweroff -f
