/* docker_archive.c - manifest.json of a docker archive: names, a configuration, files of layers. */
/* SPDX-License-Identifier: MIT */
#include "image/docker_archive.h"

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "image/oci_layout.h"
#include "image/oci_manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <sha2.h>
#include <string.h>
#include <sys/stat.h>

enum { LAYERS_MAX = 1024, LIST_SIZE = 256, CHUNK = 256 << 10 };

static const char digest_head[] = "sha256:";

struct reading {
	int archive_fd, blobs_fd;
	struct oci_image *image;
	SHA2_CTX identity; /* of the configuration and all layers */
};

/* "busy:v1" is meant by "docker.io/library/busy:v1", too. */
static bool
is_called(struct json_object *entry, const char *name)
{
	struct json_object *tags = NULL;

	if (!json_object_is_type(entry, json_type_object) || !json_object_object_get_ex(entry, "RepoTags", &tags) ||
		!json_object_is_type(tags, json_type_array))
		return false;
	for (size_t i = 0; i < json_object_array_length(tags); i++) {
		const char *tag = json_object_get_string(json_object_array_get_idx(tags, i));
		size_t more = tag != NULL && strlen(tag) > strlen(name) ? strlen(tag) - strlen(name) : 0;

		if (tag != NULL && strcmp(tag + more, name) == 0 && (more == 0 || tag[more - 1] == '/'))
			return true;
	}
	return false;
}

static int
unknown_name(struct json_object *list, const char *name, struct err *err)
{
	char names[LIST_SIZE] = "", word[OCI_NAME_SIZE];

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *tags = NULL, *entry = json_object_array_get_idx(list, i);
		size_t len = strlen(names);
		const char *tag;

		if (!json_object_is_type(entry, json_type_object) ||
			!json_object_object_get_ex(entry, "RepoTags", &tags) ||
			!json_object_is_type(tags, json_type_array) || len + sizeof word >= sizeof names)
			continue;
		tag = json_object_get_string(json_object_array_get_idx(tags, 0));
		if (tag != NULL)
			snprintf(names + len, sizeof names - len, "%s%s", len > 0 ? ", " : "",
				oci_printable(tag, word, sizeof word));
	}
	return err_set(err, ERR_NOT_FOUND, "the archive has no image \"%s\"; name one behind a colon, of: %s", name,
		names[0] != '\0' ? names : "none");
}

static int
pick(struct json_object *list, const char *name, struct json_object **ret_entry, struct err *err)
{
	size_t count = json_object_array_length(list);

	for (size_t i = 0; i < count; i++) {
		*ret_entry = json_object_array_get_idx(list, i);
		if (name[0] == '\0' ? count == 1 : is_called(*ret_entry, name))
			return 0;
	}
	return unknown_name(list, name, err);
}

/* Its name is its digest in all archives there are, with ".json" behind or a directory before. */
static int
check_name(const char *path, const char *hex, struct err *err)
{
	const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;

	if (strspn(name, "0123456789abcdef") != TEXT_SHA256_HEX_SIZE - 1 ||
		strncmp(name, hex, TEXT_SHA256_HEX_SIZE - 1) == 0)
		return 0;
	return err_set(err, ERR_INVALID,
		"the archive is corrupt: its configuration does not have the digest %.12s; "
		"save the image again",
		name);
}

static int
read_config(struct reading *reading, const char *path, struct json_object **ret_config, struct err *err)
{
	AUTO_FREE char *text = NULL;
	char hex[TEXT_SHA256_HEX_SIZE];
	size_t len;

	if (oci_file_text(reading->archive_fd, path, &text, &len, err) != 0)
		return err_prefix(err, "configuration of the image");
	text_sha256_hex(text, len, hex);
	SHA256Update(&reading->identity, (const uint8_t *)hex, sizeof hex);
	if (check_name(path, hex, err) != 0)
		return -1;
	*ret_config = json_parse(text, len, err);
	return *ret_config != NULL ? 0 : err_prefix(err, "configuration of the image");
}

