/* user.c - the image's passwd and group files, line by line. */
/* SPDX-License-Identifier: MIT */
#include "agent/user.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { USER_MAX_FILE = 4 << 20, USER_FIELDS = 7 };

/* A decimal id that fits; (uid_t)-1 means "leave as it is" to the kernel and is no id. */
static bool
user_number(const char *text, uint32_t *ret_id)
{
	uint64_t id = 0;

	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return false;
		id = id * 10 + (uint64_t)(*text - '0');
		if (id >= UINT32_MAX)
			return false;
	}
	*ret_id = (uint32_t)id;
	return true;
}

/*
 * NULL when it is missing, absurd or no file: then nobody is listed. User code may
 * have put a FIFO there, which must not stop PID 1.
 */
static char *
user_file(const char *root, const char *name)
{
	AUTO_FREE char *text = NULL;
	AUTO_FD fd = -1;
	char path[4096];
	size_t len = 0;
	struct stat st;

	snprintf(path, sizeof path, "%s/etc/%s", root, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > USER_MAX_FILE)
		return NULL;
	text = alloc_bytes((size_t)st.st_size + 1);
	while (len < (size_t)st.st_size) {
		ssize_t got = read(fd, text + len, (size_t)st.st_size - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		len += (size_t)got;
	}
	text[len] = '\0';
	return STEAL_PTR(text);
}

/* Splits the line at *next by colons; false at the end of the text. Missing fields are "". */
static bool
user_line(char **next, char *fields[USER_FIELDS])
{
	static char empty[1];
	char *line = *next;
	char *end;

	if (line == NULL || *line == '\0')
		return false;
	end = strchr(line, '\n');
	*next = end == NULL ? NULL : end + 1;
	if (end != NULL)
		*end = '\0';
	for (size_t i = 0; i < USER_FIELDS; i++) {
		fields[i] = line == NULL ? empty : line;
		if (line != NULL && i + 1 < USER_FIELDS) {
			line = strchr(line, ':');
			if (line != NULL)
				*line++ = '\0';
		}
	}
	return true;
}

/* Fills user from the entry of that name or, when name is a number, of that uid. */
static bool
user_passwd(const char *root, const char *name, struct user *user)
{
	AUTO_FREE char *text = user_file(root, "passwd");
	char *next = text, *fields[USER_FIELDS];
	uint32_t wanted = 0, uid, gid;
	bool numeric = user_number(name, &wanted);

	while (user_line(&next, fields)) {
		if (!user_number(fields[2], &uid) || !user_number(fields[3], &gid))
			continue;
		if (strcmp(fields[0], name) != 0 && !(numeric && uid == wanted))
			continue;
		user->uid = uid;
		user->gid = gid;
		if (!text_copy(user->name, sizeof user->name, fields[0]))
			user->name[0] = '\0';
		if (fields[5][0] == '/' && !text_copy(user->home, sizeof user->home, fields[5]))
			return false;
		if (fields[6][0] == '/' && !text_copy(user->shell, sizeof user->shell, fields[6]))
			return false;
		return true;
	}
	user->uid = wanted;
	return numeric;
}

static bool
user_group(const char *root, const char *name, gid_t *ret_gid)
{
	AUTO_FREE char *text = user_file(root, "group");
	char *next = text, *fields[USER_FIELDS];
	uint32_t gid;

	while (user_line(&next, fields))
		if (strcmp(fields[0], name) == 0 && user_number(fields[2], &gid)) {
			*ret_gid = gid;
			return true;
		}
	if (!user_number(name, &gid))
		return false;
	*ret_gid = gid;
	return true;
}

static bool
user_is_member(const char *members, const char *name)
{
	size_t len = strlen(name);

	while (*members != '\0') {
		size_t part = strcspn(members, ",");

		if (part == len && memcmp(members, name, len) == 0)
			return true;
		members += part + (members[part] == ',');
	}
	return false;
}

static void
user_supplementary(const char *root, struct user *user)
{
	AUTO_FREE char *text = user_file(root, "group");
	char *next = text, *fields[USER_FIELDS];
	uint32_t gid;

	while (user->name[0] != '\0' && user_line(&next, fields))
		if (user_is_member(fields[3], user->name) && user_number(fields[2], &gid) &&
			user->group_count < USER_MAX_GROUPS)
			user->groups[user->group_count++] = gid;
}

int
user_find(const char *root, const char *spec, struct user *ret_user, struct err *err)
{
	struct user *user = ret_user;
	char name[256];
	const char *group = strchr(spec, ':');
	size_t len = group == NULL ? strlen(spec) : (size_t)(group - spec);

	*user = (struct user){ .home = "/", .shell = "/bin/sh" };
	if (len >= sizeof name)
		return err_set(err, ERR_INVALID, "user name is too long");
	memcpy(name, spec, len);
	name[len] = '\0';
	if (!user_passwd(root, len == 0 ? "0" : name, user))
		return err_set(err, ERR_NOT_FOUND, "user %s: not in /etc/passwd of the image", name);
	if (group == NULL || group[1] == '\0') {
		user_supplementary(root, user);
		return 0;
	}
	if (!user_group(root, group + 1, &user->gid))
		return err_set(err, ERR_NOT_FOUND, "group %s: not in /etc/group of the image", group + 1);
	return 0;
}

/* One that is not known is refused by whoever looks it up. */
int
user_check(const char *spec, struct err *err)
{
	struct user user;
	struct err unknown;

	if (geteuid() == 0 || user_find("", spec, &user, &unknown) < 0 || user.uid == geteuid())
		return 0;
	return err_set(err, ERR_INVALID,
		"user %.64s: the sandbox runs as user %u, and only root can act as another; "
		"it takes an image whose USER is root",
		spec, (unsigned)geteuid());
}

/* A missing file is one of size 0 that never changed. */
static struct user_source
user_source_read(const char *root, const char *name)
{
	char path[4096];
	struct stat st;

	snprintf(path, sizeof path, "%s/etc/%s", root, name);
	if (stat(path, &st) < 0)
		return (struct user_source){ 0 };
	return (struct user_source){
		.dev = st.st_dev, .ino = st.st_ino, .size = st.st_size, .changed = st.st_ctim
	};
}

static bool
user_source_equal(const struct user_source *a, const struct user_source *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
		a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* A file that changed just now may change again within the same tick of the file system's clock. */
static bool
user_source_is_settled(const struct user_source *source)
{
	struct timespec now;

	return clock_gettime(CLOCK_REALTIME, &now) == 0 && now.tv_sec > source->changed.tv_sec + 1;
}

int
user_cache_find(
	struct user_cache *cache, const char *root, const char *spec, struct user *ret_user, struct err *err)
{
	struct user_source passwd = user_source_read(root, "passwd"), group = user_source_read(root, "group");

	if (cache->valid && strcmp(cache->spec, spec) == 0 && user_source_equal(&cache->passwd, &passwd) &&
		user_source_equal(&cache->group, &group)) {
		*ret_user = cache->user;
		return 0;
	}
	if (user_find(root, spec, ret_user, err) < 0)
		return -1;
	cache->valid = text_copy(cache->spec, sizeof cache->spec, spec) && user_source_is_settled(&passwd) &&
		user_source_is_settled(&group);
	cache->passwd = passwd;
	cache->group = group;
	cache->user = *ret_user;
	return 0;
}
