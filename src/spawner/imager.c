/*
 * imager.c - the child that looks after one OCI image.
 *
 * A layer is unpacked below images/tmp and renamed to images/layers/<digest> when
 * it is whole and on disk, so a name in there is a layer. A lock per digest makes
 * imagers whose images share a layer wait for one another instead of working twice.
 *
 * Of root's rights it keeps SYS_ADMIN for the cage's mounts and trusted attributes,
 * SETPCAP to take rights from the unpacker, and what is needed to read layouts and
 * to write and remove any layer. It has no network.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/imager.h"

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "spawner/oci_layout.h"
#include "spawner/oci_manifest.h"
#include "spawner/unpack.h"
#include "spawner/unpack_cage.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

static const uint64_t kept_capabilities = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE |
	1ULL << CAP_DAC_READ_SEARCH | 1ULL << CAP_FOWNER | 1ULL << CAP_FSETID | 1ULL << CAP_SETFCAP |
	1ULL << CAP_SETPCAP | 1ULL << CAP_SYS_ADMIN;

struct imager {
	int images_fd, layout_fd, fd;
	struct oci_image image;
	struct imager_word word;
};

static void
say(struct imager *im, enum imager_kind kind)
{
	im->word.kind = kind;
	while (send(im->fd, &im->word, sizeof im->word, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

static void
layer_path(const char *directory, const struct oci_descriptor *layer, const char *end, char path[OCI_NAME_SIZE])
{
	snprintf(path, OCI_NAME_SIZE, "%s/%s%s", directory, layer->digest, end);
}

/* ret_fd: the lock, held until it is closed. */
static int
lock_layer(const struct imager *im, const struct oci_descriptor *layer, int *ret_fd, struct err *err)
{
	char path[OCI_NAME_SIZE];
	AUTO_FD fd = -1;

	layer_path("tmp", layer, ".lock", path);
	fd = openat(im->images_fd, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set_errno(err, errno, "lock of layer %.12s", layer->digest);
	while (flock(fd, LOCK_EX) != 0) {
		if (errno != EINTR)
			return err_set_errno(err, errno, "lock of layer %.12s", layer->digest);
	}
	*ret_fd = STEAL_FD(fd);
	return 0;
}

static bool
is_there(const struct imager *im, const struct oci_descriptor *layer)
{
	char path[OCI_NAME_SIZE];
	struct stat st;

	layer_path("layers", layer, "", path);
	return fstatat(im->images_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int
unpack_into(const struct imager *im, const struct oci_descriptor *layer, const char *path, struct err *err)
{
	AUTO_FD blob = -1;
	AUTO_FD dir = -1;

	if (oci_blob_open(im->layout_fd, layer, &blob, err) != 0)
		return -1;
	if (mkdirat(im->images_fd, path, 0755) != 0)
		return err_set_errno(err, errno, "make images/%s", path);
	dir = openat(im->images_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fchmod(dir, 0755) != 0)
		return err_set_errno(err, errno, "open images/%s", path);
	if (unpack_layer(blob, layer, dir, err) != 0)
		return -1;
	return syncfs(dir) == 0 ? 0 : err_set_errno(err, errno, "write images/%s to disk", path);
}

static int
publish(const struct imager *im, const struct oci_descriptor *layer, const char *from, struct err *err)
{
	AUTO_FD layers = openat(im->images_fd, "layers", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (layers < 0 || renameat(im->images_fd, from, layers, layer->digest) != 0 || fsync(layers) != 0)
		return err_set_errno(err, errno, "put layer %.12s in its place", layer->digest);
	return 0;
}

static int
fetch_layer(struct imager *im, size_t number, struct err *err)
{
	const struct oci_descriptor *layer = &im->image.layers[number];
	char path[OCI_NAME_SIZE];
	AUTO_FD lock = -1;
	struct err ignored;
	int rc;

	if (is_there(im, layer))
		return 0;
	err_set(&im->word.why, ERR_NONE, "unpacking layer %zu of %zu", number + 1, im->image.layer_count);
	say(im, IMAGER_PROGRESS);
	if (lock_layer(im, layer, &lock, err) != 0)
		return -1;
	if (is_there(im, layer))
		return 0;
	layer_path("tmp", layer, "", path);
	if (file_remove_tree_at(im->images_fd, path, err) != 0)
		return -1;
	rc = unpack_into(im, layer, path, err);
	if (rc == 0)
		rc = publish(im, layer, path, err);
	if (rc != 0 && file_remove_tree_at(im->images_fd, path, &ignored) != 0)
		log_warn("half a layer stays: %s", ignored.msg);
	return rc;
}

static int
write_summary(const struct imager *im, struct err *err)
{
	AUTO_JSON struct json_object *summary = oci_image_summary(&im->image, err);
	char path[OCI_NAME_SIZE];
	const char *text;
	size_t len;

	if (summary == NULL)
		return -1;
	snprintf(path, sizeof path, "manifests/%s.json", im->image.digest);
	text = json_text(summary, &len);
	return file_write_atomic_at(im->images_fd, path, 0600, text, len, true, err);
}

static int
fetch_image(struct imager *im, const char *tag, struct err *err)
{
	if (oci_image_find(im->layout_fd, tag, &im->image, err) != 0)
		return -1;
	for (size_t i = 0; i < im->image.layer_count; i++) {
		if (fetch_layer(im, i, err) != 0)
			return -1;
	}
	return write_summary(im, err);
}

static int
drop_rights(struct err *err)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWIPC) != 0)
		return err_set_errno(err, errno, "namespaces of an imager");
	return cage_keep_capabilities(kept_capabilities, err);
}

_Noreturn void
imager_main(int images_fd, const struct image_name *name, int fd)
{
	struct imager im = { .images_fd = images_fd, .layout_fd = -1, .fd = fd };
	struct err err = { 0 };
	int rc;

	umask(077);
	rc = drop_rights(&err);
	if (rc == 0)
		rc = oci_layout_open(name->path, &im.layout_fd, &err);
	if (rc == 0 && fetch_image(&im, name->tag, &err) != 0)
		rc = err_prefix(&err, "image oci:%.200s", name->path);
	if (err.code == ERR_NO_SPACE)
		(void)err_prefix(&err, "no room for the image, free disk space below state_dir");
	if (rc == 0) {
		memcpy(im.word.digest, im.image.digest, sizeof im.word.digest);
		say(&im, IMAGER_DONE);
	} else {
		im.word.why = err;
		say(&im, IMAGER_FAILED);
	}
	oci_image_free(&im.image);
	cleanup_fd(&im.layout_fd);
	_exit(rc == 0 ? 0 : 1);
}
