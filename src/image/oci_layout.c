/* oci_layout.c - the index of a layout: from a tag to the digest of one manifest. */
/* SPDX-License-Identifier: MIT */
#include "image/oci_layout.h"

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "image/oci_manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/utsname.h>

enum { LIST_SIZE = 256 };

static const char ref_name[] = "org.opencontainers.image.ref.name";

const char *
oci_this_architecture(void)
{
	static const char *const names[][2] = { { "x86_64", "amd64" }, { "aarch64", "arm64" }, { "armv7l", "arm" },
		{ "armv6l", "arm" }, { "i686", "386" }, { "loongarch64", "loong64" } };
	static struct utsname name; /* the others are called the same */

	if (uname(&name) != 0)
		return "";
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(name.machine, names[i][0]) == 0)
			return names[i][1];
	}
	return name.machine;
}

int
oci_layout_open(const char *path, int *ret_fd, struct err *err)
{
	AUTO_FD fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FD index = -1;
	AUTO_FD mark = -1;

	if (fd < 0)
		return err_set_errno(err, errno, "the layout");
	if (oci_file_open(fd, "index.json", &index, err) != 0 || oci_file_open(fd, "oci-layout", &mark, err) != 0)
		return err_prefix(err, "%.300s is not an OCI image layout", path);
	*ret_fd = STEAL_FD(fd);
	return 0;
}

static struct json_object *
manifests_of(struct json_object *index)
{
	struct json_object *list = NULL;

	if (!json_object_object_get_ex(index, "manifests", &list) || !json_object_is_type(list, json_type_array))
		return NULL;
	return list;
}

static const char *
tag_of(struct json_object *entry)
{
	struct json_object *annotations = NULL;

	if (!json_object_is_type(entry, json_type_object))
		return "";
	json_object_object_get_ex(entry, "annotations", &annotations);
	return oci_string(annotations, ref_name);
}

enum suits { SUITS_NOT, SUITS_SOME, SUITS_ALL };

/* What every processor of an architecture can do goes by no variant, or by the first one that has a name. */
static bool
is_common(const char *variant)
{
	return variant[0] == '\0' ||
		strcmp(variant, strcmp(oci_this_architecture(), "arm64") == 0 ? "v8" : "v1") == 0;
}

/* An entry that names no platform leaves the question to the image's configuration. */
static enum suits
suits(struct json_object *entry)
{
	struct json_object *platform = NULL;

	if (!json_object_is_type(entry, json_type_object) ||
		!json_object_object_get_ex(entry, "platform", &platform))
		return SUITS_SOME;
	if (strcmp(oci_string(platform, "os"), "linux") != 0 ||
		strcmp(oci_string(platform, "architecture"), oci_this_architecture()) != 0)
		return SUITS_NOT;
	return is_common(oci_string(platform, "variant")) ? SUITS_ALL : SUITS_SOME;
}

/* Any tag when tag is NULL. Of several the first that suits best; *ret_count: how many there are at all. */
static struct json_object *
pick(struct json_object *list, const char *tag, size_t *ret_count)
{
	struct json_object *first = NULL, *best = NULL;
	enum suits best_suits = SUITS_NOT;
	size_t length = json_object_array_length(list);

	*ret_count = 0;
	for (size_t i = 0; i < length; i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);

		if (tag != NULL && strcmp(tag_of(entry), tag) != 0)
			continue;
		++*ret_count;
		if (first == NULL)
			first = entry;
		if (suits(entry) > best_suits) {
			best = entry;
			best_suits = suits(entry);
		}
	}
	return best != NULL ? best : *ret_count == 1 ? first : NULL;
}

static void
append(char *text, size_t size, const char *word)
{
	size_t len = strlen(text);
	char buf[OCI_NAME_SIZE];

	snprintf(text + len, size - len, "%s%s", len > 0 ? ", " : "", oci_printable(word, buf, sizeof buf));
}

static int
unknown_tag(struct json_object *list, const char *tag, struct err *err)
{
	char tags[LIST_SIZE] = "";

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		const char *name = tag_of(json_object_array_get_idx(list, i));

		if (name[0] != '\0' && strlen(tags) + OCI_NAME_SIZE < sizeof tags)
			append(tags, sizeof tags, name);
	}
	if (tag[0] == '\0' && tags[0] != '\0')
		return err_set(err, ERR_NOT_FOUND,
			"the layout has several images and none is called \"latest\"; name a "
			"tag behind a colon, one of: %s",
			tags);
	if (tags[0] == '\0')
		return err_set(err, ERR_NOT_FOUND, "the layout has no tag \"%s\", nor any other", tag);
	return err_set(err, ERR_NOT_FOUND, "the layout has no tag \"%s\"; it has: %s", tag, tags);
}

