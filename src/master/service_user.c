/* service_user.c - the service user's numbers, with all its groups. */
/* SPDX-License-Identifier: MIT */
#include "master/service_user.h"

#include "base/err.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

int
service_user_find(const char *name, struct service_user *ret_user, struct err *err)
{
	struct service_user user = { .group_count = SERVICE_USER_GROUPS };
	const struct passwd *entry;

	errno = 0;
	entry = getpwnam(name);
	if (entry == NULL && errno != 0 && errno != ENOENT && errno != ESRCH)
		return err_set_errno(err, errno, "the service user %s cannot be looked up", name);
	if (entry == NULL)
		return err_set(err, ERR_INVALID,
			"the service user %s does not exist: make it with `useradd --system %s`, or name another "
			"one "
			"in the setting service_user",
			name, name);
	if (entry->pw_uid == 0)
		return err_set(err, ERR_INVALID,
			"the setting service_user names %s, which is root: the workers must run as somebody "
			"without rights",
			name);
	user.uid = entry->pw_uid;
	user.gid = entry->pw_gid;
	if (getgrouplist(name, user.gid, user.groups, &user.group_count) < 0)
		return err_set(err, ERR_INVALID, "the service user %s is in more than %d groups", name,
			SERVICE_USER_GROUPS);
	*ret_user = user;
	return 0;
}

int
service_user_self(struct service_user *ret_user, struct err *err)
{
	struct service_user user = { .uid = geteuid(), .gid = getegid() };

	user.group_count = getgroups(SERVICE_USER_GROUPS, user.groups);
	if (user.group_count < 0)
		return err_set_errno(err, errno, "the groups of this process");
	*ret_user = user;
	return 0;
}
