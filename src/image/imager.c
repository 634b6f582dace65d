/*
 * imager.c - the child that looks after one image.
 *
 * Whatever the form of its name, an image becomes a layout (a directory of blobs), its layers become directories, and
 * a summary says which belong together. Each layer is locked from the look for it until the summary is on disk.
 *
 * Of root's rights it keeps SYS_ADMIN for the cages' mounts and trusted attributes, SETPCAP to take rights from the
 * unpacker, and what is needed to read layouts and to write and remove any layer; for a registry also those to start
 * and end the program that has none.
 */
/* SPDX-License-Identifier: MIT */
#include "image/imager.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "conf/config.h"
#include "image/image_notes.h"
#include "image/imager_priv.h"
#include "image/layer_frame.h"
#include "image/layer_store.h"
#include "image/oci_manifest.h"
#include "image/unpack_cage.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

static const uint64_t kept_capabilities = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE |
	1ULL << CAP_DAC_READ_SEARCH | 1ULL << CAP_FOWNER | 1ULL << CAP_FSETID | 1ULL << CAP_SETFCAP |
	1ULL << CAP_SETPCAP | 1ULL << CAP_SYS_ADMIN;
static const uint64_t pull_capabilities = 1ULL << CAP_SETUID | 1ULL << CAP_SETGID | 1ULL << CAP_KILL;

