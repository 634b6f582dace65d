/* oci_manifest.c - a manifest's layers and configuration, refused where they are not for us. */
/* SPDX-License-Identifier: MIT */
#include "image/oci_manifest.h"

#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "image/oci_layout.h"

#include <json-c/json.h>
#include <string.h>

enum { LAYERS_MAX = 1024, USER_MAX = 256, WORKING_DIR_MAX = 4095, ENV_BYTES_MAX = 256 << 10 };

static bool
is_one_of(const char *text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(text, words[i]) == 0)
			return true;
	}
	return false;
}

static int
check_config_type(const char *type, struct err *err)
{
	static const char *const known[] = { "", "application/vnd.oci.image.config.v1+json",
		"application/vnd.docker.container.image.v1+json" };
	char buf[OCI_NAME_SIZE];

	if (is_one_of(type, known, sizeof known / sizeof *known))
		return 0;
	return err_set(err, ERR_UNSUPPORTED,
		"this is not the image of a container: its configuration is of type %s",
		oci_printable(type, buf, sizeof buf));
}

static int
check_layer_type(const char *type, struct err *err)
{
	static const char *const known[] = { "application/vnd.oci.image.layer.v1.tar",
		"application/vnd.oci.image.layer.v1.tar+gzip", "application/vnd.oci.image.layer.v1.tar+zstd",
		"application/vnd.docker.image.rootfs.diff.tar", "application/vnd.docker.image.rootfs.diff.tar.gzip",
		"application/vnd.docker.image.rootfs.diff.tar.zstd" };
	const char *why = "is not known";
	char buf[OCI_NAME_SIZE];

	if (is_one_of(type, known, sizeof known / sizeof *known))
		return 0;
	if (strstr(type, "encrypted") != NULL)
		why = "is encrypted; decrypt the image with skopeo copy --decryption-key";
	else if (strstr(type, "nondistributable") != NULL || strstr(type, "foreign") != NULL)
		why = "is kept elsewhere (foreign); make an image that has all of its layers";
	return err_set(
		err, ERR_UNSUPPORTED, "a layer of media type \"%s\" %s", oci_printable(type, buf, sizeof buf), why);
}

/*
 * Overlay takes no directory twice. Where a layer comes again, everything its lower
 * place shows is shown by the upper one too, so only the topmost stays.
 */
void
oci_image_add_layer(struct oci_image *image, const struct oci_descriptor *layer)
{
	size_t kept = 0;

	for (size_t i = 0; i < image->layer_count; i++) {
		if (strcmp(image->layers[i].digest, layer->digest) != 0)
			image->layers[kept++] = image->layers[i];
	}
	image->layers[kept] = *layer;
	image->layer_count = kept + 1;
}

int
oci_manifest_layers(struct json_object *manifest, struct oci_image *image, struct err *err)
{
	struct json_object *list = NULL;
	struct oci_descriptor layer;
	size_t count;

	if (!json_object_object_get_ex(manifest, "layers", &list) || !json_object_is_type(list, json_type_array))
		return err_set(err, ERR_UNSUPPORTED,
			"the manifest sha256:%s has no list of layers; copy the image with "
			"skopeo copy --format oci",
			image->digest);
	count = json_object_array_length(list);
	if (count > LAYERS_MAX)
		return err_set(
			err, ERR_UNSUPPORTED, "the image has %zu layers; at most %d are read", count, LAYERS_MAX);
	image->layers = must_alloc(calloc(count + 1, sizeof *image->layers));
	for (size_t i = 0; i < count; i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);

		if (check_layer_type(oci_string(entry, "mediaType"), err) != 0 ||
			oci_descriptor_read(entry, &layer, err) != 0)
			return -1;
		oci_image_add_layer(image, &layer);
	}
	return 0;
}

