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
