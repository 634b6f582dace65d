/* image_name.c - takes names of images apart; whether a client may have them was judged before. */
/* SPDX-License-Identifier: MIT */
#include "image/image_name.h"

#include "base/err.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

static const char docker[] = "docker://";

static const struct {
	const char *head;
	enum image_form form;
} forms[] = {
	{ "dir:/", IMAGE_DIR },
	{ "oci:/", IMAGE_OCI },
	{ "oci-archive:/", IMAGE_OCI_ARCHIVE },
	{ "docker-archive:/", IMAGE_DOCKER_ARCHIVE },
};

/* A tag follows the last colon; in an archive's name the first, for there it may be "name:tag". */
static bool
split_tag(struct image_name *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/:";
	char *colon = name->form == IMAGE_OCI ? strrchr(name->path, ':') : strchr(name->path, ':');
	size_t len;

	if (colon == NULL || (name->form == IMAGE_OCI && strchr(colon, '/') != NULL))
		return true;
	len = strspn(colon + 1, letters);
	if (len == 0 || colon[1 + len] != '\0' || !text_copy(name->tag, sizeof name->tag, colon + 1))
		return false;
	*colon = '\0';
	return true;
}

static int
parse_reference(const char *text, struct image_name *name, struct err *err)
{
	name->form = IMAGE_REGISTRY;
	name->fixed = strstr(text, "@sha256:") != NULL;
	if (strchr(text, '/') == NULL || text[0] == '-' || !text_copy(name->path, sizeof name->path, text))
		return err_set(err, ERR_INVALID, "image \"%.200s\" names no registry", text);
	return 0;
}

int
image_name_parse(const char *text, struct image_name *ret_name, struct err *err)
{
	memset(ret_name, 0, sizeof *ret_name);
	if (strncmp(text, docker, sizeof docker - 1) == 0)
		return parse_reference(text + sizeof docker - 1, ret_name, err);
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		size_t len = strlen(forms[i].head);

		if (strncmp(text, forms[i].head, len) != 0)
			continue;
		ret_name->form = forms[i].form;
		if (!text_copy(ret_name->path, sizeof ret_name->path, text + len - 1))
			return err_set(err, ERR_INVALID, "image path is too long");
		if (ret_name->form != IMAGE_DIR && !split_tag(ret_name))
			return err_set(
				err, ERR_INVALID, "image \"%.200s\" has no valid tag behind its colon", text);
		return 0;
	}
	return err_set(err, ERR_INVALID, "image \"%.200s\" is of no known form", text);
}

const char *
image_name_short(const char *text)
{
	static const char *const heads[] = { "docker://docker.io/library/", "docker://docker.io/", docker };

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		if (strncmp(text, heads[i], strlen(heads[i])) == 0)
			return text + strlen(heads[i]);
	}
	return text;
}

bool
image_name_stat(const struct image_name *name, struct stat *ret_st)
{
	char path[IMAGE_NAME_SIZE + 16];

	snprintf(path, sizeof path, "%s%s", name->path, name->form == IMAGE_OCI ? "/index.json" : "");
	return stat(path, ret_st) == 0;
}

bool
image_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
		a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}
