/* layer_frame.c - finds the directories that are implied, asks the layers for each from the top down, as overlayfs does. */
/* SPDX-License-Identifier: MIT */
#include "image/layer_frame.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "image/image.h"
#include "image/oci_layout.h"
#include "image/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

/*
 * What a search may spend, in bytes of paths, an opened directory counting as OPEN_COST: seconds, and as much memory.
 * Layers can be made that imply millions of directories below each other; an image of such goes without a frame.
 */
enum { BUDGET = 64 << 20, OPEN_COST = 64 };

struct frame_dir {
	char *path; /* owned */
	struct stat st;
};

struct paths {
	char **list;
	size_t count, room;
};

struct search {
	int *layers; /* lowest first */
	size_t layer_count;
	struct layer_frame *frame;
	size_t room;
	void *framed; /* tsearch(3) tree of the frame's paths, which belong to the frame */
	int64_t budget;
	int error; /* errno of what went wrong first */
};

/* What a layer has at a path. */
enum presence { ABSENT, COVERED, IMPLIED, EXPLICIT };

/* What the layers have there together. */
struct sight {
	bool is_there;
	bool is_named; /* by a layer; st is that one's */
	bool differs; /* from what would be seen, which is only implied */
	size_t layers; /* that were found to have it, down to the first that names it */
	struct stat st;
};

static bool
spend(struct search *search, size_t bytes)
{
	search->budget -= (int64_t)bytes;
	if (search->budget < 0 && search->error == 0)
		search->error = E2BIG;
	return search->error == 0;
}

static void
paths_add(struct paths *paths, char *path)
{
	if (paths->count == paths->room) {
		paths->room = paths->room * 2 + 64;
		paths->list = alloc_resize(paths->list, paths->room * sizeof *paths->list);
	}
	paths->list[paths->count++] = path;
}

static void
paths_free(struct paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->list[i]);
	free(paths->list);
}

static int
open_dir(int layer, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };

	return (int)syscall(SYS_openat2, layer, path[0] != '\0' ? path : ".", &how, sizeof how);
}

static bool
is_marked(int fd, const char *attribute)
{
	char value;

	return fgetxattr(fd, attribute, &value, 1) == 1 && value == 'y';
}

/* --- what is seen at a path --- */

static enum presence
presence_of(struct search *search, int fd, struct stat *ret_st)
{
	if (fstat(fd, ret_st) != 0) {
		search->error = errno;
		return COVERED;
	}
	return is_marked(fd, UNPACK_IMPLIED_XATTR) ? IMPLIED : EXPLICIT;
}

/* Not to be opened: nothing of that name, or what is no directory. */
static enum presence
what_else(struct search *search)
{
	if (errno == ENOENT)
		return ABSENT;
	if (errno != ENOTDIR && errno != ELOOP && search->error == 0)
		search->error = errno;
	return COVERED;
}

/*
 * *ret_ends: whatever layers below have there is not seen. A directory that is implied and opaque itself hides only what
 * is in the ones below.
 */
