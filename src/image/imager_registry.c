/*
 * imager_registry.c - an image of a registry becomes a layout that lacks what is unpacked already.
 *
 * Manifests and configuration are fetched as they are and verified here, so the digest of an image is that of the
 * registry. Then skopeo fetches the blobs by that digest; where a layer is there already it finds a file of the right
 * size with nothing in it, and asks for nothing.
 */
/* SPDX-License-Identifier: MIT */
#include "image/imager_priv.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "conf/config.h"
#include "image/image_notes.h"
#include "image/layer_store.h"
#include "image/oci_manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

enum { PAUSE_MAX_S = 30, FILE_SLACK = 1 << 20, REFERENCE_SIZE = IMAGE_NAME_SIZE + 96 };

struct pull {
	struct imager *im;
	char repository[IMAGE_NAME_SIZE]; /* host/path */
	int blobs_fd; /* of the layout */
	int64_t bytes; /* to be fetched */
	size_t shown; /* layers that the last progress told of */
	int64_t shown_mib;
};

/* --- manifests --- */

static void
split_reference(const char *path, char repository[IMAGE_NAME_SIZE])
{
	const char *at = strchr(path, '@'), *colon = strrchr(path, ':');
	size_t len = at != NULL                               ? (size_t)(at - path)
		: colon != NULL && strchr(colon, '/') == NULL ? (size_t)(colon - path)
							      : strlen(path);

	snprintf(repository, IMAGE_NAME_SIZE, "%.*s", (int)len, path);
}

/* digest: what it must have, or "" and then it is filled in. */
static int
inspect(struct imager *im, const char *reference, bool config, char digest[IMAGE_DIGEST_SIZE],
	struct json_object **ret_object, struct err *err)
{
	char whole[REFERENCE_SIZE], hex[TEXT_SHA256_HEX_SIZE];
	const char *const args[] = { "inspect", "--raw", config ? "--config" : "--no-tags", whole, NULL };
	struct puller_job job = { .args = args, .file_max = FILE_SLACK };
	AUTO_FREE char *text = NULL;
	size_t len;

	snprintf(whole, sizeof whole, "docker://%s", reference);
	if (puller_run(&im->puller, &job, &text, &len, err) != 0)
		return -1;
	text_sha256_hex(text, len, hex);
	if (digest[0] != '\0' && strcmp(digest, hex) != 0)
		return err_set(err, ERR_INVALID,
			"the registry has sent something corrupt: it has the digest sha256:%.12s, not sha256:%.12s",
			hex, digest);
	memcpy(digest, hex, IMAGE_DIGEST_SIZE);
	*ret_object = json_parse(text, len, err);
	if (*ret_object == NULL || !json_object_is_type(*ret_object, json_type_object))
		return err_set(err, ERR_INVALID, "what the registry has sent is not JSON");
	return 0;
}

/* From what the name stands for, through indexes, to one manifest. */
static int
find_manifest(struct pull *pull, struct json_object **ret_manifest, struct err *err)
{
	struct imager *im = pull->im;
	const char *fixed = strstr(im->order->name->path, "@sha256:");
	char reference[REFERENCE_SIZE];
	struct oci_descriptor at = { "", -1 };

	snprintf(reference, sizeof reference, "%s", im->order->name->path);
	if (fixed != NULL)
		snprintf(at.digest, sizeof at.digest, "%s", fixed + strlen("@sha256:"));
	for (int depth = 0; depth < OCI_INDEX_DEPTH_MAX; depth++) {
		AUTO_JSON struct json_object *object = NULL;
		struct oci_descriptor next;
		bool is_index;

		if (inspect(im, reference, false, at.digest, &object, err) != 0 ||
			oci_index_pick(object, &is_index, &next, err) != 0)
			return -1;
		if (!is_index) {
			memcpy(im->image.digest, at.digest, sizeof im->image.digest);
			*ret_manifest = STEAL_PTR(object);
			return 0;
		}
		at = next;
		snprintf(reference, sizeof reference, "%s@sha256:%s", pull->repository, at.digest);
	}
	return err_set(
		err, ERR_INVALID, "the image's index refers to indexes more than %d deep", OCI_INDEX_DEPTH_MAX);
}

/* --- what is missing --- */

