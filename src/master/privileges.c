/* privileges.c - from root to a service user that can never be more than that. */
/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "master/privileges.h"

#include "base/err.h"
#include "master/service_user.h"
#include "master/syscall_filter.h"

#include <errno.h>
#include <grp.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

static int
drop_bounding_set(struct err *err)
{
	for (cap_value_t cap = 0; cap_get_bound(cap) >= 0; cap++)
		if (cap_get_bound(cap) > 0 && cap_drop_bound(cap) < 0)
			return err_set_errno(err, errno, "capability %d stays in the bounding set", (int)cap);
	if (CAP_AMBIENT_SUPPORTED() && cap_reset_ambient() < 0)
		return err_set_errno(err, errno, "the ambient capabilities stay");
	return 0;
}

static int
drop_ids(const struct service_user *user, struct err *err)
{
	if (setgroups((size_t)user->group_count, user->groups) < 0 ||
		setresgid(user->gid, user->gid, user->gid) < 0 || setresuid(user->uid, user->uid, user->uid) < 0)
		return err_set_errno(
			err, errno, "cannot become user %u, group %u", (unsigned)user->uid, (unsigned)user->gid);
	return 0;
}

static int
drop_capabilities(struct err *err)
{
	cap_t none = cap_init();
	int rc = none != NULL ? cap_set_proc(none) : -1;
	int errnum = errno;

	cap_free(none);
	return rc < 0 ? err_set_errno(err, errnum, "cannot drop the capabilities") : 0;
}

/*
 * Keys and tokens are in this process's memory: not even its own user may look, and
 * there is no core file. Leak checkers trace their own process, so not with them.
 */
static int
close_memory(struct err *err)
{
#ifdef ORCHARD_SANITIZED
	int dumpable = 1;
#else
	int dumpable = 0;
#endif
	if (prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0) < 0)
		return err_set_errno(err, errno, "PR_SET_DUMPABLE");
	return 0;
}

int
privileges_drop(const struct service_user *user, unsigned keep, struct err *err)
{
	if (geteuid() == 0 && (drop_bounding_set(err) < 0 || drop_ids(user, err) < 0))
		return -1;
	if (drop_capabilities(err) < 0)
		return -1;
	if (setresuid(0, 0, 0) == 0)
		return err_set(err, ERR_INTERNAL, "the service user could become root again");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set_errno(err, errno, "PR_SET_NO_NEW_PRIVS");
	if (close_memory(err) < 0)
		return -1;
	return syscall_filter_install((keep & PRIVILEGES_RUN_PROGRAMS) != 0, err);
}
