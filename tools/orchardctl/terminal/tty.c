/* tty.c - raw mode, and three ways back: tty_restore(), exit(), a crash. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/terminal/tty.h"

#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* What a handler needs; its in is -1 while there is nothing to restore. */
static struct {
	volatile sig_atomic_t armed;
	int fd;
	struct termios saved;
} crash;

static void
crash_restore(void)
{
	if (crash.armed)
		tcsetattr(crash.fd, TCSANOW, &crash.saved);
	crash.armed = 0;
}

static void
crash_on_signal(int signal)
{
	crash_restore();
	/* SA_RESETHAND: now it does what it would have done. */
	raise(signal);
}

static void
crash_arm(const struct tty *tty)
{
	static const int fatal[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
	static bool installed;
	struct sigaction action = { .sa_handler = crash_on_signal, .sa_flags = (int)SA_RESETHAND };

	crash.fd = tty->in;
	crash.saved = tty->saved;
	crash.armed = 1;
	if (installed)
		return;
	installed = true;
	atexit(crash_restore);
	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		sigaction(fatal[i], &action, NULL);
}

static int
reopen(int fd, int flags, struct err *err)
{
	char path[32];
	int opened;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	opened = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (opened < 0)
		return err_set_errno(err, errno, "the terminal can't be opened");
	return opened;
}

int
tty_open(struct tty *tty, struct err *err)
{
	*tty = (struct tty){ .in = -1, .out = -1 };
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return err_set(err, ERR_INVALID, "%s is no terminal", isatty(STDIN_FILENO) ? "stdout" : "stdin");
	tty->in = reopen(STDIN_FILENO, O_RDONLY, err);
	if (tty->in < 0)
		return -1;
	tty->out = reopen(STDOUT_FILENO, O_WRONLY, err);
	if (tty->out < 0 || tcgetattr(tty->in, &tty->saved) != 0) {
		if (tty->out >= 0)
			err_set_errno(err, errno, "the terminal's settings can't be read");
		tty_close(tty);
		return -1;
	}
	return 0;
}

void
tty_close(struct tty *tty)
{
	tty_restore(tty);
	cleanup_fd(&tty->in);
	cleanup_fd(&tty->out);
	tty->in = tty->out = -1;
}

int
tty_raw(struct tty *tty, struct err *err)
{
	struct termios raw = tty->saved;

	if (tty->raw)
		return 0;
	cfmakeraw(&raw);
	crash_arm(tty);
	if (tcsetattr(tty->in, TCSANOW, &raw) != 0) {
		crash.armed = 0;
		return err_set_errno(err, errno, "the terminal's settings can't be changed");
	}
	tty->raw = true;
	return 0;
}

void
tty_restore(struct tty *tty)
{
	if (!tty->raw)
		return;
	tcsetattr(tty->in, TCSANOW, &tty->saved);
	crash.armed = 0;
	tty->raw = false;
}

void
tty_size(const struct tty *tty, unsigned *ret_rows, unsigned *ret_cols)
{
	struct winsize size = { 0 };

	if (ioctl(tty->out, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	*ret_rows = size.ws_row;
	*ret_cols = size.ws_col;
}

void
tty_reset(struct tty *tty)
{
	/* Without its other screen ?1049l goes where the cursor was saved, and [r always goes home: it is saved twice. */
	static const char reset[] =
		"\0337\033[?1049l\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?2004l\033[?1l\033>"
		"\033[?25h\0337\033[r\0338\033[0m\r\n";

	/* One that takes nothing now is not worth waiting for. */
	if (file_write_all(tty->out, reset, sizeof reset - 1) != 0)
		return;
}
