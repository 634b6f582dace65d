/* entry.c - what stat and list tell of one entry. */
/* SPDX-License-Identifier: MIT */
#include "agent/files/file_call.h"

#include <dirent.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *
entry_kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "regular";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	default:
		return "device";
	}
}

static const char entry_epoch[] = "1970-01-01T00:00:00";

static void
entry_add_times(struct json_object *entry, const struct stat *st)
{
	struct tm utc;
	char text[40];

	snprintf(text, sizeof text, "%s", entry_epoch);
	if (gmtime_r(&st->st_mtim.tv_sec, &utc) != NULL && utc.tm_year <= 8099)
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
	json_object_object_add(entry, "modified", json_object_new_string(text));
	json_object_object_add(entry, "mtime",
		json_object_new_double((double)st->st_mtim.tv_sec + (double)st->st_mtim.tv_nsec / 1e9));
}

void
file_entry_add(struct json_object *entry, int dir_fd, const char *path, const struct stat *link)
{
	struct stat target, *st = &target;
	char text[PATH_MAX];
	ssize_t len = S_ISLNK(link->st_mode) ? readlinkat(dir_fd, path, text, sizeof text) : -1;

	target = *link;
	if (S_ISLNK(link->st_mode) && fstatat(dir_fd, path, &target, 0) < 0)
		target = *link;
	json_object_object_add(entry, "type", json_object_new_string(S_ISDIR(st->st_mode) ? "directory" : "file"));
	json_object_object_add(entry, "size", json_object_new_int64(st->st_size));
	entry_add_times(entry, st);
	json_object_object_add(entry, "kind", json_object_new_string(entry_kind(link->st_mode)));
	json_object_object_add(entry, "is_symlink", json_object_new_boolean(S_ISLNK(link->st_mode)));
	json_object_object_add(entry, "target", len < 0 ? NULL : json_object_new_string_len(text, (int)len));
	snprintf(text, sizeof text, "%04o", (unsigned)(st->st_mode & 07777));
	json_object_object_add(entry, "mode", json_object_new_string(text));
	json_object_object_add(entry, "uid", json_object_new_int64(st->st_uid));
	json_object_object_add(entry, "gid", json_object_new_int64(st->st_gid));
}

void
file_entry_add_unknown(struct json_object *entry, unsigned char d_type)
{
	json_object_object_add(entry, "type", json_object_new_string(d_type == DT_DIR ? "directory" : "file"));
	json_object_object_add(entry, "size", json_object_new_int64(0));
	json_object_object_add(entry, "modified", json_object_new_string(entry_epoch));
	if (d_type != DT_UNKNOWN)
		json_object_object_add(entry, "kind", json_object_new_string(entry_kind(DTTOIF(d_type))));
}
