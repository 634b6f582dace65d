/*
 * user.h - whom a command runs as: USER of an image, looked up in the image.
 *
 * /etc/passwd and /etc/group are read by hand: a static program must not load
 * the image's name service modules into PID 1.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_USER_H
#define ORCHARD_AGENT_USER_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

struct err;

enum { USER_MAX_GROUPS = 256 };

struct user {
	uid_t uid;
	gid_t gid;
	gid_t groups[USER_MAX_GROUPS]; /* supplementary */
	size_t group_count;
	char name[256]; /* "" when no entry has the uid */
	char home[4096], shell[4096];
};

/*
 * spec is `name`, `uid`, `name:group`, `uid:gid` or "" (root). root is where the
 * image's /etc is ("" in the sandbox itself). With an explicit group there are no
 * supplementary ones; a uid without an entry gets group 0 and home "/".
 */
int user_find(const char *root, const char *spec, struct user *ret_user, struct err *err) MUSTCHECK;

/* Whether this agent can act as that user: only root can be another. ERR_INVALID says as whom it runs. */
int user_check(const char *spec, struct err *err) MUSTCHECK;

/* What a file was when it was read. */
struct user_source {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
};

/* The last one found, as long as the files in the image's /etc stay what they were. Starts zeroed. */
struct user_cache {
	bool valid;
	char spec[512];
	struct user_source passwd, group;
	struct user user;
};

/* user_find() for one and the same root. */
int user_cache_find(struct user_cache *cache, const char *root, const char *spec, struct user *ret_user,
	struct err *err) MUSTCHECK;

#endif
