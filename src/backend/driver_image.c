/* driver_image.c - which image a client means, and whether it may have it. */
/* SPDX-License-Identifier: MIT */
#include "backend/driver.h"

#include "base/err.h"
#include "base/text.h"
#include "conf/config.h"

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
has_dotdot(const char *path, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t part = strcspn(path + at, "/");

		if (part == 2 && at + 2 <= len && memcmp(path + at, "..", 2) == 0)
			return true;
		at += part + 1;
	}
	return false;
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
 */
static bool
is_allowed(const struct config *config, const char *path)
{
	char real[PATH_MAX], root[PATH_MAX];
	const char *resolved = realpath(path, real) != NULL ? real : path;

	for (size_t i = 0; i < config->local_image_paths.count; i++) {
		const char *item = config->local_image_paths.items[i];

		if (!is_below(path, item))
			continue;
		if (resolved == path || is_below(resolved, realpath(item, root) != NULL ? root : item))
			return true;
	}
	return false;
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
	if (path[0] != '/' || has_dotdot(path, len) || len >= sizeof plain)
		return err_set(
			err, ERR_INVALID, "the path of image \"%s\" must be absolute and free of \"..\"", image);
	memcpy(plain, path, len);
	plain[len] = '\0';
	if (wanted == image && strcmp(image, config->default_image) != 0 && !is_allowed(config, plain))
		return err_set(err, ERR_DENIED,
			"image \"%s\" does not lie below a directory that local_image_paths allows", image);
	if (!text_copy(ret_image, size, wanted))
		return err_set(err, ERR_INVALID, "image \"%s\" is too long", image);
	return 0;
}