static void
say(struct imager *im, enum imager_kind kind)
{
	im->word.kind = kind;
	while (send(im->fd, &im->word, sizeof im->word, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

void
imager_tell(struct imager *im, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(im->word.why.msg, sizeof im->word.why.msg, format, args);
	va_end(args);
	say(im, IMAGER_PROGRESS);
}

/* Named after the image: what an imager that was killed has left is found by the next one. */
static void
work_path(const struct imager *im, char path[OCI_NAME_SIZE])
{
	char hex[TEXT_SHA256_HEX_SIZE];

	text_sha256_hex(im->order->text, strlen(im->order->text), hex);
	snprintf(path, OCI_NAME_SIZE, "tmp/work-%s", hex);
}

int
imager_open_work(struct imager *im, struct err *err)
{
	char path[OCI_NAME_SIZE];

	work_path(im, path);
	if (file_remove_tree_at(im->images_fd, path, err) != 0)
		return -1;
	if (mkdirat(im->images_fd, path, 0700) != 0)
		return err_set_errno(err, errno, "make images/%s", path);
	im->work_fd = openat(im->images_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return im->work_fd >= 0 ? 0 : err_set_errno(err, errno, "open images/%s", path);
}

static void
remove_work(struct imager *im)
{
	char path[OCI_NAME_SIZE];
	struct err err;

	if (im->work_fd < 0)
		return;
	cleanup_fd(&im->work_fd);
	work_path(im, path);
	if (file_remove_tree_at(im->images_fd, path, &err) != 0)
		log_warn("what was fetched stays: %s", err.msg);
}

bool
imager_holds(const struct imager *im, size_t number)
{
	return im->locks != NULL && im->locks[number] >= 0;
}

/* frame NULL: from its blob. */
static int
make_layer(struct imager *im, const struct oci_descriptor *layer, const struct layer_frame *frame, struct err *err)
{
	if (frame != NULL)
		return layer_store_make_frame(im->images_fd, frame, err);
	return layer_store_make(im->images_fd, im->layout_fd, layer, &im->bytes_left, err);
}

static int
take_layer(struct imager *im, size_t number, bool wait, const struct layer_frame *frame, struct err *err)
{
	const struct oci_descriptor *layer = &im->image.layers[number];
	AUTO_FD lock = -1;
	bool is_there = false;

	if (layer_lock_open(im->images_fd, layer->digest, &lock, err) != 0)
		return -1;
	for (;;) {
		if (wait || layer_is_there(im->images_fd, layer->digest)) {
			if (layer_lock_take(im->images_fd, layer, lock, &is_there, err) != 0)
				return -1;
		}
		if (is_there)
			im->locks[number] = STEAL_FD(lock);
		if (is_there || !wait)
			return 0;
		if (make_layer(im, layer, frame, err) != 0)
			return -1;
	}
}

static void
make_locks(struct imager *im)
{
	if (im->locks != NULL)
		return;
	im->locks = must_alloc(malloc((im->image.layer_count + 1) * sizeof *im->locks));
	for (size_t i = 0; i < im->image.layer_count; i++)
		im->locks[i] = -1;
}

int
imager_hold_layers(struct imager *im, size_t *ret_missing, struct err *err)
{
	make_locks(im);
	*ret_missing = 0;
	for (size_t i = 0; i < im->image.layer_count; i++) {
		if (!imager_holds(im, i) && take_layer(im, i, false, NULL, err) != 0)
			return -1;
		*ret_missing += !imager_holds(im, i);
	}
	return 0;
}

static int
make_layers(struct imager *im, struct err *err)
{
	make_locks(im);
	for (size_t i = 0; i < im->image.layer_count; i++) {
		if (!imager_holds(im, i) && !layer_is_there(im->images_fd, im->image.layers[i].digest))
			imager_tell(im, "unpacking layer %zu of %zu", i + 1, im->image.layer_count);
		if (!imager_holds(im, i) && take_layer(im, i, true, NULL, err) != 0)
			return -1;
	}
	return 0;
}

/* On top, where that is one layer more than there are blobs. */
static int
add_frame(struct imager *im, struct err *err)
{
	struct oci_image *image = &im->image;
	struct layer_frame frame;
	int rc = 0;

	if (layer_frame_find(im->images_fd, image, &frame, err) != 0)
		return -1;
	if (frame.count > 0) {
		image->layers = alloc_resize(image->layers, (image->layer_count + 1) * sizeof *image->layers);
		oci_image_add_layer(image, &frame.layer);
		im->locks[image->layer_count - 1] = -1;
		rc = take_layer(im, image->layer_count - 1, true, &frame, err);
	}
	layer_frame_free(&frame);
	return rc;
}

static int
write_summary(struct imager *im, struct err *err)
{
	AUTO_JSON struct json_object *summary = oci_image_summary(&im->image, err);
	char path[OCI_NAME_SIZE];
	const char *text;
	size_t len;

	if (summary == NULL)
		return -1;
	snprintf(path, sizeof path, "manifests/%s.json", im->image.digest);
	im->word.is_new = true;
	text = json_text(summary, &len);
	return file_write_atomic_at(im->images_fd, path, 0600, text, len, true, err);
}

/* From now on the name stands for this one. */
static int
note_name(const struct imager *im, struct err *err)
{
	const struct imager_order *order = im->order;

	if (order->name->form != IMAGE_REGISTRY || order->name->fixed)
		return 0;
	return image_note_write(im->images_fd, order->text, im->image.digest, err);
}

static int
find_image(struct imager *im, struct err *err)
{
	const struct image_name *name = im->order->name;

	if (name->form == IMAGE_REGISTRY)
		return imager_pull(im, err);
	if (name->form != IMAGE_OCI)
		return imager_open_archive(im, err);
	if (oci_layout_open(name->path, &im->layout_fd, err) != 0)
		return -1;
	return oci_image_find(im->layout_fd, name->tag, &im->image, err);
}

/* An image that was there all the time has its summary already, and no configuration was asked for. */
static int
fetch_image(struct imager *im, struct err *err)
{
	if (find_image(im, err) != 0)
		return -1;
	if (im->word.stale)
		return 0;
	if (!im->image.is_known &&
		(make_layers(im, err) != 0 || add_frame(im, err) != 0 || write_summary(im, err) != 0))
		return -1;
	return note_name(im, err);
}

static int
drop_rights(const struct imager *im, struct err *err)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWIPC) != 0)
		return err_set_errno(err, errno, "namespaces of an imager");
	return cage_keep_capabilities(
		kept_capabilities | (im->order->name->form == IMAGE_REGISTRY ? pull_capabilities : 0), err);
}

static int
run(struct imager *im, struct err *err)
{
	umask(077);
	if (im->order->name->form == IMAGE_REGISTRY && puller_open(&im->puller, im->order->config, err) != 0)
		return -1;
	if (drop_rights(im, err) != 0)
		return -1;
	if (fetch_image(im, err) == 0)
		return 0;
	(void)err_prefix(err, "image %.200s", image_name_short(im->order->text));
	if (err->code == ERR_NO_SPACE)
		(void)err_prefix(err, "no room for the image, free disk space below state_dir");
	return -1;
}

_Noreturn void
imager_main(const struct imager_order *order, int fd)
{
	struct imager im = { .order = order,
		.images_fd = order->images_fd,
		.layout_fd = -1,
		.work_fd = -1,
		.turn_fd = -1,
		.fd = fd };
	struct err err = { 0 };
	int rc;

	puller_init(&im.puller);
	im.bytes_left = order->config->image_max_bytes;
	rc = run(&im, &err);
	remove_work(&im);
	if (rc == 0) {
		memcpy(im.word.digest, im.image.digest, sizeof im.word.digest);
		say(&im, IMAGER_DONE);
	} else {
		im.word.why = err;
		say(&im, IMAGER_FAILED);
	}
	oci_image_free(&im.image);
	free(im.locks);
	puller_close(&im.puller);
	cleanup_fd(&im.layout_fd);
	_exit(rc == 0 ? 0 : 1);
}