static int
check_sizes(struct pull *pull, struct err *err)
{
	struct imager *im = pull->im;
	int64_t all = 0;
	struct statvfs st;

	pull->bytes = 0;
	for (size_t i = 0; i < im->image.layer_count; i++) {
		int64_t size = im->image.layers[i].size;

		if (size < 0 || size > im->bytes_left || all + size > im->bytes_left)
			return err_set(err, ERR_TOO_LARGE, "the image is larger than image_max_bytes allows (%lld)",
				(long long)im->bytes_left);
		all += size;
		if (!imager_holds(im, i))
			pull->bytes += size;
	}
	if (fstatvfs(im->images_fd, &st) == 0 && (uint64_t)pull->bytes > (uint64_t)st.f_bavail * st.f_frsize)
		return err_set(err, ERR_NO_SPACE, "%lld MiB are to be fetched, %lld MiB are free",
			(long long)(pull->bytes >> 20), (long long)((st.f_bavail * st.f_frsize) >> 20));
	return 0;
}

/* --- fetching --- */

static int
make_dir(struct imager *im, int parent, const char *name, int *ret_fd, struct err *err)
{
	if (mkdirat(parent, name, 0700) != 0)
		return err_set_errno(err, errno, "make %s", name);
	*ret_fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_fd < 0 || fchown(*ret_fd, im->puller.uid, im->puller.gid) != 0)
		return err_set_errno(err, errno, "open %s", name);
	return 0;
}

/* A layer that is there is there for skopeo, too: it looks at names only. */
static int
add_placeholders(const struct pull *pull, struct err *err)
{
	const struct imager *im = pull->im;

	for (size_t i = 0; i < im->image.layer_count; i++) {
		AUTO_FD fd = -1;

		if (!imager_holds(im, i))
			continue;
		fd = openat(
			pull->blobs_fd, im->image.layers[i].digest, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0 || ftruncate(fd, im->image.layers[i].size) != 0)
			return err_set_errno(err, errno, "mark of a layer that is there");
	}
	return 0;
}

static int
make_layout(struct pull *pull, struct err *err)
{
	struct imager *im = pull->im;
	AUTO_FD blobs = -1;
	AUTO_FD tmp = -1;

	cleanup_fd(&im->layout_fd);
	cleanup_fd(&im->puller.work_fd);
	cleanup_fd(&pull->blobs_fd);
	cleanup_fd(&im->work_fd);
	im->layout_fd = im->puller.work_fd = pull->blobs_fd = im->work_fd = -1;
	if (imager_open_work(im, err) != 0 || make_dir(im, im->work_fd, "pull", &im->puller.work_fd, err) != 0 ||
		make_dir(im, im->puller.work_fd, "tmp", &tmp, err) != 0 ||
		make_dir(im, im->puller.work_fd, "layout", &im->layout_fd, err) != 0 ||
		make_dir(im, im->layout_fd, "blobs", &blobs, err) != 0 ||
		make_dir(im, blobs, "sha256", &pull->blobs_fd, err) != 0)
		return -1;
	return 0;
}

