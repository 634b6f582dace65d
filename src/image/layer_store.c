/* layer_store.c - locks, makes and measures layers. */
/* SPDX-License-Identifier: MIT */
#include "image/layer_store.h"

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "image/layer_frame.h"
#include "image/oci_blob.h"
#include "image/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum { SIZE_TEXT = 32, LOCK_PAUSE_NS = 20000000, DIRECTORY_BYTES = 4096 };

static void
layer_path(const char *directory, const char *digest, const char *end, char path[OCI_NAME_SIZE])
{
	snprintf(path, OCI_NAME_SIZE, "%s/%.64s%s", directory, digest, end);
}

int
layer_lock_open(int images_fd, const char *digest, int *ret_fd, struct err *err)
{
	char path[OCI_NAME_SIZE];

	layer_path("tmp", digest, ".lock", path);
	*ret_fd = openat(images_fd, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return *ret_fd >= 0 ? 0 : err_set_errno(err, errno, "lock of %.12s", digest);
}

bool
layer_is_there(int images_fd, const char *digest)
{
	char path[OCI_NAME_SIZE];
	struct stat st;

	layer_path("layers", digest, "", path);
	return fstatat(images_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int
lock(int fd, int how)
{
	int rc;

	do
		rc = flock(fd, how);
	while (rc != 0 && errno == EINTR);
	return rc;
}

/*
 * Never waits for an exclusive lock: two that hold shared locks the other waits for would wait for ever. Whoever holds
 * one exclusively is working and waits for nobody, so waiting for a shared one ends.
 */
int
layer_lock_take(int images_fd, const struct oci_descriptor *layer, int fd, bool *ret_there, struct err *err)
{
	static const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };

	for (;;) {
		if (lock(fd, LOCK_SH) != 0)
			break;
		*ret_there = layer_is_there(images_fd, layer->digest);
		if (*ret_there)
			return 0;
		if (lock(fd, LOCK_EX | LOCK_NB) == 0) {
			*ret_there = layer_is_there(images_fd, layer->digest);
			if (!*ret_there)
				return 0;
		} else if (errno != EWOULDBLOCK || lock(fd, LOCK_UN) != 0) {
			break;
		} else {
			nanosleep(&pause, NULL);
		}
	}
	return err_set_errno(err, errno, "lock of layer %.12s", layer->digest);
}

static int
open_new(int images_fd, const char *path, int *ret_fd, struct err *err)
{
	if (file_remove_tree_at(images_fd, path, err) != 0)
		return -1;
	if (mkdirat(images_fd, path, 0755) != 0)
		return err_set_errno(err, errno, "make images/%s", path);
	*ret_fd = openat(images_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_fd < 0 || fchmod(*ret_fd, 0755) != 0)
		return err_set_errno(err, errno, "open images/%s", path);
	return 0;
}

/* The size first: a layer without one would count for nothing. */
static int
publish(int images_fd, const struct oci_descriptor *layer, const char *from, int dir, int64_t bytes,
	struct err *err)
{
	AUTO_FD layers = openat(images_fd, "layers", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char path[OCI_NAME_SIZE], text[SIZE_TEXT];
	int len = snprintf(text, sizeof text, "%" PRId64 "\n", bytes);

	if (syncfs(dir) != 0)
		return err_set_errno(err, errno, "write images/%s to disk", from);
	layer_path("sizes", layer->digest, "", path);
	if (file_write_atomic_at(images_fd, path, 0600, text, (size_t)len, false, err) != 0)
		return -1;
	if (layers < 0 || renameat(images_fd, from, layers, layer->digest) != 0 || fsync(layers) != 0)
		return err_set_errno(err, errno, "put layer %.12s in its place", layer->digest);
	return 0;
}

static void
remove_half(int images_fd, const char *path)
{
	struct err err;

	if (file_remove_tree_at(images_fd, path, &err) != 0)
		log_warn("half a layer stays: %s", err.msg);
}

int
layer_store_make(
	int images_fd, int layout_fd, const struct oci_descriptor *layer, int64_t *bytes_left, struct err *err)
{
	struct unpack_limit limit = { .bytes_max = *bytes_left };
	char path[OCI_NAME_SIZE];
	AUTO_FD blob = -1;
	AUTO_FD dir = -1;
	int rc;

	layer_path("tmp", layer->digest, "", path);
	if (oci_blob_open(layout_fd, layer, &blob, err) != 0 || open_new(images_fd, path, &dir, err) != 0)
		return -1;
	rc = unpack_layer(blob, layer, dir, &limit, err);
	if (rc == 0)
		rc = publish(images_fd, layer, path, dir, limit.bytes, err);
	if (rc != 0)
		remove_half(images_fd, path);
	*bytes_left -= limit.bytes;
	return rc;
}

int
layer_store_make_frame(int images_fd, const struct layer_frame *frame, struct err *err)
{
	char path[OCI_NAME_SIZE];
	AUTO_FD dir = -1;

	layer_path("tmp", frame->layer.digest, "", path);
	if (open_new(images_fd, path, &dir, err) != 0)
		return -1;
	if (layer_frame_write(frame, dir, err) == 0 &&
		publish(images_fd, &frame->layer, path, dir, (int64_t)frame->count * DIRECTORY_BYTES, err) == 0)
		return 0;
	remove_half(images_fd, path);
	return -1;
}

int64_t
layer_store_bytes(int images_fd, const char *digest)
{
	AUTO_FREE char *text = NULL;
	char path[OCI_NAME_SIZE];
	struct err err;
	size_t len;

	layer_path("sizes", digest, "", path);
	if (file_read_at(images_fd, path, SIZE_TEXT, &text, &len, &err) != 0)
		return 0;
	return strtoll(text, NULL, 10);
}
