/* driver_image.c - which image a client means, and whether it may have it. */
/* SPDX-License-Identifier: MIT */
#include "backend/driver.h"

#include "base/err.h"
#include "base/text.h"
#include "conf/config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The path of "dir:/p" or "oci:/p[:tag]"; NULL for any other form. Its length without the tag is in *ret_len. */
static const char *
image_path(const char *image, size_t *ret_len)
{
	const char *path, *colon;

	if (strncmp(image, "dir:", 4) == 0) {
		path = image + 4;
		*ret_len = strlen(path);
		return path;
	}
	if (strncmp(image, "oci:", 4) != 0)
		return NULL;
	path = image + 4;
	colon = strrchr(path, ':');
	*ret_len = colon != NULL && strchr(colon, '/') == NULL ? (size_t)(colon - path) : strlen(path);
	return path;
}

static bool
has_dotdot(const char *path)
{
	while (*path != '\0') {
		size_t part = strcspn(path, "/");

		if (part == 2 && memcmp(path, "..", 2) == 0)
			return true;
		path += part + (path[part] == '/');
	}
	return false;
}

/* A colon behind the last slash begins a tag, whatever follows it. */
static bool
has_good_tag(const char *tag)
{
	size_t len = strspn(tag, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

	return len > 0 && len <= 128 && tag[len] == '\0';
}

static bool
is_below(const char *path, const char *directory)
{
	size_t len = strlen(directory);

	while (len > 1 && directory[len - 1] == '/')
		len--;
	if (len == 1)
		return true;
	return strncmp(path, directory, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

/*
 * Both as written and with links resolved, so that neither a link inside an allowed directory nor an allowed
 * directory that is a link itself leads elsewhere. What does not exist is judged as written: the spawner says so.
 * What can't be looked at is not judged at all: the spawner, who is root, would follow a link that is hidden here.
 */
static int
check_allowed(const struct config *config, const char *image, const char *path, struct err *err)
{
	char real[PATH_MAX], root[PATH_MAX];
	const char *resolved = realpath(path, real);

	if (resolved == NULL && errno != ENOENT && errno != ENOTDIR)
		return err_set(err, ERR_DENIED,
			"image \"%s\" can't be looked at (%s): every directory on its path must be searchable by "
			"the "
			"service user",
			image, strerror(errno));
	for (size_t i = 0; i < config->local_image_paths.count; i++) {
		const char *item = config->local_image_paths.items[i];

		if (item[0] != '/' || !is_below(path, item))
			continue;
		if (resolved == NULL || is_below(resolved, realpath(item, root) != NULL ? root : item))
			return 0;
	}
	return err_set(err, ERR_DENIED, "image \"%s\" does not lie below a directory that local_image_paths allows",
		image);
}

int
driver_image_resolve(const struct config *config, const char *image, char *ret_image, size_t size, struct err *err)
{
	const char *wanted = image, *path;
	char plain[PATH_MAX];
	size_t len;

	if (strcmp(image, "default") == 0) {
		if (config->default_image[0] == '\0')
			return err_set(err, ERR_INVALID,
				"this server has no default image: name one, or set default_image in its "
				"configuration");
		wanted = config->default_image;
	}
	path = image_path(wanted, &len);
	if (path == NULL)
		return err_set(err, ERR_INVALID,
			"image \"%s\" is of no known form; this version takes \"default\", dir:/absolute/path and "
			"oci:/absolute/path[:tag], no registry names",
			image);
	if (len < sizeof plain) {
		memcpy(plain, path, len);
		plain[len] = '\0';
	}
	if (path[0] != '/' || len >= sizeof plain || has_dotdot(plain))
		return err_set(
			err, ERR_INVALID, "the path of image \"%s\" must be absolute and free of \"..\"", image);
	if (path[len] == ':' && !has_good_tag(path + len + 1))
		return err_set(err, ERR_INVALID,
			"the tag of image \"%s\" must be 1 to 128 letters, digits, \".\", \"_\" or \"-\"", image);
	if (wanted == image && strcmp(image, config->default_image) != 0 &&
		check_allowed(config, image, plain, err) != 0)
		return -1;
	if (!text_copy(ret_image, size, wanted))
		return err_set(err, ERR_INVALID, "image \"%s\" is too long", image);
	return 0;
}
