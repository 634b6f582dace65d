/* file.c - small files: read whole, replaced whole. Trees are in file_tree.c. */
/* SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "base/err.h"
#include "base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { PIPE_WAIT_MS = 10 * 1000 };

/* A pipe whose writer has nothing to say yet. 0 or -1 with errno. */
static int
file_await(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	int rc;

	do
		rc = poll(&poll_fd, 1, PIPE_WAIT_MS);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		errno = ETIMEDOUT;
	return rc > 0 ? 0 : -1;
}

/* *ret_len is max + 1 when the file is longer than max. 0 or -1 with errno. */
static int
file_read_fd(int fd, size_t max, char **ret_data, size_t *ret_len)
{
	AUTO_FREE char *data = NULL;
	size_t len = 0, room = 0;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	/* One byte more than the file has, so that the end shows without growing. */
	room = st.st_size > 0 && (size_t)st.st_size < max ? (size_t)st.st_size + 1 : 4096;
	for (;;) {
		ssize_t n;

		if (room > max + 1)
			room = max + 1;
		if (data == NULL || len == room) {
			char *grown;

			room = data == NULL ? room : room * 2 > max + 1 ? max + 1 : room * 2;
			grown = realloc(data, room + 1);
			if (grown == NULL)
				return -1;
			data = grown;
		}
		n = read(fd, data + len, room - len);
		if (n < 0 && (errno == EINTR || (errno == EAGAIN && file_await(fd) == 0)))
			continue;
		if (n < 0)
			return -1;
		len += (size_t)n;
		if (n == 0 || len > max)
			break;
	}
	if (len == 0 && S_ISFIFO(st.st_mode)) {
		errno = ENODATA; /* nobody writes to it */
		return -1;
	}
	data[len] = '\0';
	*ret_data = STEAL_PTR(data);
	*ret_len = len;
	return 0;
}

int
file_read_at(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_len, struct err *err)
{
	/* A fifo must not hold up whoever finds one in the place of a file. */
	AUTO_FD fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	AUTO_FREE char *data = NULL;
	size_t len = 0;

	if (fd < 0)
		return err_set_errno(err, errno, "open %s", path);
	if (file_read_fd(fd, max, &data, &len) < 0)
		return err_set_errno(err, errno, "read %s", path);
	if (len > max)
		return err_set(err, ERR_TOO_LARGE, "%s is larger than %zu bytes", path, max);
	*ret_data = STEAL_PTR(data);
	*ret_len = len;
	return 0;
}

int
file_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int
file_seal(int fd)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };

	for (int left = 100; fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0;
		left--) {
		if (errno != EBUSY || left == 0)
			return -1;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* Opens the directory that holds path; *ret_name is the part of path behind it. */
static int
file_open_parent(int dirfd, const char *path, const char **ret_name, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX] = ".";
	int fd;

	if (slash != NULL && (size_t)(slash - path) >= sizeof dir)
		return err_set_errno(err, ENAMETOOLONG, "open directory of %s", path);
	if (slash != NULL) {
		size_t len = slash == path ? 1 : (size_t)(slash - path);

		memcpy(dir, path, len);
		dir[len] = '\0';
	}
	fd = openat(dirfd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, errno, "open directory %s", dir);
	*ret_name = slash == NULL ? path : slash + 1;
	return fd;
}

static int
file_fill_new(int parent, const char *name, mode_t mode, const void *data, size_t len, bool sync)
{
	AUTO_FD fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || file_write_all(fd, data, len) < 0 || fchmod(fd, mode) < 0)
		return -1;
	if (sync && fsync(fd) < 0)
		return -1;
	/* close(2) is where some filesystems tell that a write failed. */
	return close(STEAL_FD(fd));
}

int
file_write_atomic_at(
	int dirfd, const char *path, mode_t mode, const void *data, size_t len, bool sync, struct err *err)
{
	char temp[sizeof ".tmp-" + ID_UUID_SIZE], uuid[ID_UUID_SIZE];
	const char *name;
	AUTO_FD parent = file_open_parent(dirfd, path, &name, err);
	int saved_errno;

	if (parent < 0)
		return -1;
	id_uuid4(uuid);
	snprintf(temp, sizeof temp, ".tmp-%s", uuid);
	if (file_fill_new(parent, temp, mode, data, len, sync) < 0 || renameat(parent, temp, parent, name) < 0) {
		saved_errno = errno;
		unlinkat(parent, temp, 0);
		return err_set_errno(err, saved_errno, "write %s", path);
	}
	if (sync && fsync(parent) < 0)
		return err_set_errno(err, errno, "sync directory of %s", path);
	return 0;
}

int
file_put_at(int dirfd, const char *path, const char *text, struct err *err)
{
	AUTO_FD fd = openat(dirfd, path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
	size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return err_set_errno(err, errno, "open %s", path);
	do
		n = write(fd, text, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_set_errno(err, errno, "write '%s' to %s", text, path);
	if ((size_t)n < len)
		return err_set(err, ERR_INTERNAL, "write '%s' to %s: only %zd bytes were taken", text, path, n);
	return 0;
}

int
file_mkdirs(const char *path, mode_t mode, struct err *err)
{
	char part[PATH_MAX];
	size_t len = strlen(path);
	struct stat st;

	while (len > 1 && path[len - 1] == '/')
		len--;
	if (len == 0 || len >= sizeof part)
		return err_set_errno(err, len == 0 ? ENOENT : ENAMETOOLONG, "make directory %s", path);
	memcpy(part, path, len);
	part[len] = '\0';
	for (char *p = strchr(part + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST && errno != EROFS)
			return err_set_errno(err, errno, "make directory %s", part);
		*p = '/';
	}
	if (mkdir(part, mode) == 0)
		/* The umask must not decide who may enter a service directory. */
		return chmod(part, mode) == 0 ? 0 : err_set_errno(err, errno, "set mode of %s", part);
	if (errno != EEXIST)
		return err_set_errno(err, errno, "make directory %s", part);
	if (stat(part, &st) < 0)
		return err_set_errno(err, errno, "look at %s", part);
	if (!S_ISDIR(st.st_mode))
		return err_set_errno(err, ENOTDIR, "make directory %s", part);
	return 0;
}
