/* cgroup_earlier.c - places as a list of paths in a file that lasts as long as cgroups do: until the next boot. */
/* SPDX-License-Identifier: MIT */
#include "spawner/cgroup/cgroup_earlier.h"

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "spawner/cgroup/cgroup_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MEMORY_MAX = 1 << 20 };
static const char file_name[] = "cgroups";

static void
place_close(struct cgroup_place *place)
{
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		cleanup_fd(&place->fd[i]);
		cleanup_fd(&place->above_fd[i]);
		place->fd[i] = place->above_fd[i] = -1;
	}
}

static bool
is_same(int one, int other)
{
	struct stat a, b;

	return one >= 0 && other >= 0 && fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino;
}

static bool
is_known(const struct cgroup_host *host, int which, int fd)
{
	int dirs[CGROUP_HIERARCHIES];

	for (unsigned place = 0; cgroup_place_dirs(host, place, dirs); place++) {
		if (is_same(dirs[which], fd))
			return true;
	}
	return false;
}

/* Opens our directory below path, unless it is empty, and goes, or is known already. */
static void
open_one(struct cgroup_host *host, int which, const char *path, struct cgroup_place *place)
{
	AUTO_FD above = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FD fd = above >= 0 ? cgroup_open_dir(above, host->name) : -1;

	if (fd < 0 || is_known(host, which, fd) || unlinkat(above, host->name, AT_REMOVEDIR) == 0)
		return;
	place->fd[which] = STEAL_FD(fd);
	place->above_fd[which] = STEAL_FD(above);
}

/* True when something is there. */
static bool
open_place(struct cgroup_host *host, struct json_object *paths, struct cgroup_place *place)
{
	bool any = false;

	if (!json_object_is_type(paths, json_type_array))
		return false;
	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		const char *path = json_object_get_string(json_object_array_get_idx(paths, (size_t)i));

		if (path != NULL)
			open_one(host, i, path, place);
		any = any || place->fd[i] >= 0;
	}
	return any;
}

static struct json_object *
read_memory(int memory_fd)
{
	AUTO_FREE char *text = NULL;
	struct json_object *places;
	struct err err;
	size_t len;

	if (file_read_at(memory_fd, file_name, MEMORY_MAX, &text, &len, &err) != 0)
		return NULL;
	places = json_parse(text, len, &err);
	if (json_object_is_type(places, json_type_array))
		return places;
	json_object_put(places);
	return NULL;
}

/* above_fd: of one place. */
static struct json_object *
paths_json(const int *above_fd)
{
	struct json_object *paths = json_object_new_array();
	char link[64], path[PATH_MAX];

	for (int i = 0; i < CGROUP_HIERARCHIES; i++) {
		ssize_t n;

		snprintf(link, sizeof link, "/proc/self/fd/%d", above_fd[i]);
		n = above_fd[i] >= 0 ? readlink(link, path, sizeof path - 1) : -1;
		json_object_array_add(paths, n > 0 ? json_object_new_string_len(path, (int)n) : NULL);
	}
	return paths;
}

static void
remember(const struct cgroup_host *host, int memory_fd)
{
	AUTO_JSON struct json_object *places = json_object_new_array();
	const char *text;
	struct err err;
	size_t len;

	json_object_array_add(places, paths_json(host->above_fd));
	for (unsigned i = 0; i < host->earlier_count; i++)
		json_object_array_add(places, paths_json(host->earlier[i].above_fd));
	text = json_text(places, &len);
	if (file_write_atomic_at(memory_fd, file_name, 0600, text, len, false, &err) != 0)
		log_warn("where the cgroups of sandboxes are will not be known when cgroup_parent changes: %s",
			err.msg);
}

void
cgroup_earlier_open(struct cgroup_host *host, int memory_fd)
{
	AUTO_JSON struct json_object *places = read_memory(memory_fd);

	for (size_t i = 0; places != NULL && i < json_object_array_length(places); i++) {
		struct cgroup_place place;

		memset(&place, -1, sizeof place);
		if (!open_place(host, json_object_array_get_idx(places, i), &place))
			continue;
		if (host->earlier_count == CGROUP_EARLIER_MAX) {
			log_error("cgroups of sandboxes are in more than %d places; some are not looked after",
				CGROUP_EARLIER_MAX);
			place_close(&place);
			continue;
		}
		host->earlier[host->earlier_count++] = place;
	}
	if (host->earlier_count > 0)
		log_info("cgroups of an earlier start are in another place than new ones: they stay there while "
			 "they live");
	remember(host, memory_fd);
}

void
cgroup_earlier_trim(struct cgroup_host *host)
{
	for (unsigned i = 0; i < host->earlier_count; i++) {
		struct cgroup_place *place = &host->earlier[i];

		for (int j = 0; j < CGROUP_HIERARCHIES; j++) {
			if (place->fd[j] < 0 || unlinkat(place->above_fd[j], host->name, AT_REMOVEDIR) != 0)
				continue;
			cleanup_fd(&place->fd[j]);
			place->fd[j] = -1;
		}
	}
}

void
cgroup_earlier_close(struct cgroup_host *host)
{
	cgroup_earlier_trim(host);
	for (unsigned i = 0; i < host->earlier_count; i++)
		place_close(&host->earlier[i]);
	host->earlier_count = 0;
}
