/* image_sweep.c - reads what is below images/, decides, renames, deletes. */
/* SPDX-License-Identifier: MIT */
#include "image/image_sweep.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "image/image_notes.h"
#include "image/layer_store.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { SUMMARY_MAX = 4 << 20, PATH_ROOM = 96, HEX = IMAGE_DIGEST_SIZE - 1 };

struct layer {
	char digest[IMAGE_DIGEST_SIZE];
	int64_t bytes;
	unsigned users; /* manifests */
	int lock; /* held exclusively: it is going; -1 */
};

struct manifest {
	char digest[IMAGE_DIGEST_SIZE];
	struct timespec used;
	bool is_used, is_gone;
	size_t *layers; /* numbers */
	size_t layer_count;
};

struct sweep {
	const struct image_sweep_order *order;
	struct layer *layers;
	size_t layer_count;
	struct manifest *manifests;
	size_t manifest_count;
	int64_t bytes, freed;
};

/* --- what is there --- */

static bool
is_digest(const char *name, const char *end)
{
	return strspn(name, "0123456789abcdef") == HEX && strcmp(name + HEX, end) == 0;
}

static void
each_name(int images_fd, const char *directory, const char *end, void (*call)(struct sweep *, const char *),
	struct sweep *sweep)
{
	AUTO_FD fd = openat(images_fd, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (list == NULL)
		return;
	fd = -1; /* the list's from now on */
	while ((entry = readdir(list)) != NULL) {
		if (is_digest(entry->d_name, end))
			call(sweep, entry->d_name);
	}
}

static void
add_layer(struct sweep *sweep, const char *name)
{
	struct layer *layer;

	sweep->layers = alloc_resize(sweep->layers, (sweep->layer_count + 1) * sizeof *sweep->layers);
	layer = &sweep->layers[sweep->layer_count++];
	*layer = (struct layer){ .lock = -1, .bytes = layer_store_bytes(sweep->order->images_fd, name) };
	memcpy(layer->digest, name, sizeof layer->digest);
	sweep->bytes += layer->bytes;
}

static int
compare(const void *a, const void *b)
{
	return strcmp(((const struct layer *)a)->digest, ((const struct layer *)b)->digest);
}

static struct layer *
find_layer(struct sweep *sweep, const char *digest)
{
	struct layer key = { 0 };

	if (digest == NULL || strlen(digest) != HEX || sweep->layer_count == 0)
		return NULL;
	memcpy(key.digest, digest, sizeof key.digest);
	return bsearch(&key, sweep->layers, sweep->layer_count, sizeof key, compare);
}

static struct manifest *
find_manifest(struct sweep *sweep, const char *digest)
{
	for (size_t i = 0; i < sweep->manifest_count; i++) {
		if (strncmp(sweep->manifests[i].digest, digest, HEX) == 0)
			return &sweep->manifests[i];
	}
	return NULL;
}

static bool
is_used(const struct sweep *sweep, const char *digest)
{
	for (size_t i = 0; i < sweep->order->used_count; i++) {
		if (strncmp(sweep->order->used[i], digest, HEX) == 0)
			return true;
	}
	return sweep->order->all_used;
}

/* One that can't be read keeps nothing: nothing can be made of it either. */
static void
read_layers(struct sweep *sweep, const char *path, struct manifest *manifest)
{
	AUTO_JSON struct json_object *summary = NULL;
	struct json_object *list = NULL;
	AUTO_FREE char *text = NULL;
	struct err err;
	size_t len;

	if (file_read_at(sweep->order->images_fd, path, SUMMARY_MAX, &text, &len, &err) == 0)
		summary = json_parse(text, len, &err);
	if (!json_object_is_type(summary, json_type_object) ||
		!json_object_object_get_ex(summary, "layers", &list) || !json_object_is_type(list, json_type_array))
		return;
	manifest->layers = alloc_zero(json_object_array_length(list) + 1, sizeof *manifest->layers);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct layer *layer = find_layer(sweep, json_object_get_string(json_object_array_get_idx(list, i)));

		if (layer == NULL)
			continue;
		layer->users++;
		manifest->layers[manifest->layer_count++] = (size_t)(layer - sweep->layers);
	}
}

