/* host_limits.c - reads the limits, changes none: they are the operator's. */
/* SPDX-License-Identifier: MIT */
#include "master/host_limits.h"

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "conf/config.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { HOST_OWN = 1000 /* processes or descriptors that are not a sandbox's */, VALUE_MAX = 64 };

/* One of each per sandbox, at least. */
static const char *const per_sandbox[] = { "kernel/pid_max", "kernel/threads-max", "user/max_user_namespaces",
	"user/max_mnt_namespaces", "user/max_pid_namespaces", "user/max_net_namespaces", "user/max_ipc_namespaces",
	"user/max_uts_namespaces", "user/max_cgroup_namespaces" };

static void
warn_low(const char *name, int64_t sandboxes)
{
	AUTO_FD dir = open("/proc/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FREE char *text = NULL;
	struct err err;
	long long value;
	size_t len;

	if (dir < 0 || file_read_at(dir, name, VALUE_MAX, &text, &len, &err) != 0)
		return;
	value = strtoll(text, NULL, 10);
	if (value < sandboxes + HOST_OWN)
		log_warn("/proc/sys/%s is %lld: creates fail long before max_sandboxes (%lld) is reached; raise "
			 "the one "
			 "or lower the other",
			name, value, (long long)sandboxes);
}

void
host_limits_warn(const struct config *config)
{
	struct rlimit files;

	if (strcmp(config->driver, "local") == 0) {
		for (size_t i = 0; i < sizeof per_sandbox / sizeof per_sandbox[0]; i++)
			warn_low(per_sandbox[i], config->max_sandboxes);
	}
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max != RLIM_INFINITY &&
		(int64_t)files.rlim_max < config->max_connections + HOST_OWN)
		log_warn("a process may open %llu files at most: fewer than max_connections (%lld) need; raise "
			 "LimitNOFILE of the unit, or lower it",
			(unsigned long long)files.rlim_max, (long long)config->max_connections);
}
