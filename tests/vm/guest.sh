# SPDX-License-Identifier: MIT
# The guest: a server of its own, with a disk that is ext4 with project quotas. Where this host has its cgroups: hosts/.
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs -o mode=755 run /run
exec >/dev/console 2>&1 </dev/null
ip link set lo up
insmod /modules/loop.ko
insmod /modules/overlay.ko
insmod /modules/quota_tree.ko
insmod /modules/quota_v2.ko
mkdir /disk
mount -o loop,prjquota -t ext4 /disk.img /disk
echo "kernel $(uname -r)"

host=$(sed 's/.*orchard.host=//; s/ .*//' /proc/cmdline)
. "/hosts/$host.sh"
mount_cgroups
export API_KEYS=key-of-the-guest AGENT_PATH=/opt/orchard-agent STATE_DIR=/disk/state
export DEFAULT_IMAGE=dir:/disk/image LOCAL_IMAGE_PATHS=/disk/image
start() {
	sh -c '. "/hosts/$0.sh"; join $$; exec /opt/orchardd' "$host" &
	server=$!
	tries=0
	until wget -qO- $url/ready 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries = $patience ] && break
		sleep 1
	done
}
url=http://127.0.0.1:8000
patience=60 # seconds until it is ready, on a machine that has other things to do
api() { # PATH [BODY]
	wget -qO- --header "X-API-Key: key-of-the-guest" ${2+--post-data "$2"} "$url$1"
}
run() { # COMMAND [SANDBOX]
	api /sandboxes/${2-a}/exec "{\"command\":\"$1\",\"wait\":true,\"timeout_seconds\":90}"
}
check() { # NAME TEXT PATTERN
	case $2 in
	*"$3"*) echo "CHECK $1 ok" ;;
	*) echo "CHECK $1 FAILED: $2" ;;
	esac
}
# Its control groups have its name, or that of the blank it was made of, which its record tells.
group_of() { # SANDBOX
	name=$(sed -n 's/.*"group": *"\([^"]*\)".*/\1/p' "/disk/state/sandboxes/$1/state.json")
	echo "${name:-$1}"
}

# An agent that is told by its environment, as in a pod: its own groups are in the place where it looks.
mkdir /pod
for place in $hierarchies; do mkdir "/sys/fs/cgroup/$place/pod"; done
export ORCHARD_AGENT_CONFIG='{"sandbox_id":"p","sandbox_uid":"p","token":"t"}'
sh -c 'for place in $1; do echo $$ >"/sys/fs/cgroup/$place/pod/cgroup.procs"; done
	exec unshare -m sh -c "
		mount -t tmpfs pod /pod
		for place in $1; do mkdir -p /pod/\$place; mount -o bind /sys/fs/cgroup/\$place/pod /pod/\$place; done
		mount -o rbind /pod /sys/fs/cgroup
		exec /opt/orchard-agent --listen 127.0.0.1:9090"' sh "$hierarchies" &
agent=$!
unset ORCHARD_AGENT_CONFIG
look() { # PATH
	wget -qO- --header "X-Orchard-Token: t" --header "X-Orchard-Sandbox: p" "http://127.0.0.1:9090$1" 2>&1
}
tries=0
until look /health >/dev/null || [ $tries = $patience ]; do
	tries=$((tries + 1))
	sleep 1
done
check pod_usage "$(look /usage | sed 's/:[1-9][0-9]*/:N/g')" '{"cpu_us":N,"memory_bytes":N,"memory_peak_bytes":N,"pids":N}'
kill -KILL $agent
wait $agent
for place in $hierarchies; do rmdir "/sys/fs/cgroup/$place/pod"; done

start
echo
check ready "$(api /ready)" '"ready"'
api /sandboxes '{"image":"default","sandbox_id":"a","memory":"64Mi","cpu":"0.5"}' >/dev/null
check created "$(api '/sandboxes/a/wait?timeout=30')" '"status":"ready"'
check root "$(run 'id -u; echo changed > /etc/motd; cat /etc/motd')" '"stdout":"0\nchanged\n"'
check image_untouched "$(cat /disk/image/etc/motd 2>&1)" "No such file"
check owners "$(run 'stat -c %u:%g /bin/busybox')" '"stdout":"0:0\n"'
check memory_limit "$(run 'dd if=/dev/zero of=/dev/null bs=100M count=1 2>/dev/null; echo rc=$?')" "rc=137"
check cpu_limit "$(limits "$(group_of a)")" "50000 100000"
check usage "$(api /sandboxes/a)" '"pids":'
check tree_kill "$(api /sandboxes/a/exec '{"command":"setsid sleep 500 & sleep 501","wait":true,"timeout_seconds":1}')" '"timed_out"'
check nothing_survives "$(run 'ps | grep -c [s]leep')" '"stdout":"0\n"'

