# SPDX-License-Identifier: MIT
# A pure v2 host. As a service manager delegates a unit's cgroup: controllers from above, the server alone in it.
mount_cgroups() {
	mount -t cgroup2 cgroup /sys/fs/cgroup
	echo "+cpu +memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
	mkdir /sys/fs/cgroup/unit
}
join() { # PID: of the server that is to be
	# a group that has handed controllers on takes no process itself
	echo "$1" 2>/dev/null >/sys/fs/cgroup/unit/cgroup.procs || echo "$1" >/sys/fs/cgroup/unit/orchard-server/cgroup.procs
}
limits() { # GROUP
	cat /sys/fs/cgroup/unit/orchard-*/"$1"/cpu.max
}
groups_of() { # GROUP
	ls -d /sys/fs/cgroup/unit/orchard-*/"$1" 2>/dev/null
}
group_count=1
hierarchies=.
runtimes=work
