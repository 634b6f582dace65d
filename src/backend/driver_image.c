/* driver_image.c - which image a client means, and whether it may have it. */
/* SPDX-License-Identifier: MIT */
#include "backend/driver.h"

#include "backend/image_reference.h"
#include "base/err.h"
#include "base/text.h"
#include "conf/config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Images that are files here; in an archive's name the tag begins at the first colon, for it may be "name:tag". */
static const struct form {
	const char *head;
	bool takes_tag, is_archive;
} forms[] = {
	{ "dir:", false, false },
	{ "oci:", true, false },
	{ "oci-archive:", true, true },
	{ "docker-archive:", true, true },
};

/* The path behind "dir:" and its like, *ret_len without the tag; NULL: a name in a registry. */
static const char *
image_path(const char *image, size_t *ret_len, const struct form **ret_form)
{
	const char *path, *colon;

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		if (strncmp(image, forms[i].head, strlen(forms[i].head)) != 0)
			continue;
		*ret_form = &forms[i];
		path = image + strlen(forms[i].head);
		colon = forms[i].is_archive ? strchr(path, ':') : strrchr(path, ':');
		*ret_len = strlen(path);
		if (forms[i].takes_tag && colon != NULL && (forms[i].is_archive || strchr(colon, '/') == NULL))
			*ret_len = (size_t)(colon - path);
		return path;
	}
	return NULL;
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

/* What stands behind the colon: a tag; of an archive also the whole name that an image has in there. */
static bool
is_good_tag(const char *tag, const struct form *form)
{
	size_t len = strspn(tag, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/:");

	if (!form->is_archive)
		return image_tag_is_valid(tag);
	return len > 0 && len < IMAGE_REFERENCE_SIZE && tag[len] == '\0';
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

static int
check_file(const struct config *config, const char *image, bool trusted, struct err *err)
{
	const struct form *form = NULL;
	char plain[PATH_MAX];
	size_t len = 0;
	const char *path = image_path(image, &len, &form);

	if (len < sizeof plain) {
		memcpy(plain, path, len);
		plain[len] = '\0';
	}
	if (path[0] != '/' || len >= sizeof plain || has_dotdot(plain))
		return err_set(
			err, ERR_INVALID, "the path of image \"%s\" must be absolute and free of \"..\"", image);
	if (path[len] == ':' && !is_good_tag(path + len + 1, form))
		return err_set(err, ERR_INVALID,
			"the tag of image \"%s\" must be 1 to 128 letters, digits, \".\", \"_\" or \"-\"", image);
	return trusted ? 0 : check_allowed(config, image, plain, err);
}

/* What the operator has named, everybody may have. */
static bool
is_operators(const struct config *config, const char *image)
{
	for (size_t i = 0; i < config->image_prefetch.count; i++) {
		if (strcmp(config->image_prefetch.items[i], image) == 0)
			return true;
	}
	return strcmp(image, config->default_image) == 0;
}

int
driver_image_resolve(const struct config *config, const char *image, char *ret_image, size_t size, struct err *err)
{
	bool trusted = is_operators(config, image);
	const struct form *form;
	const char *wanted = image;
	size_t len;

	if (strcmp(image, "default") == 0) {
		if (config->default_image[0] == '\0')
			return err_set(err, ERR_INVALID,
				"this server has no default image: name one, or set default_image in its "
				"configuration");
		wanted = config->default_image;
		trusted = true;
	}
	if (config_is_kubernetes(config))
		return image_reference_for_nodes(config, wanted, trusted, ret_image, size, err);
	if (image_path(wanted, &len, &form) == NULL)
		return image_reference_resolve(config, wanted, trusted, ret_image, size, err);
	if (check_file(config, wanted, trusted, err) != 0)
		return -1;
	if (!text_copy(ret_image, size, wanted))
		return err_set(err, ERR_INVALID, "image \"%s\" is too long", image);
	return 0;
}
