/*
 * robust.c - process-shared robust mutexes.
 *
 * Errors other than a dead owner mean that an invariant of this program is broken
 * (a section entered twice, a lock never initialised): there is no state to go on
 * from, so the process ends, and the master repairs what it left.
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/robust.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>

static void
require(int rc, const char *what)
{
	if (rc == 0)
		return;
	log_error("shared lock: %s: %s", what, strerror(rc));
	abort();
}

void
robust_init(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attr;

	memset(mutex, 0, sizeof *mutex);
	require(pthread_mutexattr_init(&attr), "attributes");
	require(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), "process-shared");
	require(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST), "robust");
	require(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK), "error-checking");
	require(pthread_mutex_init(mutex, &attr), "init");
	pthread_mutexattr_destroy(&attr);
}

bool
robust_lock(pthread_mutex_t *mutex)
{
	int rc = pthread_mutex_lock(mutex);

	if (rc == EOWNERDEAD)
		return true;
	require(rc, "lock");
	return false;
}

void
robust_consistent(pthread_mutex_t *mutex)
{
	require(pthread_mutex_consistent(mutex), "consistent");
}

void
robust_unlock(pthread_mutex_t *mutex)
{
	require(pthread_mutex_unlock(mutex), "unlock");
}