static int
hash_file(int fd, char ret_hex[IMAGE_DIGEST_SIZE], struct err *err)
{
	AUTO_FREE char *chunk = must_alloc(malloc(CHUNK));
	uint8_t digest[SHA256_DIGEST_LENGTH];
	SHA2_CTX sha;
	ssize_t n;

	SHA256Init(&sha);
	while ((n = read(fd, chunk, CHUNK)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set_errno(err, errno, "read a layer");
		SHA256Update(&sha, (const uint8_t *)chunk, (size_t)n);
	}
	SHA256Final(digest, &sha);
	for (size_t i = 0; i < sizeof digest; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
	return 0;
}

static bool
is_compressed(int fd)
{
	unsigned char head[4] = { 0 };

	return pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
		((head[0] == 0x1f && head[1] == 0x8b) || memcmp(head, "\x28\xb5\x2f\xfd", sizeof head) == 0);
}

/* The configuration knows the digest of a layer that is not compressed; of another one nobody says any. */
static int
add_layer(struct reading *reading, const char *path, const char *diff_id, struct err *err)
{
	struct oci_descriptor layer;
	AUTO_FD fd = -1;
	struct stat st;

	if (oci_file_open(reading->archive_fd, path, &fd, err) != 0)
		return err_prefix(err, "layer of the image");
	if (fstat(fd, &st) != 0)
		return err_set_errno(err, errno, "layer of the image");
	layer.size = st.st_size;
	if (is_compressed(fd)) {
		if (hash_file(fd, layer.digest, err) != 0)
			return -1;
	} else if (strncmp(diff_id, digest_head, sizeof digest_head - 1) == 0 &&
		strlen(diff_id) == sizeof digest_head - 2 + IMAGE_DIGEST_SIZE &&
		strspn(diff_id + sizeof digest_head - 1, "0123456789abcdef") == IMAGE_DIGEST_SIZE - 1) {
		memcpy(layer.digest, diff_id + sizeof digest_head - 1, IMAGE_DIGEST_SIZE);
	} else {
		return err_set(err, ERR_INVALID, "the image's configuration has no digest of a layer");
	}
	if (linkat(fd, "", reading->blobs_fd, layer.digest, AT_EMPTY_PATH) != 0 && errno != EEXIST)
		return err_set_errno(err, errno, "layer of the image");
	SHA256Update(&reading->identity, (const uint8_t *)layer.digest, sizeof layer.digest);
	oci_image_add_layer(reading->image, &layer);
	return 0;
}

static int
read_layers(struct reading *reading, struct json_object *entry, struct json_object *config, struct err *err)
{
	struct json_object *files = NULL, *rootfs = NULL, *ids = NULL;
	size_t count = 0;

	if (json_object_object_get_ex(entry, "Layers", &files) && json_object_is_type(files, json_type_array))
		count = json_object_array_length(files);
	json_object_object_get_ex(config, "rootfs", &rootfs);
	if (json_object_is_type(rootfs, json_type_object))
		json_object_object_get_ex(rootfs, "diff_ids", &ids);
	if (count > LAYERS_MAX ||
		count != (json_object_is_type(ids, json_type_array) ? json_object_array_length(ids) : 0))
		return err_set(err, ERR_INVALID, "the archive's list of layers is not that of its configuration");
	reading->image->layers = must_alloc(calloc(count + 1, sizeof *reading->image->layers));
	for (size_t i = 0; i < count; i++) {
		const char *path = json_object_get_string(json_object_array_get_idx(files, i));
		const char *id = json_object_get_string(json_object_array_get_idx(ids, i));

		if (path == NULL || id == NULL)
			return err_set(err, ERR_INVALID, "a layer of the archive has no name");
		if (add_layer(reading, path, id, err) != 0)
			return -1;
	}
	return 0;
}

int
docker_archive_find(int archive_fd, int blobs_fd, const char *name, struct oci_image *ret_image, struct err *err)
{
	struct reading reading = { .archive_fd = archive_fd, .blobs_fd = blobs_fd, .image = ret_image };
	AUTO_JSON struct json_object *list = NULL;
	AUTO_JSON struct json_object *config = NULL;
	uint8_t digest[SHA256_DIGEST_LENGTH];
	struct json_object *entry = NULL;
	AUTO_FREE char *text = NULL;
	size_t len;

	memset(ret_image, 0, sizeof *ret_image);
	SHA256Init(&reading.identity);
	if (oci_file_text(archive_fd, "manifest.json", &text, &len, err) != 0)
		return err_prefix(err, "this is no docker archive");
	list = json_parse(text, len, err);
	if (list == NULL || !json_object_is_type(list, json_type_array))
		return err_set(err, ERR_INVALID, "manifest.json of the archive is no list of images");
	if (pick(list, name, &entry, err) != 0 ||
		read_config(&reading, oci_string(entry, "Config"), &config, err) != 0 ||
		oci_image_configure(ret_image, config, err) != 0 || read_layers(&reading, entry, config, err) != 0)
		return -1;
	SHA256Final(digest, &reading.identity);
	for (size_t i = 0; i < sizeof digest; i++)
		snprintf(ret_image->digest + 2 * i, 3, "%02x", digest[i]);
	return 0;
}
