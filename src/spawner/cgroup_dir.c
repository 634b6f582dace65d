/* cgroup_dir.c - opens, makes, reads and writes below a cgroup's directory. */
/* SPDX-License-Identifier: MIT */
#include "spawner/cgroup_dir.h"

#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

const char *const cgroup_controller_names[CGROUP_CONTROLLERS] = { "cpu", "memory", "pids" };

int
cgroup_open_dir(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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