static int
no_platform(struct json_object *list, struct err *err)
{
	char platforms[LIST_SIZE] = "", word[OCI_NAME_SIZE];

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *platform = NULL, *entry = json_object_array_get_idx(list, i);

		if (!json_object_is_type(entry, json_type_object) ||
			!json_object_object_get_ex(entry, "platform", &platform) ||
			strlen(platforms) + OCI_NAME_SIZE >= sizeof platforms)
			continue;
		snprintf(word, sizeof word, "%.40s/%.40s", oci_string(platform, "os"),
			oci_string(platform, "architecture"));
		append(platforms, sizeof platforms, word);
	}
	return err_set(err, ERR_UNSUPPORTED, "the image has nothing for this machine (linux/%s), only for: %s",
		oci_this_architecture(), platforms[0] != '\0' ? platforms : "nothing at all");
}

static struct json_object *
pick_untagged(struct json_object *list, size_t *ret_count)
{
	struct json_object *entry = pick(list, "latest", ret_count);

	if (*ret_count > 0)
		return entry;
	/* The only one, or one image for several platforms, none of which has a tag. */
	entry = pick(list, "", ret_count);
	if (*ret_count == json_object_array_length(list))
		return entry;
	*ret_count = 0;
	return json_object_array_length(list) == 1 ? json_object_array_get_idx(list, 0) : NULL;
}

static int
pick_tag(struct json_object *index, const char *tag, struct json_object **ret_entry, struct err *err)
{
	struct json_object *list = manifests_of(index), *entry = NULL;
	size_t count;

	if (list == NULL)
		return err_set(err, ERR_INVALID, "index.json has no list of manifests");
	if (json_object_array_length(list) == 0)
		return err_set(err, ERR_NOT_FOUND, "the layout holds no image");
	entry = tag[0] != '\0' ? pick(list, tag, &count) : pick_untagged(list, &count);
	if (entry == NULL)
		return count > 0 ? no_platform(list, err) : unknown_tag(list, tag, err);
	*ret_entry = entry;
	return 0;
}

int
oci_index_pick(struct json_object *object, bool *ret_is_index, struct oci_descriptor *ret_at, struct err *err)
{
	struct json_object *list = manifests_of(object), *entry;
	size_t count;

	*ret_is_index = list != NULL;
	if (list == NULL)
		return 0;
	entry = pick(list, NULL, &count);
	return entry != NULL ? oci_descriptor_read(entry, ret_at, err) : no_platform(list, err);
}

/* Follows indexes within indexes; *ret_manifest is owned by the caller. */
static int
descend(int layout_fd, struct oci_descriptor *at, struct json_object **ret_manifest, struct err *err)
{
	for (int depth = 0; depth < OCI_INDEX_DEPTH_MAX; depth++) {
		AUTO_JSON struct json_object *object = NULL;
		bool is_index;

		if (oci_blob_json(layout_fd, at, &object, err) != 0 ||
			oci_index_pick(object, &is_index, at, err) != 0)
			return -1;
		if (!is_index) {
			*ret_manifest = STEAL_PTR(object);
			return 0;
		}
	}
	return err_set(
		err, ERR_INVALID, "the image's index refers to indexes more than %d deep", OCI_INDEX_DEPTH_MAX);
}

int
oci_image_find(int layout_fd, const char *tag, struct oci_image *ret_image, struct err *err)
{
	AUTO_JSON struct json_object *index = NULL;
	AUTO_JSON struct json_object *manifest = NULL;
	struct json_object *entry = NULL;
	struct oci_descriptor at;

	memset(ret_image, 0, sizeof *ret_image);
	if (oci_file_json(layout_fd, "index.json", &index, err) != 0 || pick_tag(index, tag, &entry, err) != 0 ||
		oci_descriptor_read(entry, &at, err) != 0 || descend(layout_fd, &at, &manifest, err) != 0)
		return -1;
	memcpy(ret_image->digest, at.digest, sizeof ret_image->digest);
	if (oci_manifest_read(layout_fd, manifest, ret_image, err) != 0) {
		oci_image_free(ret_image);
		return -1;
	}
	return 0;
}

void
oci_image_free(struct oci_image *image)
{
	free(image->layers);
	json_object_put(image->config);
	memset(image, 0, sizeof *image);
}
