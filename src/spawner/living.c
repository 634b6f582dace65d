/* living.c - counts the sandboxes of an earlier spawner before there is another one. */
/* SPDX-License-Identifier: MIT */
#include "spawner/spawner.h"

#include "base/err.h"
#include "base/proc.h"
#include "conf/config.h"
#include "spawner/box_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static bool
is_living(int list_fd, const char *name, const char *boot_id)
{
	AUTO_FD dir = openat(list_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct box_state state;
	struct err err;

	return dir >= 0 && box_state_read(dir, &state, &err) == 0 && state.live && state.pid > 0 &&
		strcmp(state.boot_id, boot_id) == 0 && proc_is_alive(state.pid, state.pid_start);
}

uint32_t
spawner_count_living(const struct config *config)
{
	AUTO_FREE char *path = NULL;
	AUTO_DIR *list = NULL;
	const struct dirent *entry;
	char boot_id[37];
	uint32_t count = 0;

	if (asprintf(&path, "%s/sandboxes", config->state_dir) < 0)
		abort();
	list = opendir(path);
	proc_boot_id(boot_id);
	while (list != NULL && (entry = readdir(list)) != NULL)
		count += entry->d_name[0] != '.' && is_living(dirfd(list), entry->d_name, boot_id);
	return count;
}
