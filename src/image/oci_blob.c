/* oci_blob.c - files of an OCI layout: opened without leaving it, checked against their names. */
/* SPDX-License-Identifier: MIT */
#include "image/oci_blob.h"

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

const char *
oci_printable(const char *text, char *buf, size_t size)
{
	size_t len = 0;

	for (; text[len] != '\0' && len + 1 < size; len++)
		buf[len] = text[len] >= ' ' && text[len] <= '~' ? text[len] : '?';
	buf[len] = '\0';
	return buf;
}

const char *
oci_string(struct json_object *object, const char *name)
{
	struct json_object *value;

	if (!json_object_is_type(object, json_type_object) || !json_object_object_get_ex(object, name, &value) ||
		!json_object_is_type(value, json_type_string))
		return "";
	return json_object_get_string(value);
}

int
oci_file_open(int layout_fd, const char *path, int *ret_fd, struct err *err)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	AUTO_FD fd = (int)syscall(SYS_openat2, layout_fd, path, &how, sizeof how);
	struct stat st;

	if (fd < 0 && errno == EXDEV)
		return err_set(
			err, ERR_INVALID, "%s is a link that leads out of the layout; copy the file there", path);
	if (fd < 0)
		return err_set_errno(err, errno, "%s", path);
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "%s is not a plain file", path);
	*ret_fd = STEAL_FD(fd);
	return 0;
}

static int
read_text(int fd, const char *path, char **ret_text, size_t *ret_len, struct err *err)
{
	AUTO_FREE char *text = must_alloc(malloc(OCI_JSON_MAX + 1));
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, text + len, OCI_JSON_MAX + 1 - len)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set_errno(err, errno, "read %s", path);
		len += (size_t)n;
		if (len > OCI_JSON_MAX)
			return err_set(err, ERR_INVALID, "%s is larger than the %d MiB that are read of it", path,
				OCI_JSON_MAX >> 20);
	}
	*ret_text = STEAL_PTR(text);
	*ret_len = len;
	return 0;
}

static int
parse_object(const char *text, size_t len, const char *path, struct json_object **ret_object, struct err *err)
{
	struct json_object *object = json_parse(text, len, err);

	if (object == NULL)
		return err_prefix(err, "%s", path);
	if (!json_object_is_type(object, json_type_object)) {
		json_object_put(object);
		return err_set(err, ERR_INVALID, "%s is not a JSON object", path);
	}
	*ret_object = object;
	return 0;
}

int
oci_file_text(int layout_fd, const char *path, char **ret_text, size_t *ret_len, struct err *err)
{
	AUTO_FD fd = -1;

	return oci_file_open(layout_fd, path, &fd, err) == 0 ? read_text(fd, path, ret_text, ret_len, err) : -1;
}

int
oci_file_json(int layout_fd, const char *path, struct json_object **ret_object, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t len;

	if (oci_file_text(layout_fd, path, &text, &len, err) != 0)
		return -1;
	return parse_object(text, len, path, ret_object, err);
}

int
oci_descriptor_read(struct json_object *object, struct oci_descriptor *ret, struct err *err)
{
	const char *digest = oci_string(object, "digest");
	struct json_object *size = NULL;
	char buf[OCI_NAME_SIZE];

	if (strncmp(digest, "sha256:", 7) != 0 || strlen(digest + 7) != IMAGE_DIGEST_SIZE - 1 ||
		strspn(digest + 7, "0123456789abcdef") != IMAGE_DIGEST_SIZE - 1)
		return err_set(err, ERR_UNSUPPORTED,
			"the digest \"%s\" is not a sha256; copy the image with skopeo",
			oci_printable(digest, buf, sizeof buf));
	memcpy(ret->digest, digest + 7, IMAGE_DIGEST_SIZE);
	ret->size = -1;
	if (json_object_object_get_ex(object, "size", &size) && json_object_is_type(size, json_type_int))
		ret->size = json_object_get_int64(size);
	return 0;
}

static void
blob_path(const struct oci_descriptor *blob, char path[OCI_NAME_SIZE])
{
	snprintf(path, OCI_NAME_SIZE, "blobs/sha256/%s", blob->digest);
}

int
oci_blob_corrupt(const struct oci_descriptor *blob, struct err *err)
{
	return err_set(err, ERR_INVALID,
		"blob sha256:%s is corrupt: its content does not have that digest; copy the image again",
		blob->digest);
}

int
oci_blob_open(int layout_fd, const struct oci_descriptor *blob, int *ret_fd, struct err *err)
{
	char path[OCI_NAME_SIZE];
	AUTO_FD fd = -1;
	struct stat st;

	blob_path(blob, path);
	if (oci_file_open(layout_fd, path, &fd, err) != 0)
		return err->code == ERR_NOT_FOUND
			? err_set(err, ERR_INVALID, "blob sha256:%s is missing in the layout; copy the image again",
				  blob->digest)
			: -1;
	if (fstat(fd, &st) != 0)
		return err_set_errno(err, errno, "%s", path);
	if (blob->size >= 0 && st.st_size != blob->size)
		return err_set(err, ERR_INVALID,
			"blob sha256:%s is corrupt: it has %lld bytes instead of %lld; copy the image again",
			blob->digest, (long long)st.st_size, (long long)blob->size);
	*ret_fd = STEAL_FD(fd);
	return 0;
}

int
oci_blob_json(int layout_fd, const struct oci_descriptor *blob, struct json_object **ret_object, struct err *err)
{
	char path[OCI_NAME_SIZE], hex[TEXT_SHA256_HEX_SIZE];
	AUTO_FREE char *text = NULL;
	AUTO_FD fd = -1;
	size_t len;

	blob_path(blob, path);
	if (oci_blob_open(layout_fd, blob, &fd, err) != 0 || read_text(fd, path, &text, &len, err) != 0)
		return -1;
	text_sha256_hex(text, len, hex);
	if (strcmp(hex, blob->digest) != 0)
		return oci_blob_corrupt(blob, err);
	return parse_object(text, len, path, ret_object, err);
}
