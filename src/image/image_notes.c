/* image_notes.c - one small file per name. */
/* SPDX-License-Identifier: MIT */
#include "image/image_notes.h"

#include "base/err.h"
#include "base/file.h"
#include "base/text.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { PATH_ROOM = 96, NOTE_MAX = IMAGE_DIGEST_SIZE + IMAGE_NAME_SIZE + 2 };

static void
note_path(const char *name, char path[PATH_ROOM])
{
	char hex[TEXT_SHA256_HEX_SIZE];

	text_sha256_hex(name, strlen(name), hex);
	snprintf(path, PATH_ROOM, "names/%s", hex);
}

int
image_note_write(int images_fd, const char *name, const char *digest, struct err *err)
{
	char path[PATH_ROOM], text[NOTE_MAX];
	int len = snprintf(text, sizeof text, "%.64s\n%.*s\n", digest, IMAGE_NAME_SIZE - 1, name);

	note_path(name, path);
	return file_write_atomic_at(images_fd, path, 0600, text, (size_t)len, true, err);
}

bool
image_note_digest(int images_fd, const char *path, char ret_digest[IMAGE_DIGEST_SIZE])
{
	AUTO_FREE char *text = NULL;
	struct err err;
	size_t len;

	if (file_read_at(images_fd, path, NOTE_MAX, &text, &len, &err) != 0 || len < IMAGE_DIGEST_SIZE ||
		strspn(text, "0123456789abcdef") != IMAGE_DIGEST_SIZE - 1)
		return false;
	memcpy(ret_digest, text, IMAGE_DIGEST_SIZE - 1);
	ret_digest[IMAGE_DIGEST_SIZE - 1] = '\0';
	return true;
}

bool
image_note_read(int images_fd, const char *name, char ret_digest[IMAGE_DIGEST_SIZE], int64_t *ret_age_s)
{
	char path[PATH_ROOM];
	struct stat st;

	note_path(name, path);
	if (fstatat(images_fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		!image_note_digest(images_fd, path, ret_digest))
		return false;
	*ret_age_s = time(NULL) - st.st_mtim.tv_sec;
	if (*ret_age_s < 0)
		*ret_age_s = INT64_MAX;
	return true;
}

bool
image_is_here(int images_fd, const char *digest)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof path, "manifests/%.64s.json", digest);
	return faccessat(images_fd, path, F_OK, 0) == 0;
}
