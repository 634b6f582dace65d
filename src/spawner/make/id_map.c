/* id_map.c - writes the maps of a user namespace. */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/id_map.h"

#include "base/err.h"
#include "base/file.h"
#include "spawner/site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static int
write_one(pid_t pid, const char *file, uid_t first, struct err *err)
{
	char path[64], text[64];

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	snprintf(text, sizeof text, "0 %u %d", first, SITE_IDS);
	return file_put_at(AT_FDCWD, path, text, err);
}

int
id_map_write(pid_t pid, uid_t first, struct err *err)
{
	return write_one(pid, "uid_map", first, err) != 0 ? -1 : write_one(pid, "gid_map", first, err);
}

int
id_map_open(pid_t pid, int *ret_userns, struct err *err)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
	*ret_userns = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_userns >= 0 ? 0 : err_set_errno(err, errno, "user namespace of the sandbox");
}