static int
check_platform(struct json_object *config, struct err *err)
{
	const char *os = oci_string(config, "os"), *architecture = oci_string(config, "architecture");
	char os_buf[32], architecture_buf[32];

	if ((os[0] == '\0' || strcmp(os, "linux") == 0) &&
		(architecture[0] == '\0' || strcmp(architecture, oci_this_architecture()) == 0))
		return 0;
	return err_set(err, ERR_UNSUPPORTED,
		"the image is made for %s/%s, this machine is linux/%s; copy the image for that platform",
		oci_printable(os, os_buf, sizeof os_buf),
		oci_printable(architecture, architecture_buf, sizeof architecture_buf), oci_this_architecture());
}

int
oci_manifest_config(struct json_object *manifest, struct oci_descriptor *ret_blob, struct err *err)
{
	struct json_object *descriptor = NULL;

	json_object_object_get_ex(manifest, "config", &descriptor);
	if (check_config_type(oci_string(descriptor, "mediaType"), err) != 0)
		return -1;
	return oci_descriptor_read(descriptor, ret_blob, err);
}

int
oci_image_configure(struct oci_image *image, struct json_object *config, struct err *err)
{
	struct json_object *settings = NULL;

	if (check_platform(config, err) != 0)
		return -1;
	if (json_object_object_get_ex(config, "config", &settings) &&
		json_object_is_type(settings, json_type_object))
		image->config = json_object_get(settings);
	return 0;
}

int
oci_manifest_read(int layout_fd, struct json_object *manifest, struct oci_image *image, struct err *err)
{
	AUTO_JSON struct json_object *config = NULL;
	struct oci_descriptor blob;

	if (oci_manifest_layers(manifest, image, err) != 0 || oci_manifest_config(manifest, &blob, err) != 0 ||
		oci_blob_json(layout_fd, &blob, &config, err) != 0)
		return -1;
	return oci_image_configure(image, config, err);
}

static int
copy_string(struct json_object *from, const char *name, size_t max, struct json_object *to, const char *as,
	struct err *err)
{
	const char *text = oci_string(from, name);

	if (strlen(text) > max)
		return err_set(err, ERR_INVALID, "the image's %s is longer than %zu bytes", name, max);
	json_object_object_add(to, as, json_object_new_string(text));
	return 0;
}

/* An entry that is no NAME=value can't be given to a program, and only harms whoever left it there. */
static int
copy_env(struct json_object *from, struct json_object *to, struct err *err)
{
	struct json_object *env = json_object_new_array(), *list = NULL;
	size_t count = 0, bytes = 0;

	json_object_object_add(to, "env", env);
	if (json_object_object_get_ex(from, "Env", &list) && json_object_is_type(list, json_type_array))
		count = json_object_array_length(list);
	for (size_t i = 0; i < count; i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);
		const char *text = json_object_is_type(entry, json_type_string) ? json_object_get_string(entry)
										: "";

		if (strchr(text, '=') == NULL || text[0] == '=' ||
			strlen(text) != (size_t)json_object_get_string_len(entry)) {
			log_warn("entry %zu of the image's Env is not NAME=value and is left out", i + 1);
			continue;
		}
		bytes += strlen(text) + 1;
		if (bytes > ENV_BYTES_MAX)
			return err_set(
				err, ERR_INVALID, "the image's Env has more than %d KiB", ENV_BYTES_MAX >> 10);
		json_object_array_add(env, json_object_get(entry));
	}
	return 0;
}

struct json_object *
oci_image_summary(const struct oci_image *image, struct err *err)
{
	AUTO_JSON struct json_object *summary = must_alloc(json_object_new_object());
	struct json_object *layers = json_object_new_array();

	json_object_object_add(summary, "layers", layers);
	for (size_t i = 0; i < image->layer_count; i++)
		json_object_array_add(layers, json_object_new_string(image->layers[i].digest));
	if (copy_string(image->config, "User", USER_MAX, summary, "user", err) != 0 ||
		copy_string(image->config, "WorkingDir", WORKING_DIR_MAX, summary, "working_dir", err) != 0 ||
		copy_env(image->config, summary, err) != 0)
		return NULL;
	return STEAL_PTR(summary);
}
