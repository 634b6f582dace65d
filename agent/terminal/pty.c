/* pty.c - no openpty(3): the slave must be the master's own whatever lies at /dev/pts now. */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/pty.h"

#include "agent/user.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tty.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Of kernel 4.13; older headers lack it. */
#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* User code may have put something else in its place; opening that must not block. */
static int
pty_open_master(unsigned *ret_number)
{
	static const char *const paths[] = { "/dev/ptmx", "/dev/pts/ptmx" };
	int errnum = ENODEV;

	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		int unlock = 0;
		int fd = open(paths[i], O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

		if (fd >= 0 && ioctl(fd, TIOCGPTN, ret_number) == 0 && ioctl(fd, TIOCSPTLCK, &unlock) == 0)
			return fd;
		if (fd < 0 && errno != ENOENT)
			errnum = errno;
		if (fd >= 0)
			close(fd);
	}
	errno = errnum;
	return -1;
}

static int
pty_open_slave(int master, unsigned number)
{
	char path[32];
	int fd = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	snprintf(path, sizeof path, "/dev/pts/%u", number);
	return open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

/* Erasing takes whole characters, as every client's text is UTF-8. */
static int
pty_prepare(int slave, const struct user *user)
{
	struct termios termios;

	if (tcgetattr(slave, &termios) < 0)
		return -1;
	termios.c_iflag |= IUTF8;
	if (tcsetattr(slave, TCSANOW, &termios) < 0)
		return -1;
	return geteuid() == 0 ? fchown(slave, user->uid, (gid_t)-1) : 0;
}

int
pty_open(const struct pty_size *size, const struct user *user, int *ret_master, int *ret_slave, struct err *err)
{
	AUTO_FD master = -1;
	AUTO_FD slave = -1;
	unsigned number;

	master = pty_open_master(&number);
	if (master < 0 && errno == ENOSPC)
		return err_set(err, ERR_BUSY, "no terminal is left: close some");
	if (master < 0)
		return err_set_errno(err, errno, "cannot open a terminal (/dev/ptmx)");
	slave = pty_open_slave(master, number);
	if (slave < 0)
		return err_set_errno(err, errno, "cannot open the terminal /dev/pts/%u", number);
	if (pty_resize(master, size) < 0)
		return err_set_errno(err, errno, "cannot set the size of the terminal");
	if (pty_prepare(slave, user) < 0 && errno == EINVAL)
		return err_set(err, ERR_INVALID, "user %u:%u: the sandbox has no such ids", (unsigned)user->uid,
			(unsigned)user->gid);
	*ret_master = STEAL_FD(master);
	*ret_slave = STEAL_FD(slave);
	return 0;
}

int
pty_resize(int master, const struct pty_size *size)
{
	struct winsize winsize = { .ws_row = size->rows, .ws_col = size->cols };

	return ioctl(master, TIOCSWINSZ, &winsize);
}

int
pty_signal(int master, int sig)
{
	pid_t group = 0;

	if (ioctl(master, TIOCGPGRP, &group) < 0)
		return -1;
	if (group > 1)
		return kill(-group, sig);
	errno = ESRCH;
	return -1;
}
