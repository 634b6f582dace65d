# SPDX-License-Identifier: MIT
# The limits are v1's, and beside them there is the v2 tree, without controllers.
. /hosts/v1.sh
mount_cgroups() {
	mount_v1
	mkdir /sys/fs/cgroup/unified
	mount -t cgroup2 cgroup /sys/fs/cgroup/unified
}
group_count=4
runtimes=work
