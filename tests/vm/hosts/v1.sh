# SPDX-License-Identifier: MIT
# A host of before: each controller has a hierarchy of its own, and there is no v2 tree.
mount_v1() {
	mount -t tmpfs -o mode=755 cgroups /sys/fs/cgroup
	for controllers in cpu,cpuacct memory pids blkio; do
		mkdir /sys/fs/cgroup/$controllers
		mount -t cgroup -o $controllers cgroup /sys/fs/cgroup/$controllers
	done
}
mount_cgroups() {
	mount_v1
}
join() { # PID: it stays at the top
	:
}
limits() { # GROUP
	echo $(cat /sys/fs/cgroup/cpu,cpuacct/orchard-*/"$1"/cpu.cfs_quota_us /sys/fs/cgroup/cpu,cpuacct/orchard-*/"$1"/cpu.cfs_period_us)
}
groups_of() { # GROUP
	ls -d /sys/fs/cgroup/*/orchard-*/"$1" 2>/dev/null
}
group_count=3
hierarchies="cpu,cpuacct memory pids"
runtimes="mount -t cgroup2"
