/* ambient.c - asked once, before anything of the sandbox runs. */
/* SPDX-License-Identifier: MIT */
#include "agent/ambient.h"

#include "agent/user.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *
ambient_take_config(void)
{
	char *inside = getenv(AMBIENT_CONFIG), *text;

	if (inside == NULL)
		return NULL;
	text = alloc_string(inside);
	explicit_bzero(inside, strlen(inside));
	unsetenv(AMBIENT_CONFIG);
	return text;
}

/* What a runtime sets where the image does not; for other users of the image it would be wrong. */
static bool
ambient_is_own_home(const char *entry)
{
	AUTO_FREE char *uid = alloc_format("%u", (unsigned)geteuid());
	struct user user;
	struct err err;

	if (strncmp(entry, "HOME=", 5) != 0)
		return false;
	return user_find("", uid, &user, &err) == 0 && strcmp(entry + 5, user.home) == 0;
}

static bool
ambient_is_hidden(const char *entry)
{
	return strncmp(entry, "KUBERNETES_", strlen("KUBERNETES_")) == 0 ||
		strncmp(entry, AMBIENT_CONFIG "=", sizeof AMBIENT_CONFIG) == 0 || strchr(entry, '=') == NULL ||
		ambient_is_own_home(entry);
}

char **
ambient_env(size_t *ret_count)
{
	size_t count = 0, kept = 0;
	char **made;

	while (environ != NULL && environ[count] != NULL)
		count++;
	made = alloc_zero(count + 1, sizeof *made);
	for (size_t i = 0; i < count; i++)
		if (!ambient_is_hidden(environ[i]))
			made[kept++] = alloc_string(environ[i]);
	*ret_count = kept;
	return made;
}

char *
ambient_dir(void)
{
	char *path = getcwd(NULL, 0);

	if (path != NULL && path[0] == '/')
		return path;
	free(path);
	return alloc_string("/");
}

int
ambient_oom_fd(void)
{
	static const char *const files[] = {
		"/sys/fs/cgroup/memory.events",
		"/sys/fs/cgroup/memory/memory.oom_control",
	};

	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		int fd = open(files[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			return fd;
	}
	return -1;
}
