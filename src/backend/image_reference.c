/* image_reference.c - the grammar of references, as registries have it. */
/* SPDX-License-Identifier: MIT */
#include "backend/image_reference.h"

#include "base/err.h"
#include "base/text.h"
#include "conf/config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { TAG_MAX = 128, DIGEST_HEX = 64 };

static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789";
static const char tag_letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
static const char digest_head[] = "sha256:", hub[] = "docker.io";

struct parts {
	char host[IMAGE_REFERENCE_SIZE], path[IMAGE_REFERENCE_SIZE];
	const char *tag; /* behind its colon, or NULL */
	const char *digest; /* behind its @, or NULL */
};

bool
image_tag_is_valid(const char *tag)
{
	size_t len = strspn(tag, tag_letters);

	return len > 0 && len <= TAG_MAX && tag[len] == '\0' && tag[0] != '.' && tag[0] != '-';
}

static bool
is_digest(const char *text)
{
	return strncmp(text, digest_head, sizeof digest_head - 1) == 0 &&
		strlen(text) == sizeof digest_head - 1 + DIGEST_HEX &&
		strspn(text + sizeof digest_head - 1, "0123456789abcdef") == DIGEST_HEX;
}

/* "name", "name.domain", "10.0.0.1", "[::1]", each with a port or without. */
static bool
is_host(const char *host)
{
	size_t len = host[0] == '['
		? strcspn(host, "]") + 1
		: strspn(host, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-");
	size_t digits;

	if (len == 0 || strchr(".-", host[0]) != NULL || len > strlen(host))
		return false;
	if (host[0] == '[' && strspn(host + 1, "0123456789abcdefABCDEF:") + 2 != len)
		return false;
	if (host[len] == '\0')
		return true;
	digits = strspn(host + len + 1, "0123456789");
	return host[len] == ':' && digits > 0 && digits <= 5 && host[len + 1 + digits] == '\0';
}

/* Letters and digits in groups, between them one ".", one or two "_", or any number of "-". */
static bool
is_component(const char *text, size_t len)
{
	size_t at = 0;

	for (;;) {
		size_t word = strspn(text + at, lower), gap;

		if (word == 0 || at + word > len)
			return false;
		at += word;
		if (at == len)
			return true;
		gap = strspn(text + at, text[at] == '-' ? "-" : text[at] == '_' ? "_" : ".");
		if (gap == 0 || (text[at] == '.' && gap > 1) || (text[at] == '_' && gap > 2))
			return false;
		at += gap;
	}
}

static bool
is_path(const char *path)
{
	for (;;) {
		size_t len = strcspn(path, "/");

		if (!is_component(path, len))
			return false;
		if (path[len] == '\0')
			return true;
		path += len + 1;
	}
}

/* The first part names a host when it could be no part of a path: it has a dot, a port, or is localhost. */
static bool
names_host(const char *name, size_t len)
{
	return memchr(name, '.', len) != NULL || memchr(name, ':', len) != NULL || name[0] == '[' ||
		(len == strlen("localhost") && memcmp(name, "localhost", len) == 0);
}

/* text is changed: cut at tag and digest, which stay parts of it. */
static bool
split(const struct config *config, char *text, struct parts *parts)
{
	char *at = strchr(text, '@'), *colon, *slash;

	memset(parts, 0, sizeof *parts);
	if (at != NULL) {
		*at = '\0';
		parts->digest = at + 1;
	}
	slash = strchr(text, '/');
	colon = strrchr(text, ':');
	if (colon != NULL && strchr(colon, '/') == NULL) {
		*colon = '\0';
		parts->tag = colon + 1;
	}
	if (slash != NULL && names_host(text, (size_t)(slash - text))) {
		*slash = '\0';
		snprintf(parts->host, sizeof parts->host, "%s", text);
		text = slash + 1;
	} else {
		snprintf(parts->host, sizeof parts->host, "%s", config->image_registry_default);
	}
	if (strcmp(parts->host, "index.docker.io") == 0)
		snprintf(parts->host, sizeof parts->host, "%s", hub);
	snprintf(parts->path, sizeof parts->path, "%s%.*s",
		strcmp(parts->host, hub) == 0 && strchr(text, '/') == NULL ? "library/" : "",
		IMAGE_REFERENCE_SIZE - 16, text);
	return is_host(parts->host) && is_path(parts->path) &&
		(parts->tag == NULL || image_tag_is_valid(parts->tag)) &&
		(parts->digest == NULL || is_digest(parts->digest));
}

static bool
is_allowed(const struct config *config, const struct parts *parts)
{
	char whole[2 * IMAGE_REFERENCE_SIZE];

	snprintf(whole, sizeof whole, "%s/%s", parts->host, parts->path);
	for (size_t i = 0; i < config->image_registries.count; i++) {
		const char *item = config->image_registries.items[i];
		size_t len = strlen(item);

		if (strcmp(item, "*") == 0)
			return true;
		while (len > 0 && item[len - 1] == '/')
			len--;
		if (len > 0 && strncmp(whole, item, len) == 0 && (whole[len] == '/' || whole[len] == '\0'))
			return true;
	}
	return false;
}

#define FORMS       "\"default\", [registry/]name[:tag] and [registry/]name@sha256:digest (in small letters)"
#define LOCAL_FORMS "dir:/path, oci:/path[:tag], oci-archive:/file[:tag] and docker-archive:/file[:name:tag]"

/* text: the name, which the parts stay parts of. */
static int
judge(const struct config *config, const char *image, bool trusted, char text[IMAGE_REFERENCE_SIZE],
	struct parts *ret_parts, struct err *err)
{
	if (!split(config, text, ret_parts))
		return err_set(err, ERR_INVALID,
			"image \"%s\" is no name of an image: this server takes " FORMS "%s", image,
			config_is_kubernetes(config) ? "" : ", also " LOCAL_FORMS);
	if (!trusted && !is_allowed(config, ret_parts))
		return err_set(err, ERR_DENIED, "image \"%s\" is at %s/%s, which image_registries does not allow",
			image, ret_parts->host, ret_parts->path);
	return 0;
}

int
image_reference_for_nodes(
	const struct config *config, const char *image, bool trusted, char *ret_image, size_t size, struct err *err)
{
	char text[IMAGE_REFERENCE_SIZE];
	struct parts parts;

	if (!text_copy(text, sizeof text, image) || !text_copy(ret_image, size, image))
		return err_set(err, ERR_INVALID, "image \"%.64s...\" is too long", image);
	return judge(config, image, trusted, text, &parts, err);
}

int
image_reference_resolve(
	const struct config *config, const char *image, bool trusted, char *ret_image, size_t size, struct err *err)
{
	const char *name = strncmp(image, "docker://", 9) == 0 ? image + 9 : image;
	char text[IMAGE_REFERENCE_SIZE];
	struct parts parts;
	int len;

	if (!text_copy(text, sizeof text, name))
		return err_set(err, ERR_INVALID, "image \"%.64s...\" is too long", image);
	if (judge(config, image, trusted, text, &parts, err) != 0)
		return -1;
	len = snprintf(ret_image, size, "docker://%s/%s%s%s", parts.host, parts.path,
		parts.digest != NULL ? "@" : ":",
		parts.digest != NULL        ? parts.digest
			: parts.tag != NULL ? parts.tag
					    : "latest");
	return (size_t)len < size ? 0 : err_set(err, ERR_INVALID, "image \"%.64s...\" is too long", image);
}
