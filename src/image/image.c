/* image.c - opens what an imager has prepared. */
/* SPDX-License-Identifier: MIT */
#include "image/image.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MANIFEST_MAX = 4 << 20 };

static void
add_layer(struct image *image, int fd)
{
	image->layers = realloc(image->layers, (image->layer_count + 1) * sizeof *image->layers);
	if (image->layers == NULL)
		abort();
	image->layers[image->layer_count++] = fd;
}

static int
open_dir_image(const char *path, struct image *image, struct err *err)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == ENOTDIR)
		return err_set(err, ERR_INVALID, "image dir:%.300s is not a directory", path);
	if (fd < 0)
		return err_set_errno(err, errno, "image dir:%.300s", path);
	add_layer(image, fd);
	image->env = json_object_new_array();
	return 0;
}

static int
open_layer(int images_fd, const char *digest, struct image *image, struct err *err)
{
	char path[IMAGE_DIGEST_SIZE + 16];
	int fd;

	snprintf(path, sizeof path, "layers/%.64s", digest);
	fd = openat(images_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, errno, "image layer %.12s", digest);
	add_layer(image, fd);
	return 0;
}

/* "layers" lists digests from the lowest to the top; overlay wants them the other way round. */
static int
open_layers(int images_fd, struct json_object *layers, struct image *image, struct err *err)
{
	size_t count = json_object_is_type(layers, json_type_array) ? json_object_array_length(layers) : 0;

	if (count > IMAGE_LAYERS_MAX)
		return err_set(err, ERR_UNSUPPORTED, "the image has %zu layers; at most %d can be stacked", count,
			IMAGE_LAYERS_MAX);
	for (size_t i = count; i-- > 0;) {
		const char *digest = json_object_get_string(json_object_array_get_idx(layers, i));

		if (digest == NULL || open_layer(images_fd, digest, image, err) != 0)
			return -1;
	}
	if (count == 0) { /* made from nothing: an overlay still needs something below */
		if (mkdirat(images_fd, "empty", 0755) != 0 && errno != EEXIST)
			return err_set_errno(err, errno, "empty image");
		add_layer(image, openat(images_fd, "empty", O_PATH | O_DIRECTORY | O_CLOEXEC));
	}
	return 0;
}

static int
open_oci_image(int images_fd, const char *digest, struct image *image, struct err *err)
{
	char path[IMAGE_DIGEST_SIZE + 32];
	AUTO_FREE char *text = NULL;
	AUTO_JSON struct json_object *object = NULL;
	const char *user = "", *working_dir = "";
	struct json_object *env;
	struct json_reader reader;
	size_t len;

	snprintf(path, sizeof path, "manifests/%.64s.json", digest);
	if (file_read_at(images_fd, path, MANIFEST_MAX, &text, &len, err) != 0)
		return -1;
	object = json_parse(text, len, err);
	if (object == NULL)
		return -1;
	if (open_layers(images_fd, json_object_object_get(object, "layers"), image, err) != 0)
		return -1;
	(void)utimensat(images_fd, path, NULL, 0); /* what was not used for longest goes first */
	json_reader_init(&reader, object);
	json_reader_string(&reader, "user", 256, &user);
	json_reader_string(&reader, "working_dir", 4096, &working_dir);
	json_reader_fini(&reader);
	env = json_object_object_get(object, "env");
	image->env = env != NULL ? json_object_get(env) : json_object_new_array();
	image->user = strdup(user);
	/* some builders leave the leading slash out */
	image->working_dir = alloc_format(
		"%s%s", working_dir[0] != '/' && working_dir[0] != '\0' ? "/" : "", working_dir);
	return 0;
}

int
image_open(
	int images_fd, const struct image_name *name, const char *digest, struct image *ret_image, struct err *err)
{
	int rc;

	memset(ret_image, 0, sizeof *ret_image);
	if (name->form == IMAGE_DIR)
		rc = open_dir_image(name->path, ret_image, err);
	else
		rc = open_oci_image(images_fd, digest, ret_image, err);
	if (rc != 0)
		image_close(ret_image);
	return rc;
}

void
image_close(struct image *image)
{
	for (size_t i = 0; i < image->layer_count; i++)
		close(image->layers[i]);
	free(image->layers);
	json_object_put(image->env);
	free(image->user);
	free(image->working_dir);
	memset(image, 0, sizeof *image);
}
