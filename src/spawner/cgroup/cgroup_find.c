/* cgroup_find.c - reads /proc/self/cgroup and /proc/self/mountinfo; nothing here is changed. */
/* SPDX-License-Identifier: MIT */
#include "spawner/cgroup/cgroup_find.h"

#include "base/err.h"
#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { PROC_FILE_MAX = 1 << 22 };

/* Whether the comma-separated list holds word. */
static bool
list_has(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; at != NULL; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0'))
			return true;
	}
	return false;
}

/* The text up to the next newline in buf; returns where the next line starts, NULL at the end. */
static const char *
line_next(const char *text, char *buf, size_t size)
{
	size_t len = strcspn(text, "\n");

	if (*text == '\0')
		return NULL;
	snprintf(buf, size, "%.*s", (int)len, text);
	return text + len + (text[len] == '\n');
}

/* "4:memory:/path" and "0::/path": our path in that hierarchy. */
static bool
own_path(const char *cgroups, const char *controller, char *ret_path, size_t size)
{
	char line[4096];

	while ((cgroups = line_next(cgroups, line, sizeof line)) != NULL) {
		char *names = strchr(line, ':');
		char *path = names != NULL ? strchr(names + 1, ':') : NULL;

		if (path == NULL)
			continue;
		names++;
		*path++ = '\0';
		if (controller == NULL ? strcmp(line, "0:") == 0 || (line[0] == '0' && *names == '\0')
				       : list_has(names, controller))
			return (size_t)snprintf(ret_path, size, "%s", path) < size;
	}
	return false;
}

/* One line of mountinfo; its fields are cut out of line. */
struct mount_line {
	char *root, *point, *type, *options;
};

static bool
mount_split(char *line, struct mount_line *ret_mount)
{
	char *save = NULL;
	char *field[6];
	char *tail = strstr(line, " - ");

	if (tail == NULL)
		return false;
	*tail = '\0';
	tail += 3;
	for (int i = 0; i < 6; i++) {
		field[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
		if (field[i] == NULL)
			return false;
	}
	ret_mount->root = field[3];
	ret_mount->point = field[4];
	ret_mount->type = strtok_r(tail, " ", &save);
	strtok_r(NULL, " ", &save);
	ret_mount->options = strtok_r(NULL, " ", &save);
	return ret_mount->type != NULL && ret_mount->options != NULL;
}

/* The part of path below a mount that shows the hierarchy from root on; NULL when it lies outside. */
static const char *
path_below(const char *path, const char *root)
{
	size_t len = strlen(root);

	if (strcmp(root, "/") == 0)
		return path;
	if (strncmp(path, root, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	return path + len;
}

/* From our own leaf one level up, where the groups of the sandboxes are. */
static void
leave_leaf(char *path)
{
	char *last = strrchr(path, '/');

	if (last != NULL && strcmp(last + 1, CGROUP_LEAF) == 0)
		last[last == path ? 1 : 0] = '\0';
}

bool
cgroup_find_in(const char *cgroups, const char *mounts, const char *controller, const char *parent, char *ret_path,
	size_t size)
{
	char own[2048], line[8192];
	struct mount_line mount;

	if (!own_path(cgroups, controller, own, sizeof own))
		return false;
	if (controller == NULL)
		leave_leaf(own);
	while ((mounts = line_next(mounts, line, sizeof line)) != NULL) {
		const char *below;

		if (!mount_split(line, &mount))
			continue;
		if (controller == NULL ? strcmp(mount.type, "cgroup2") != 0
				       : strcmp(mount.type, "cgroup") != 0 || !list_has(mount.options, controller))
			continue;
		below = parent[0] != '\0' ? parent : path_below(own, mount.root);
		if (below == NULL)
			continue;
		below += strspn(below, "/");
		return (size_t)snprintf(ret_path, size, "%s/%s", mount.point, below) < size;
	}
	return false;
}

bool
cgroup_find_dir(const char *controller, const char *parent, char *ret_path, size_t size)
{
	AUTO_FREE char *cgroups = NULL;
	AUTO_FREE char *mounts = NULL;
	struct err err;
	size_t len;

	if (file_read_at(AT_FDCWD, "/proc/self/cgroup", PROC_FILE_MAX, &cgroups, &len, &err) != 0 ||
		file_read_at(AT_FDCWD, "/proc/self/mountinfo", PROC_FILE_MAX, &mounts, &len, &err) != 0)
		return false;
	return cgroup_find_in(cgroups, mounts, controller, parent, ret_path, size);
}