static enum presence
look_in_layer(struct search *search, int layer, const char *path, struct stat *ret_st, bool *ret_ends)
{
	AUTO_FREE char *parts = alloc_string(path);
	char *save = NULL, *part = strtok_r(parts, "/", &save);
	AUTO_FD at = -1;

	*ret_ends = false;
	while (part != NULL) {
		int fd = openat(at >= 0 ? at : layer, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		enum presence presence;

		if (fd < 0)
			return what_else(search);
		cleanup_fd(&at);
		at = fd;
		part = strtok_r(NULL, "/", &save);
		presence = part == NULL ? presence_of(search, at, ret_st) : ABSENT;
		if (presence != IMPLIED && is_marked(at, "trusted.overlay.opaque"))
			*ret_ends = true;
		if (part == NULL || !spend(search, OPEN_COST))
			return presence;
	}
	return ABSENT;
}

static bool
is_alike(const struct stat *a, const struct stat *b)
{
	return a->st_uid == b->st_uid && a->st_gid == b->st_gid && a->st_mode == b->st_mode;
}

static struct sight
look(struct search *search, const char *path)
{
	struct sight sight = { .is_there = false };
	bool ends = false;

	for (size_t i = search->layer_count; i-- > 0 && !ends && spend(search, OPEN_COST);) {
		struct stat st;
		enum presence presence = look_in_layer(search, search->layers[i], path, &st, &ends);

		if (presence == COVERED)
			break;
		if (presence == ABSENT)
			continue;
		sight.layers++;
		sight.is_named = presence == EXPLICIT;
		sight.differs = sight.is_there && !is_alike(&sight.st, &st);
		if (sight.is_named || !sight.is_there)
			sight.st = st;
		sight.is_there = true;
		if (sight.is_named)
			break;
	}
	return sight;
}

/* --- what the frame needs --- */

static int
compare_paths(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* False: it has that one already, or there is no room for more. */
static bool
frame_add(struct search *search, const char *path, const struct stat *st)
{
	struct layer_frame *frame = search->frame;
	char *owned;

	if (tfind(path, &search->framed, compare_paths) != NULL || !spend(search, strlen(path) + OPEN_COST))
		return false;
	if (frame->count == search->room) {
		search->room = search->room * 2 + 16;
		frame->dirs = alloc_resize(frame->dirs, search->room * sizeof *frame->dirs);
	}
	owned = alloc_string(path);
	(void)must_alloc(tsearch(owned, &search->framed, compare_paths));
	frame->dirs[frame->count++] = (struct frame_dir){ owned, *st };
	return true;
}

/* Up to one that is framed, as then all above it are. */
static void
frame_add_parents(struct search *search, const char *path)
{
	AUTO_FREE char *part = alloc_string(path);
	bool is_new = true;

	for (char *slash; is_new && (slash = strrchr(part, '/')) != NULL;) {
		struct sight sight;

		*slash = '\0';
		sight = look(search, part);
		is_new = frame_add(search, part, &sight.st);
	}
}

/* False: no other layer shows anything at this path, so none does below it. */
static bool
consider(struct search *search, const char *path)
{
	struct sight sight = look(search, path);

	if (sight.is_named && sight.differs && frame_add(search, path, &sight.st))
		frame_add_parents(search, path);
	return sight.is_named || sight.layers > 1;
}

static int
add_below(struct search *search, DIR *directory, const char *path, struct paths *todo)
{
	const struct dirent *entry;
	struct stat st;

	while (errno = 0, (entry = readdir(directory)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			(entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
			continue;
		if (fstatat(dirfd(directory), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			return -1;
		if (S_ISDIR(st.st_mode) && spend(search, strlen(path) + strlen(entry->d_name) + OPEN_COST))
			paths_add(todo, alloc_format("%s%s%s", path, path[0] != '\0' ? "/" : "", entry->d_name));
	}
	return errno != 0 ? -1 : 0;
}

static int
visit(struct search *search, int layer, const char *path, struct paths *todo)
{
	AUTO_FD fd = open_dir(layer, path);
	AUTO_DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;

	if (directory == NULL)
		return errno == ENAMETOOLONG
			? 0
			: -1; /* only links of the layer lead there, and no path of the image */
	fd = -1; /* the list's from now on */
	if (path[0] != '\0' && is_marked(dirfd(directory), UNPACK_IMPLIED_XATTR) && !consider(search, path))
		return 0;
	return add_below(search, directory, path, todo);
}

/* One directory is open at a time, however deep they are nested. */
static int
search_layer(struct search *search, int layer)
{
	struct paths todo = { 0 };
	int rc = 0;

	paths_add(&todo, alloc_string(""));
	while (rc == 0 && search->error == 0 && todo.count > 0) {
		AUTO_FREE char *path = todo.list[--todo.count];

		rc = visit(search, layer, path, &todo);
	}
	paths_free(&todo);
	return rc;
}

static int
compare_dirs(const void *a, const void *b)
{
	return strcmp(((const struct frame_dir *)a)->path, ((const struct frame_dir *)b)->path);
}

/* Hashed twice, so that no blob has that name. */
static void
name_it(struct layer_frame *frame)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	FILE *out = must_alloc(open_memstream(&text, &len));
	char hex[TEXT_SHA256_HEX_SIZE];

	for (size_t i = 0; i < frame->count; i++) {
		const struct stat *st = &frame->dirs[i].st;

		fprintf(out, "%o %u %u %lld.%09ld %s", st->st_mode & 07777, st->st_uid, st->st_gid,
			(long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, frame->dirs[i].path);
		fputc('\0', out);
	}
	if (fclose(out) != 0)
		abort(); /* as without memory */
	text_sha256_hex(text, len, hex);
	text_sha256_hex(hex, strlen(hex), frame->layer.digest);
	frame->layer.size = -1;
}

static int
search_layers(struct search *search, int images_fd, const struct oci_image *image)
{
	for (size_t i = 0; i < image->layer_count; i++) {
		char path[OCI_NAME_SIZE];

		snprintf(path, sizeof path, "layers/%.64s", image->layers[i].digest);
		search->layers[i] = openat(images_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (search->layers[i] < 0)
			return -1;
		search->layer_count++;
	}
	for (size_t i = 1; i < search->layer_count && search->error == 0; i++) {
		if (is_marked(search->layers[i], UNPACK_IMPLIED_XATTR) &&
			search_layer(search, search->layers[i]) != 0)
			return -1;
	}
	errno = search->error;
	return search->error == 0 ? 0 : -1;
}

static void
keep_node(void *node)
{
	(void)node; /* paths are the frame's */
}

int
layer_frame_find(int images_fd, const struct oci_image *image, struct layer_frame *ret, struct err *err)
{
	struct search search = {
		.layers = alloc_zero(image->layer_count + 1, sizeof(int)), .frame = ret, .budget = BUDGET
	};
	int rc, error;

	*ret = (struct layer_frame){ .count = 0 };
	rc = search_layers(&search, images_fd, image);
	error = errno;
	for (size_t i = 0; i < search.layer_count; i++)
		close(search.layers[i]);
	free(search.layers);
	tdestroy(search.framed, keep_node);
	if (rc == 0 && ret->count > 0 && image->layer_count >= IMAGE_LAYERS_MAX)
		error = E2BIG;
	else if (rc == 0) {
		if (ret->count > 0)
			qsort(ret->dirs, ret->count, sizeof *ret->dirs, compare_dirs);
		name_it(ret);
		return 0;
	}
	layer_frame_free(ret);
	if (error != E2BIG)
		return err_set_errno(err, error, "look for directories that layers imply");
	log_warn("there is no room for directories that layers imply: in image sha256:%.12s they are root's",
		image->digest);
	return 0;
}

void
layer_frame_free(struct layer_frame *frame)
{
	for (size_t i = 0; i < frame->count; i++)
		free(frame->dirs[i].path);
	free(frame->dirs);
	*frame = (struct layer_frame){ .count = 0 };
}

static int
write_dir(int dir_fd, const struct frame_dir *dir)
{
	AUTO_FD fd = -1;

	if (mkdirat(dir_fd, dir->path, 0700) != 0)
		return -1;
	fd = open_dir(dir_fd, dir->path);
	if (fd < 0 || fchown(fd, dir->st.st_uid, dir->st.st_gid) != 0)
		return -1;
	return fchmod(fd, dir->st.st_mode & 07777);
}

int
layer_frame_write(const struct layer_frame *frame, int dir_fd, struct err *err)
{
	for (size_t i = 0; i < frame->count; i++) {
		if (write_dir(dir_fd, &frame->dirs[i]) != 0)
			return err_set_errno(err, errno, "directories that layers imply");
	}
	for (size_t i = frame->count; i-- > 0;) {
		const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, frame->dirs[i].st.st_mtim };

		(void)utimensat(dir_fd, frame->dirs[i].path, times, AT_SYMLINK_NOFOLLOW);
	}
	return 0;
}
