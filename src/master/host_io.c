/* host_io.c - a kernel takes weights that none of its disks goes by, and says nothing; so we look at the disks. */
/* SPDX-License-Identifier: MIT */
#include "master/host_io.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "conf/config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { USUAL_WEIGHT = 100, FILE_MAX = 1 << 16 };

static bool
file_tells(int dir, const char *path, const char *word)
{
	AUTO_FREE char *text = NULL;
	struct err err;
	size_t len;

	return file_read_at(dir, path, FILE_MAX, &text, &len, &err) == 0 && strstr(text, word) != NULL;
}

static bool
some_disk_has_bfq(void)
{
	AUTO_DIR *dir = opendir("/sys/block");
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		char path[300];

		snprintf(path, sizeof path, "%s/queue/scheduler", entry->d_name);
		if (entry->d_name[0] != '.' && file_tells(dirfd(dir), path, "[bfq]"))
			return true;
	}
	return false;
}

void
host_io_warn(const struct config *config)
{
	if (strcmp(config->driver, "local") != 0 || config->sandbox_io_weight == USUAL_WEIGHT)
		return;
	if (some_disk_has_bfq() || file_tells(AT_FDCWD, "/sys/fs/cgroup/io.cost.qos", "enable=1"))
		return;
	log_warn("sandbox_io_weight has no effect: no disk of this host shares by weight; write bfq to the "
		 "/sys/block/*/queue/scheduler of the one below state_dir, or enable io.cost.qos for it");
}
