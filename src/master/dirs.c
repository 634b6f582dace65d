/*
 * dirs.c - makes the directories before anybody needs them.
 *
 * The directories below ours are opened without following links and get their owner
 * and mode at every start. The two top ones belong to the operator: they are refused
 * where somebody else could swap what is in them, and never closed further.
 */
/* SPDX-License-Identifier: MIT */
#include "master/dirs.h"

#include "base/err.h"
#include "base/file.h"
#include "conf/config.h"
#include "master/service_user.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int
top_check(const char *setting, const char *path, const struct stat *st, struct err *err)
{
	if (!S_ISDIR(st->st_mode))
		return err_set(err, ERR_INVALID, "%s (the setting %s) is no directory", path, setting);
	if ((st->st_uid != 0 && st->st_uid != geteuid()) || (st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return err_set(err, ERR_INVALID,
			"%s (the setting %s) can be changed by others: name a directory of its own, or run "
			"`chown root %s && chmod go-w %s`",
			path, setting, path, path);
	return 0;
}

static int
top_make(const char *setting, const char *path, mode_t mode, gid_t gid, struct err *err)
{
	bool made = access(path, F_OK) < 0;
	AUTO_FD fd = -1;
	struct stat st;

	if (file_mkdirs(path, 0755, err) < 0)
		return err_prefix(err, "the setting %s", setting);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set_errno(err, errno, "cannot open %s (the setting %s)", path, setting);
	if (top_check(setting, path, &st, err) < 0)
		return -1;
	if (made && (fchown(fd, geteuid(), gid) < 0 || fchmod(fd, mode) < 0))
		return err_set_errno(err, errno, "cannot set the owner and mode of %s", path);
	if (!made && (st.st_mode & 0711) != 0711 && fchmod(fd, (st.st_mode & 07777) | 0711) < 0)
		return err_set_errno(err, errno, "cannot set the mode of %s", path);
	return 0;
}

/* Results that an earlier service user wrote, or that were restored; a file with a second name may be somebody else's. */
static int
adopt_files(int dirfd, const struct service_user *user, struct err *err)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	struct stat st;

	if (dir == NULL) {
		cleanup_fd(&fd);
		return err_set_errno(err, errno, "cannot read the directory of job results");
	}
	while ((entry = readdir(dir)) != NULL) {
		if (fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
			st.st_nlink != 1 || st.st_uid == user->uid)
			continue;
		if (fchownat(dirfd, entry->d_name, user->uid, user->gid, AT_SYMLINK_NOFOLLOW) < 0)
			return err_set_errno(err, errno, "cannot hand %s to the service user", entry->d_name);
	}
	return 0;
}

static int
sub_make(int topfd, const char *name, mode_t mode, const struct service_user *owner, struct err *err)
{
	uid_t uid = owner != NULL ? owner->uid : geteuid();
	gid_t gid = owner != NULL ? owner->gid : getegid();
	AUTO_FD fd = -1;

	if (mkdirat(topfd, name, 0700) < 0 && errno != EEXIST)
		return err_set_errno(err, errno, "cannot make the directory %s", name);
	fd = openat(topfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, errno, "cannot open the directory %s", name);
	if (fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0)
		return err_set_errno(err, errno, "cannot set the owner and mode of the directory %s", name);
	return owner != NULL ? adopt_files(fd, owner, err) : 0;
}

int
dirs_make_top(const struct config *config, const struct service_user *user, struct err *err)
{
	if (top_make("state_dir", config->state_dir, 0751, user->gid, err) < 0)
		return -1;
	return top_make("run_dir", config->run_dir, 0755, getegid(), err);
}

/* Whether the service user gets there decides the whole path, so ask the kernel as that user. */
static int
require_reachable(const char *state_dir, const struct service_user *user, struct err *err)
{
	int status = 0;
	pid_t pid;

	if (geteuid() != 0) /* then all that is there belongs to us */
		return 0;
	pid = fork();
	if (pid < 0)
		return err_set_errno(err, errno, "cannot fork");
	if (pid == 0) {
		if (setgroups((size_t)user->group_count, user->groups) < 0 ||
			setresgid(user->gid, user->gid, user->gid) < 0 ||
			setresuid(user->uid, user->uid, user->uid) < 0)
			_exit(errno);
		_exit(chdir(state_dir) < 0 || access("jobs", R_OK | W_OK | X_OK) < 0 ? errno : 0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set_errno(err, WIFEXITED(status) ? WEXITSTATUS(status) : EIO,
		"the service user cannot reach %s/jobs: every directory above it must let others pass (chmod o+x)",
		state_dir);
}

int
dirs_make_below(const struct config *config, const struct service_user *user, struct err *err)
{
	AUTO_FD state = open(config->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FD run = open(config->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (state < 0 || run < 0)
		return err_set_errno(err, errno, "cannot open %s", state < 0 ? config->state_dir : config->run_dir);
	if (sub_make(state, "jobs", 0700, user, err) < 0 || sub_make(state, "keys", 0700, user, err) < 0 ||
		sub_make(state, "images", 0700, NULL, err) < 0 ||
		sub_make(state, "sandboxes", 0700, NULL, err) < 0 || sub_make(state, "trash", 0700, NULL, err) < 0)
		return err_prefix(err, "%s", config->state_dir);
	if (sub_make(run, "sandboxes", 0711, NULL, err) < 0)
		return err_prefix(err, "%s", config->run_dir);
	return require_reachable(config->state_dir, user, err);
}

static int
top_check_path(const char *setting, const char *path, struct err *err)
{
	struct stat st;

	if (path[0] != '/')
		return err_set(
			err, ERR_INVALID, "the setting %s must be an absolute path, not \"%s\"", setting, path);
	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_set_errno(err, errno, "%s (the setting %s)", path, setting);
	return top_check(setting, path, &st, err);
}

/* What the server keeps below either: there all that it does not know is removed, or the service user cannot pass. */
static const char *const own_names[] = { "jobs", "keys", "images", "sandboxes", "trash", "runtime", "pieces",
	"spawner" };

/* Without what changes nothing: slashes in a row and at the end, and "/./". */
static void
plain_path(const char *path, char buf[PATH_MAX])
{
	size_t len = 0;

	while (*path != '\0') {
		size_t part = strcspn(path, "/");

		if (part > 0 && !(part == 1 && path[0] == '.') && len + 1 + part < PATH_MAX) {
			buf[len++] = '/';
			memcpy(buf + len, path, part);
			len += part;
		}
		path += part + strspn(path + part, "/");
	}
	buf[len] = '\0';
}

static bool
is_in_the_way(const char *top, const char *path)
{
	size_t len = strlen(top), part;

	if (strncmp(path, top, len) != 0)
		return false;
	if (path[len] != '/')
		return path[len] == '\0';
	part = strcspn(path + len + 1, "/");
	for (size_t i = 0; i < sizeof own_names / sizeof own_names[0]; i++)
		if (strlen(own_names[i]) == part && strncmp(own_names[i], path + len + 1, part) == 0)
			return true;
	return false;
}

static bool
is_same_directory(const char *one, const char *other)
{
	struct stat a, b;

	return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static int
check_apart(const struct config *config, struct err *err)
{
	char state[PATH_MAX], run[PATH_MAX];

	plain_path(config->state_dir, state);
	plain_path(config->run_dir, run);
	if (!is_in_the_way(state, run) && !is_in_the_way(run, state) &&
		!is_same_directory(config->state_dir, config->run_dir))
		return 0;
	return err_set(err, ERR_INVALID,
		"state_dir (%s) and run_dir (%s) are in each other's way: name two directories that lie apart",
		config->state_dir, config->run_dir);
}

int
dirs_check(const struct config *config, struct err *err)
{
	if (top_check_path("state_dir", config->state_dir, err) < 0)
		return -1;
	if (top_check_path("run_dir", config->run_dir, err) < 0)
		return -1;
	return check_apart(config, err);
}