# The disk of one sandbox: the kernel counts, and refuses.
api /sandboxes '{"image":"default","sandbox_id":"d","memory":"64Mi","disk":"8Mi"}' >/dev/null
check disk_created "$(api '/sandboxes/d/wait?timeout=30')" '"disk":"8Mi"'
check disk_size "$(run 'df -k / | tail -1' d)" ' 8192 '
check disk_full "$(run 'dd if=/dev/zero of=/big bs=64k count=320 2>/dev/null; echo rc=$?; stat -c %b /big' d)" 'rc=1'
check disk_is_said "$(run 'dd if=/dev/zero of=/more bs=4k count=9999' d)" "the sandbox's disk is full"
check disk_files "$(run 'rm /big /more; mkdir /m; cd /m; touch $(seq 2500) 2>/dev/null; [ $(ls | wc -l) -lt 2048 ] && echo bounded; rm -r /m' d)" '"stdout":"bounded'
check disk_leave "$(run 'chattr -p 7 /etc; echo rc=$?' d)" 'rc=1'
check disk_is_its_own "$(run 'dd if=/dev/zero of=/big bs=64k count=320 2>/dev/null; echo rc=$?; rm /big')" 'rc=0'
check disk_again "$(run 'dd if=/dev/zero of=/big bs=64k count=64 2>/dev/null; echo rc=$?' d)" 'rc=0'

# kill -9 of the spawner: it stands in the leaf when it comes back, and still finds its sandboxes.
for pid in /proc/[0-9]*; do
	[ "$(cat $pid/comm 2>/dev/null)" = orchard-spawner ] && [ "$(cut -d' ' -f4 $pid/stat)" = $server ] && kill -9 "${pid#/proc/}"
done
api /sandboxes '{"image":"default","sandbox_id":"b","memory":"64Mi"}' >/dev/null
check after_spawner_death "$(api '/sandboxes/b/wait?timeout=30')" '"status":"ready"'
check one_place "$(groups_of "$(group_of a)" | wc -l) $(groups_of "$(group_of b)" | wc -l)" "$group_count $group_count"

# A restart of the server adopts what lives.
kill -TERM $server
wait $server
start
echo
check adopted "$(run 'cat /etc/motd')" '"stdout":"changed\n"'
check disk_adopted "$(run 'dd if=/dev/zero of=/big bs=64k count=320 2>/dev/null; echo rc=$?' d)" 'rc=1'

# What wget can't: other methods, and the body of a refusal.
ask() { # METHOD PATH
	{
		printf '%s %s HTTP/1.1\r\nHost: guest\r\nX-API-Key: key-of-the-guest\r\nConnection: close\r\n\r\n' "$1" "$2"
		sleep 2 # whoever closes its side takes its request back
	} | nc 127.0.0.1 8000 | tr -d '\r'
}

# What is deleted leaves no group behind, whatever runs in it.
remove() { # SANDBOX GROUP: says what is left of its groups, after as long as a guest may take
	ask DELETE "/sandboxes/$1" | head -1
	tries=0
	while [ -n "$(groups_of "$2")" ] && [ $tries -lt 30 ]; do
		tries=$((tries + 1))
		sleep 1
	done
	groups_of "$2"
}
b_group=$(group_of b)
api /sandboxes/b/exec '{"command":"trap : TERM HUP INT; i=0; while [ $i -lt 30 ]; do i=$((i + 1)); setsid sleep 60 & done; wait","wait":false}' >/dev/null
tries=0
until [ "$(ps | grep -c '[s]leep 60')" -ge 30 ] || [ $tries = 30 ]; do
	tries=$((tries + 1))
	sleep 1
done
check removed "$(remove b "$b_group")|$(ps | grep -c '[s]leep 60')" "200 OK"
check nothing_left "$(remove b "$b_group" | tail -n +2)|$(ps | grep -c '[s]leep 60')" "|0"
kill -TERM $server
wait $server

# An OCI runtime in the place of our own code: works, or says what it needs.
[ "$runtimes" = work ] || patience=3
for LOCAL_RUNTIME in crun runc; do
	export LOCAL_RUNTIME
	start
	echo
	if [ "$runtimes" = work ]; then
		api /sandboxes '{"image":"default","sandbox_id":"r","memory":"64Mi","cpu":"0.5"}' >/dev/null
		check "$LOCAL_RUNTIME" "$(api '/sandboxes/r/wait?timeout=120')" '"status":"ready"'
		check "$LOCAL_RUNTIME root" "$(run 'id -u; cat /proc/1/comm' r)" '"stdout":"0\norchard-agent'
		check "$LOCAL_RUNTIME cpu_limit" "$(limits "$(group_of r)")" "50000 100000"
		check "$LOCAL_RUNTIME memory_limit" "$(run 'dd if=/dev/zero of=/dev/null bs=100M count=1 2>/dev/null; echo rc=$?' r)" "rc=137"
		check "$LOCAL_RUNTIME removed" "$(remove r "$(group_of r)")|" "200 OK|"
	else
		check "$LOCAL_RUNTIME says what it needs" "$(ask GET /ready)" "$runtimes"
	fi
	kill -TERM $server
	wait $server
done
echo "GUEST DONE"
poweroff -f
