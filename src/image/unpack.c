/* unpack.c - feeds one caged child with the bytes of a blob and judges both. */
/* SPDX-License-Identifier: MIT */
#include "image/unpack.h"

#include "base/fork.h"
#include "image/oci_blob.h"
#include "image/unpack_cage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sha2.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

enum { CHUNK = 256 << 10, PIPE_BYTES = 1 << 20 };

struct feeder {
	pid_t pid;
	int pipe_fd, report_fd;
	struct unpack_limit *limit;
};

/* In a process namespace of its own: it is still root, and could send signals to all that root runs. */
static pid_t
fork_alone(void)
{
	struct clone_args args = { .flags = CLONE_NEWPID, .exit_signal = SIGCHLD };

	return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

/* Whether the parent lives is not asked for: without it the pipe ends, and nobody takes the result. */
static _Noreturn void
run_child(int dir_fd, int pipe_fd, int report_fd, int64_t bytes_max)
{
	int kept[] = { dir_fd, pipe_fd, report_fd }, layer_fd;
	struct unpack_word word = { .kind = UNPACK_FAILED };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	fork_keep_only(kept, sizeof kept / sizeof *kept);
	if (cage_enter(dir_fd, &layer_fd, &word.why) != 0)
		(void)send(report_fd, &word, sizeof word, MSG_NOSIGNAL);
	else
		unpack_tar(pipe_fd, layer_fd, bytes_max, report_fd);
	_exit(0);
}

static int
start_child(int dir_fd, struct feeder *ret, struct err *err)
{
	AUTO_FD pipe_read = -1;
	AUTO_FD pipe_write = -1;
	AUTO_FD report_ours = -1;
	AUTO_FD report_theirs = -1;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_set_errno(err, errno, "pipe of an unpacker");
	pipe_read = ends[0];
	pipe_write = ends[1];
	(void)fcntl(pipe_write, F_SETPIPE_SZ, PIPE_BYTES); /* only faster */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_set_errno(err, errno, "socketpair of an unpacker");
	report_ours = ends[0];
	report_theirs = ends[1];
	ret->pid = fork_alone();
	if (ret->pid == 0)
		run_child(dir_fd, pipe_read, report_theirs, ret->limit->bytes_max);
	if (ret->pid < 0)
		return err_set_errno(err, errno, "fork of an unpacker");
	ret->pipe_fd = STEAL_FD(pipe_write);
	ret->report_fd = STEAL_FD(report_ours);
	return 0;
}

/*
 * To the end even when the child has stopped listening: whether the blob is what
 * its name says decides which of the two is to blame.
 */
static int
feed(int blob_fd, const struct oci_descriptor *blob, int pipe_fd, struct err *err)
{
	AUTO_FREE char *chunk = must_alloc(malloc(CHUNK));
	uint8_t digest[SHA256_DIGEST_LENGTH];
	char hex[SHA256_DIGEST_STRING_LENGTH];
	bool listens = true;
	SHA2_CTX sha;
	ssize_t n;

	SHA256Init(&sha);
	while ((n = read(blob_fd, chunk, CHUNK)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set_errno(err, errno, "read the file");
		SHA256Update(&sha, (const uint8_t *)chunk, (size_t)n);
		for (ssize_t at = 0, sent; listens && at < n; at += sent) {
			sent = write(pipe_fd, chunk + at, (size_t)(n - at));
			listens = sent >= 0 || errno == EINTR;
			if (sent < 0)
				sent = 0;
		}
	}
	SHA256Final(digest, &sha);
	if (blob == NULL)
		return 0;
	for (size_t i = 0; i < sizeof digest; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	return strcmp(hex, blob->digest) == 0 ? 0 : oci_blob_corrupt(blob, err);
}

/* Set from here, because a trusted attribute takes a right that the cage does not give. */
static int
mark(int dir_fd, const char *path, const char *attribute, uint64_t resolve, struct err *err)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV | resolve };
	AUTO_FD fd = (int)syscall(SYS_openat2, dir_fd, path[0] != '\0' ? path : ".", &how, sizeof how);

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0; /* a later member took its place */
	if (fd < 0 || fsetxattr(fd, attribute, "y", 1, 0) != 0)
		return err_set_errno(err, errno,
			"mark a directory of the layer (does the filesystem of state_dir keep extended "
			"attributes?)");
	return 0;
}

/* What a link leads to may be a member by its own name. */
static int
mark_implied(int dir_fd, const char *path, bool first, struct err *err)
{
	if (mark(dir_fd, path, UNPACK_IMPLIED_XATTR, RESOLVE_NO_SYMLINKS, err) != 0)
		return -1;
	return first ? mark(dir_fd, "", UNPACK_IMPLIED_XATTR, 0, err) : 0;
}

static int
hear_child(const struct feeder *child, int dir_fd, struct err *err)
{
	struct unpack_word *word = must_alloc(malloc(sizeof *word));
	bool any_implied = false;
	ssize_t n;
	int rc = 0;

	do {
		n = recv(child->report_fd, word, sizeof *word, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n != (ssize_t)sizeof *word) {
			rc = err_set(err, ERR_INVALID,
				"the process that unpacked the layer has died: the layer is "
				"damaged, or wants more memory than it may have");
		} else if (word->kind == UNPACK_OPAQUE) {
			word->path[sizeof word->path - 1] = '\0';
			rc = mark(dir_fd, word->path, "trusted.overlay.opaque", 0, err);
		} else if (word->kind == UNPACK_IMPLIED) {
			word->path[sizeof word->path - 1] = '\0';
			rc = mark_implied(dir_fd, word->path, !any_implied, err);
			any_implied = true;
		} else if (word->kind == UNPACK_FAILED) {
			word->why.msg[sizeof word->why.msg - 1] = '\0';
			rc = err_set(err, word->why.code < ERR_CODE_COUNT ? word->why.code : ERR_INVALID, "%s",
				word->why.msg);
		}
	} while (rc == 0 && (n < 0 || word->kind != UNPACK_DONE));
	if (rc == 0)
		child->limit->bytes = word->bytes;
	free(word);
	return rc;
}

int
unpack_layer(
	int blob_fd, const struct oci_descriptor *blob, int dir_fd, struct unpack_limit *limit, struct err *err)
{
	struct feeder child = { .pipe_fd = -1, .report_fd = -1, .limit = limit };
	int rc, status;

	if (start_child(dir_fd, &child, err) != 0)
		return -1;
	rc = feed(blob_fd, blob, child.pipe_fd, err);
	close(child.pipe_fd);
	if (rc == 0 && hear_child(&child, dir_fd, err) != 0)
		rc = blob != NULL ? err_prefix(err, "layer sha256:%.12s", blob->digest) : -1;
	close(child.report_fd);
	(void)kill(child.pid, SIGKILL);
	while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR)
		;
	return rc;
}
