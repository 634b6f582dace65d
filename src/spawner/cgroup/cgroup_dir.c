/* cgroup_dir.c - opens, makes, reads and writes below a cgroup's directory. */
/* SPDX-License-Identifier: MIT */
#include "spawner/cgroup/cgroup_dir.h"

#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

const char *const cgroup_v1_names[CGROUP_CONTROLLERS] = { "cpu", "memory", "pids", "blkio" };
const char *const cgroup_v2_names[CGROUP_CONTROLLERS] = { "cpu", "memory", "pids", "io" };

int
cgroup_open_dir(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool
cgroup_place_dirs(const struct cgroup_host *host, unsigned place, int ret_dirs[CGROUP_HIERARCHIES])
{
	if (place > host->earlier_count)
		return false;
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		if (place > 0)
			ret_dirs[i] = host->earlier[place - 1].fd[i];
		else
			ret_dirs[i] = i == CGROUP_V2 ? host->v2_fd : host->v1_fd[i];
	}
	return true;
}

int
cgroup_open_box(const struct cgroup_host *host, int which, const char *id)
{
	int dirs[CGROUP_HIERARCHIES], fd = -1;

	errno = ENOENT;
	for (unsigned place = 0; fd < 0 && cgroup_place_dirs(host, place, dirs); place++) {
		if (dirs[which] >= 0)
			fd = cgroup_open_dir(dirs[which], id);
	}
	return fd;
}

int
cgroup_make_dir(int at, const char *name)
{
	if (mkdirat(at, name, 0755) != 0 && errno != EEXIST)
		return -1;
	return cgroup_open_dir(at, name);
}

int
cgroup_put(int dir, const char *file, const char *text)
{
	struct err err;

	return file_put_at(dir, file, text, &err);
}

bool
cgroup_file_has_word(int dir, const char *file, const char *word)
{
	AUTO_FREE char *text = NULL;
	char *save = NULL;
	struct err err;
	size_t len;

	if (file_read_at(dir, file, 4096, &text, &len, &err) != 0)
		return false;
	for (char *at = strtok_r(text, " \n", &save); at != NULL; at = strtok_r(NULL, " \n", &save)) {
		if (strcmp(at, word) == 0)
			return true;
	}
	return false;
}
