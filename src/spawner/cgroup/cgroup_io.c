/* cgroup_io.c - one weight, for which each generation of kernels has files and scales of its own. */
/* SPDX-License-Identifier: MIT */
#include "spawner/cgroup/cgroup_io.h"

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const struct {
	const char *name;
	int64_t usual, lowest, highest; /* usual: of any other group */
} files[] = {
	{ "io.weight", 100, 1, 10000 },
	{ "io.bfq.weight", 100, 1, 1000 },
	{ "blkio.bfq.weight", 100, 1, 1000 },
	{ "blkio.weight", 500, 10, 1000 },
};

enum { FILES = sizeof files / sizeof *files };

static bool
has_file(int dir)
{
	for (size_t i = 0; i < FILES; i++) {
		if (faccessat(dir, files[i].name, F_OK, 0) == 0)
			return true;
	}
	return false;
}

void
cgroup_io_warn(const struct cgroup_host *host)
{
	int v1 = host->v1_fd[CGROUP_IO];

	if (!host->share_io)
		return;
	if (v1 < 0 && !host->v2_limit[CGROUP_IO])
		log_warn("sandbox_io_weight has no effect: this host offers no cgroup controller for io%s%s",
			host->why[0] != '\0' ? " - " : "", host->why);
	else if (!has_file(v1 >= 0 ? v1 : host->v2_fd))
		log_warn("sandbox_io_weight has no effect: the kernel's cgroups know no weight of io; load the "
			 "module "
			 "bfq before orchardd starts");
}

int
cgroup_io_limit(int dir, int64_t weight, struct err *err)
{
	char text[32];

	for (size_t i = 0; i < FILES; i++) {
		int64_t value = weight * files[i].usual / CGROUP_USUAL_WEIGHT;

		if (faccessat(dir, files[i].name, F_OK, 0) != 0)
			continue;
		if (value < files[i].lowest)
			value = files[i].lowest;
		if (value > files[i].highest)
			value = files[i].highest;
		snprintf(text, sizeof text, "%lld", (long long)value);
		if (file_put_at(dir, files[i].name, text, err) != 0) {
			err->code = ERR_UNSUPPORTED;
			return err_prefix(err, "the io weight can't be applied");
		}
	}
	return 0;
}