/* A blob has its name when it is whole. */
static void
count_blobs(const struct pull *pull, size_t *ret_layers, int64_t *ret_bytes)
{
	const struct imager *im = pull->im;
	AUTO_FD fd = openat(pull->blobs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	struct stat st;

	*ret_layers = 0;
	*ret_bytes = 0;
	if (list == NULL)
		return;
	fd = -1; /* the list's from now on */
	while ((entry = readdir(list)) != NULL) {
		if (entry->d_name[0] != '.' &&
			fstatat(pull->blobs_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode) && st.st_uid != 0)
			*ret_bytes += st.st_size;
	}
	for (size_t i = 0; i < im->image.layer_count; i++)
		*ret_layers += fstatat(pull->blobs_fd, im->image.layers[i].digest, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void
on_tick(void *arg)
{
	struct pull *pull = arg;
	struct imager *im = pull->im;
	size_t layers;
	int64_t bytes;

	count_blobs(pull, &layers, &bytes);
	layers += layers < im->image.layer_count; /* the one that is being fetched */
	if (layers == pull->shown && bytes >> 20 == pull->shown_mib)
		return;
	pull->shown = layers;
	pull->shown_mib = bytes >> 20;
	imager_tell(im, "pulling %.200s: layer %zu of %zu, %lld of %lld MiB", image_name_short(im->order->text),
		layers, im->image.layer_count, (long long)(bytes >> 20), (long long)(pull->bytes >> 20));
}

static int
fetch_blobs(struct pull *pull, struct err *err)
{
	struct imager *im = pull->im;
	char reference[REFERENCE_SIZE];
	const char *const args[] = { "copy", "--quiet", "--dest-oci-accept-uncompressed-layers", reference,
		"oci:layout:image", NULL };
	struct puller_job job = {
		.args = args, .file_max = FILE_SLACK + OCI_JSON_MAX, .tick = on_tick, .arg = pull
	};
	AUTO_FREE char *text = NULL;
	size_t len;

	for (size_t i = 0; i < im->image.layer_count; i++) {
		if (im->image.layers[i].size + FILE_SLACK > job.file_max)
			job.file_max = im->image.layers[i].size + FILE_SLACK;
	}
	snprintf(reference, sizeof reference, "docker://%s@sha256:%s", pull->repository, im->image.digest);
	if (add_placeholders(pull, err) != 0)
		return -1;
	im->word.pulled = true;
	pull->shown = SIZE_MAX;
	on_tick(pull);
	return puller_run(&im->puller, &job, &text, &len, err);
}

static int
take_config(struct pull *pull, struct json_object *manifest, struct err *err)
{
	AUTO_JSON struct json_object *config = NULL;
	char reference[REFERENCE_SIZE];
	struct oci_descriptor blob;

	if (oci_manifest_config(manifest, &blob, err) != 0)
		return -1;
	snprintf(reference, sizeof reference, "%s@sha256:%s", pull->repository, pull->im->image.digest);
	if (inspect(pull->im, reference, true, blob.digest, &config, err) != 0)
		return -1;
	return oci_image_configure(&pull->im->image, config, err);
}

/* One at a time for each manifest: another name of the same image may be at it. */
static int
wait_for_turn(struct imager *im, struct err *err)
{
	if (layer_lock_open(im->images_fd, im->image.digest, &im->turn_fd, err) != 0)
		return -1;
	while (flock(im->turn_fd, LOCK_EX) != 0) {
		if (errno != EINTR)
			return err_set_errno(err, errno, "lock of the image");
	}
	return 0;
}

static int
try(struct pull *pull, struct err *err)
{
	struct imager *im = pull->im;
	AUTO_JSON struct json_object *manifest = NULL;
	size_t missing;

	if (make_layout(pull, err) != 0 || find_manifest(pull, &manifest, err) != 0 ||
		oci_manifest_layers(manifest, &im->image, err) != 0 || wait_for_turn(im, err) != 0 ||
		imager_hold_layers(im, &missing, err) != 0)
		return -1;
	im->image.is_known = missing == 0 && image_is_here(im->images_fd, im->image.digest);
	if (im->image.is_known)
		return 0;
	if (take_config(pull, manifest, err) != 0)
		return -1;
	if (missing == 0)
		return 0;
	return check_sizes(pull, err) == 0 ? fetch_blobs(pull, err) : -1;
}

/* --- again --- */

static void
start_again(struct imager *im)
{
	for (size_t i = 0; im->locks != NULL && i < im->image.layer_count; i++)
		cleanup_fd(&im->locks[i]);
	free(im->locks);
	im->locks = NULL;
	cleanup_fd(&im->turn_fd);
	im->turn_fd = -1;
	oci_image_free(&im->image);
}

/* Better what the name stood for an hour ago than nothing. */
static bool
use_known(struct imager *im, const struct err *why)
{
	start_again(im);
	memcpy(im->image.digest, im->order->known, sizeof im->image.digest);
	if (im->image.digest[0] == '\0' || !image_is_here(im->images_fd, im->image.digest))
		return false;
	log_warn("image %s: %s; what it stood for before is used", im->order->text, why->msg);
	im->word.stale = true;
	return true;
}

int
imager_pull(struct imager *im, struct err *err)
{
	struct pull pull = { .im = im, .blobs_fd = -1 };
	int64_t retries = im->order->config->image_pull_retries, pause_s = 1;
	int rc;

	split_reference(im->order->name->path, pull.repository);
	imager_tell(im, "pulling %.200s", image_name_short(im->order->text));
	for (;;) {
		struct timespec pause;

		rc = try(&pull, err);
		if (rc == 0 || err->code != ERR_UNAVAILABLE || retries-- <= 0 ||
			clock_boot_ms() + pause_s * 1000 >= im->puller.deadline_ms)
			break;
		imager_tell(im, "pulling %.100s: %.200s; trying again in %lld s", image_name_short(im->order->text),
			err->msg, (long long)pause_s);
		start_again(im);
		pause = (struct timespec){ .tv_sec = pause_s };
		nanosleep(&pause, NULL);
		pause_s = pause_s * 2 < PAUSE_MAX_S ? pause_s * 2 : PAUSE_MAX_S;
	}
	if (rc != 0 && err->code == ERR_UNAVAILABLE && use_known(im, err))
		rc = 0;
	cleanup_fd(&pull.blobs_fd);
	return rc;
}
