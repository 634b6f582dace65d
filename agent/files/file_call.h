/* file_call.h - one file call: what was asked for, and who does it in the helper. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_FILES_FILE_CALL_H
#define ORCHARD_AGENT_FILES_FILE_CALL_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct helper_side;
struct json_object;
struct stat;

/* Strings are owned; NULL: not given. Paths are bytes, never empty; relative ones count from the working directory. */
struct file_call {
	char *path, *to;
	int mode; /* -1: not given */
	bool head; /* only the head of the answer is wanted */
	bool sync, follow, parents, overwrite, recursive;
	int64_t limit;
	char *after;
	char *range, *if_range, *if_none_match;
};

void file_call_free(void *call);

/* Each is a helper's run(); arg is the struct file_call. */
void file_put_run(struct helper_side *side, const void *arg);
void file_get_run(struct helper_side *side, const void *arg);
void file_stat_run(struct helper_side *side, const void *arg);
void file_list_run(struct helper_side *side, const void *arg);
void file_mkdir_run(struct helper_side *side, const void *arg);
void file_move_run(struct helper_side *side, const void *arg);
void file_delete_run(struct helper_side *side, const void *arg);

/* False: it counts from a working directory that cannot be entered, and that is the answer. */
bool file_path_check(struct helper_side *side, const char *path) MUSTCHECK;
/* The path up to its last part, without that: "." when there is none. malloc'ed. */
char *file_path_parent(const char *path);
/* mkdir -p, with modes by the umask. 0 or -1 with errno. */
int file_make_dirs(const char *path, int mode) MUSTCHECK;
/* `e` + hex of what changes when a file does, in quotes. */
char *file_etag(const struct stat *st);
/* The members of an entry that stat and list have in common. path: from dir_fd. */
void file_entry_add(struct json_object *entry, int dir_fd, const char *path, const struct stat *link);
/* Those that clients rely on, of an entry that may not be looked at. d_type: as readdir() tells it. */
void file_entry_add_unknown(struct json_object *entry, unsigned char d_type);

#endif