static void
add_manifest(struct sweep *sweep, const char *name)
{
	struct manifest *manifest = find_manifest(sweep, name);
	char path[PATH_ROOM];
	struct stat st;

	if (manifest != NULL && !manifest->is_gone) /* one that is gone has come back */
		return;
	snprintf(path, sizeof path, "manifests/%s", name);
	if (fstatat(sweep->order->images_fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	sweep->manifests = alloc_resize(sweep->manifests, (sweep->manifest_count + 1) * sizeof *sweep->manifests);
	manifest = &sweep->manifests[sweep->manifest_count++];
	*manifest = (struct manifest){ .used = st.st_mtim };
	memcpy(manifest->digest, name, HEX);
	manifest->is_used = is_used(sweep, manifest->digest);
	read_layers(sweep, path, manifest);
}

/* --- what goes --- */

/* Bytes that go when the layers without a user go. */
static int64_t
loose_bytes(const struct sweep *sweep)
{
	int64_t bytes = 0;

	for (size_t i = 0; i < sweep->layer_count; i++)
		bytes += sweep->layers[i].users == 0 ? sweep->layers[i].bytes : 0;
	return bytes;
}

static bool
is_older(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static struct manifest *
oldest(struct sweep *sweep)
{
	struct manifest *found = NULL;

	for (size_t i = 0; i < sweep->manifest_count; i++) {
		struct manifest *manifest = &sweep->manifests[i];

		if (!manifest->is_used && !manifest->is_gone && manifest->layer_count > 0 &&
			(found == NULL || is_older(&manifest->used, &found->used)))
			found = manifest;
	}
	return found;
}

static void
drop_manifest(const struct sweep *sweep, struct manifest *manifest)
{
	char path[PATH_ROOM];

	manifest->is_gone = true;
	snprintf(path, sizeof path, "manifests/%s.json", manifest->digest);
	if (unlinkat(sweep->order->images_fd, path, 0) != 0)
		return;
	for (size_t i = 0; i < manifest->layer_count; i++)
		sweep->layers[manifest->layers[i]].users--;
	log_info("image sha256:%.12s was not used for longest and is removed", manifest->digest);
}

static void
lock_loose_layers(struct sweep *sweep)
{
	struct err err;

	for (size_t i = 0; i < sweep->layer_count; i++) {
		struct layer *layer = &sweep->layers[i];

		if (layer->users > 0 ||
			layer_lock_open(sweep->order->images_fd, layer->digest, &layer->lock, &err) != 0)
			continue;
		if (flock(layer->lock, LOCK_EX | LOCK_NB) != 0) {
			close(layer->lock);
			layer->lock = -1;
		}
	}
}

static void
move_away(struct sweep *sweep, struct layer *layer)
{
	char from[PATH_ROOM], to[PATH_ROOM];

	snprintf(from, sizeof from, "layers/%s", layer->digest);
	snprintf(to, sizeof to, "tmp/gone-%s", layer->digest);
	if (renameat(sweep->order->images_fd, from, sweep->order->images_fd, to) != 0) {
		log_warn("layer %.12s can't be removed: %s", layer->digest, strerror(errno));
		return;
	}
	snprintf(from, sizeof from, "sizes/%s", layer->digest);
	(void)unlinkat(sweep->order->images_fd, from, 0);
	sweep->bytes -= layer->bytes;
	sweep->freed += layer->bytes;
	layer->bytes = -1;
}

/*
 * Whoever counts on a layer holds its lock until a manifest names it. So once the locks are ours, all manifests that
 * name these layers are on disk, and one more look finds those that came meanwhile.
 */
static void
decide(struct sweep *sweep)
{
	struct manifest *manifest;

	while (sweep->bytes - loose_bytes(sweep) > sweep->order->budget && (manifest = oldest(sweep)) != NULL)
		drop_manifest(sweep, manifest);
	lock_loose_layers(sweep);
	each_name(sweep->order->images_fd, "manifests", ".json", add_manifest, sweep);
	for (size_t i = 0; i < sweep->layer_count; i++) {
		struct layer *layer = &sweep->layers[i];

		if (layer->lock >= 0 && layer->users == 0 && sweep->bytes > sweep->order->budget)
			move_away(sweep, layer);
		cleanup_fd(&layer->lock);
	}
}

static void
delete_layers(const struct sweep *sweep, int64_t *ret_left)
{
	char path[PATH_ROOM];
	struct err err;

	*ret_left = 0;
	for (size_t i = 0; i < sweep->layer_count; i++) {
		if (sweep->layers[i].bytes >= 0) {
			++*ret_left;
			continue;
		}
		snprintf(path, sizeof path, "tmp/gone-%s", sweep->layers[i].digest);
		if (file_remove_tree_at(sweep->order->images_fd, path, &err) != 0)
			log_warn("a layer stays until the next start: %s", err.msg);
	}
}

static void
drop_note(struct sweep *sweep, const char *name)
{
	char path[PATH_ROOM], digest[IMAGE_DIGEST_SIZE];

	snprintf(path, sizeof path, "names/%s", name);
	if (image_note_digest(sweep->order->images_fd, path, digest) &&
		image_is_here(sweep->order->images_fd, digest))
		return;
	(void)unlinkat(sweep->order->images_fd, path, 0);
}

void
image_sweep(const struct image_sweep_order *order, void (*decided)(void *arg), void *arg,
	struct image_sweep_result *ret_result)
{
	struct sweep sweep = { .order = order };

	each_name(order->images_fd, "layers", "", add_layer, &sweep);
	if (sweep.layer_count > 0)
		qsort(sweep.layers, sweep.layer_count, sizeof *sweep.layers, compare);
	each_name(order->images_fd, "manifests", ".json", add_manifest, &sweep);
	if (sweep.bytes > order->budget)
		decide(&sweep);
	if (sweep.freed > 0)
		each_name(order->images_fd, "names", "", drop_note, &sweep);
	decided(arg);
	delete_layers(&sweep, &ret_result->layers);
	ret_result->bytes = sweep.bytes;
	ret_result->freed = sweep.freed;
	for (size_t i = 0; i < sweep.manifest_count; i++)
		free(sweep.manifests[i].layers);
	free(sweep.manifests);
	free(sweep.layers);
}
