/* refusal.c - one text for each stage of a start, and for sizes the limit that was passed. */
/* SPDX-License-Identifier: MIT */
#include "agent/refusal.h"

#include "base/err.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

enum {
	REFUSAL_MAX_STRING = (128 << 10) - 1, /* the kernel's MAX_ARG_STRLEN without the NUL */
	REFUSAL_MAX_ALL = 6 << 20,
	REFUSAL_MIN_ALL = 128 << 10
};

static void
refusal_of_cwd(const struct spawn_plan *plan, int errnum, struct err *err)
{
	const char *cwd = plan->cwd != NULL ? plan->cwd : plan->base_dir;

	if (errnum == ENOENT)
		err_set(err, ERR_INVALID, "cwd does not exist: %s", cwd);
	else if (errnum == ENOTDIR)
		err_set(err, ERR_INVALID, "cwd is not a directory: %s", cwd);
	else
		err_set(err, ERR_INVALID, "cwd cannot be entered: %s: %s", cwd, strerror(errnum));
}

/* What all arguments and variables together may have: a quarter of the stack, within bounds. */
static size_t
refusal_max_all(void)
{
	struct rlimit stack;

	if (getrlimit(RLIMIT_STACK, &stack) < 0 || stack.rlim_cur / 4 > REFUSAL_MAX_ALL)
		return REFUSAL_MAX_ALL;
	return stack.rlim_cur / 4 < REFUSAL_MIN_ALL ? REFUSAL_MIN_ALL : (size_t)(stack.rlim_cur / 4);
}

/* The place of the first string that is too long, or of the NULL; their sizes are added to *all. */
static size_t
refusal_first_too_long(char *const *strings, size_t *all)
{
	size_t at = 0;

	for (; strings[at] != NULL && strlen(strings[at]) <= REFUSAL_MAX_STRING; at++)
		*all += strlen(strings[at]) + 1 + sizeof(char *);
	return at;
}

static void
refusal_of_size(const struct spawn_plan *plan, struct err *err)
{
	size_t all = 0;
	const char *text;
	size_t at = refusal_first_too_long(plan->argv, &all);

	if ((text = plan->argv[at]) != NULL) {
		err_set(err, ERR_TOO_LARGE,
			"item %zu of the command has %zu bytes: the kernel passes at most %d in one argument", at,
			strlen(text), REFUSAL_MAX_STRING);
		return;
	}
	at = refusal_first_too_long(plan->envp, &all);
	if ((text = plan->envp[at]) != NULL)
		err_set(err, ERR_TOO_LARGE,
			"environment variable %.*s has %zu bytes with its name: the kernel passes at most %d",
			(int)(strcspn(text, "=") > 100 ? 100 : strcspn(text, "=")), text, strlen(text),
			REFUSAL_MAX_STRING);
	else
		err_set(err, ERR_TOO_LARGE,
			"arguments and environment have %zu bytes together: the kernel passes at most %zu", all,
			refusal_max_all());
}

static int
refusal_of_exec(const struct spawn_plan *plan, int errnum, struct err *err)
{
	const char *name = plan->argv[0];

	if (errnum == ENOENT || errnum == ENOTDIR) {
		err_set(err, ERR_NOT_FOUND, "%.200s: not found", name);
		return REFUSAL_NOT_FOUND;
	}
	if (errnum == E2BIG)
		refusal_of_size(plan, err);
	else
		err_set(err, ERR_INVALID, "%.200s: %s", name, strerror(errnum));
	return REFUSAL_NOT_EXECUTABLE;
}

int
refusal_of_spawn(const struct spawn_plan *plan, enum spawn_stage stage, int errnum, struct err *err)
{
	const char *why = strerror(errnum);

	switch (stage) {
	case SPAWN_STARTED:
	case SPAWN_FORK:
	case SPAWN_SETUP:
		err_set(err, ERR_INTERNAL, "cannot start a process: %s", why);
		break;
	case SPAWN_CGROUP:
		err_set(err, ERR_INTERNAL, "cannot join the command's cgroup: %s", why);
		break;
	case SPAWN_USER:
		err_set(err, ERR_DENIED, "cannot become the user: %s", why);
		break;
	case SPAWN_CWD:
		refusal_of_cwd(plan, errnum, err);
		break;
	case SPAWN_EXEC:
		return refusal_of_exec(plan, errnum, err);
	}
	return REFUSAL_NOT_EXECUTABLE;
}
