/* lock_file.c - taking a lock that dead servers let go by themselves. */
/* SPDX-License-Identifier: MIT */
#include "master/lock_file.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum { LOCK_POLL_MS = 100 };

static long
lock_holder(const char *path)
{
	AUTO_FREE char *text = NULL;
	struct err ignored;
	size_t len;

	if (file_read_at(AT_FDCWD, path, 32, &text, &len, &ignored) < 0)
		return 0;
	return strtol(text, NULL, 10);
}

static int
lock_refused(const char *path, const char *what, struct err *err)
{
	long pid = lock_holder(path);

	if (pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH)
		return err_set(err, ERR_EXISTS,
			"processes of an earlier orchardd (its master was pid %ld) still use %s: end them (`fuser "
			"-v %s` "
			"lists them)",
			pid, what, path);
	return err_set(err, ERR_EXISTS, "another orchardd (pid %ld) uses %s: stop it, or name another directory",
		pid, what);
}

/* 1: the lock is ours; 0: taken by somebody; -1: *err. */
static int
lock_try(const char *path, int *ret_fd, struct err *err)
{
	/* Not to be held up by a fifo. */
	AUTO_FD fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
	struct stat ours;
	struct stat there;

	if (fd < 0 && errno != EISDIR && errno != ELOOP && errno != ENXIO)
		return err_set_errno(err, errno, "cannot open %s", path);
	if (fd < 0 || (fstat(fd, &ours) == 0 && !S_ISREG(ours.st_mode)))
		return err_set(err, ERR_INVALID, "%s is no plain file: remove it", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK || errno == EINTR ? 0
							      : err_set_errno(err, errno, "cannot lock %s", path);
	/* The last holder may have removed the file between our open and our lock. */
	if (fstat(fd, &ours) < 0 || stat(path, &there) < 0 || ours.st_ino != there.st_ino ||
		ours.st_dev != there.st_dev)
		return 0;
	*ret_fd = STEAL_FD(fd);
	return 1;
}

/* By a descriptor of its own, so that the inherited one cannot write. */
static int
lock_sign(const char *path, struct err *err)
{
	AUTO_FD fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
	char text[32];
	int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());

	if (fd < 0 || file_write_all(fd, text, (size_t)len) < 0)
		return err_set_errno(err, errno, "cannot write %s", path);
	return 0;
}

/* True when somebody asked us to leave meanwhile. */
static bool
lock_pause(void)
{
	static const struct timespec pause = { .tv_nsec = LOCK_POLL_MS * 1000000L };
	sigset_t leave;

	sigemptyset(&leave);
	sigaddset(&leave, SIGTERM);
	sigaddset(&leave, SIGINT);
	return sigtimedwait(&leave, NULL, &pause) > 0;
}

int
lock_file_take(const char *path, const char *what, int64_t wait_ms, int *ret_fd, struct err *err)
{
	int64_t give_up = clock_boot_ms() + wait_ms;
	AUTO_FD fd = -1;
	bool told = false;
	int rc;

	while ((rc = lock_try(path, &fd, err)) == 0) {
		if (clock_boot_ms() >= give_up)
			return lock_refused(path, what, err);
		if (!told)
			log_info("waiting for the orchardd that still uses %s", what);
		told = true;
		if (lock_pause())
			return err_set(err, ERR_UNAVAILABLE, "asked to stop while waiting for %s", what);
	}
	if (rc < 0 || lock_sign(path, err) < 0)
		return -1;
	*ret_fd = STEAL_FD(fd);
	return 0;
}
