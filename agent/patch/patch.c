/* patch.c - read, keep, apply; on failure put back, and try from the top of the repository. */
/* SPDX-License-Identifier: MIT */
#include "agent/patch/patch.h"

#include "agent/patch/beyond.h"
#include "agent/patch/guard.h"
#include "agent/patch/names.h"
#include "agent/patch/tool.h"
#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATCH_FAILED = 1, PATCH_STOPPED = 124, PATCH_NO_TOOL = 127, PATCH_INVALID = 128, PATCH_PIECE = 64 << 10 };

struct patch {
	struct patch_tool tool;
	struct patch_names names;
	int fd;
};

struct text {
	char *at; /* NULL: empty */
	size_t len;
};

static int
text_map(int fd, struct text *ret_text)
{
	struct text text = { .at = NULL };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	text.len = (size_t)st.st_size;
	if (text.len > 0)
		text.at = mmap(NULL, text.len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text.at == MAP_FAILED)
		return -1;
	*ret_text = text;
	return 0;
}

static void
text_unmap(struct text *text)
{
	if (text->at != NULL)
		munmap(text->at, text->len);
	*text = (struct text){ .at = NULL };
}

/* All of stdin in a file of our own, its last line ended: a patch without that has lost only that. */
static int
patch_read(struct patch *patch)
{
	AUTO_FREE char *piece = alloc_bytes(PATCH_PIECE);
	char last = '\n';
	struct text text;
	ssize_t n;

	patch->fd = memfd_create("patch", MFD_CLOEXEC);
	if (patch->fd < 0)
		return -1;
	while ((n = read(0, piece, PATCH_PIECE)) > 0) {
		last = piece[n - 1];
		if (file_write_all(patch->fd, piece, (size_t)n) < 0)
			return -1;
	}
	if (n < 0 || (last != '\n' && file_write_all(patch->fd, "\n", 1) < 0) || text_map(patch->fd, &text) < 0)
		return -1;
	patch_names_read(text.at, text.len, &patch->names);
	text_unmap(&text);
	return 0;
}

static void
patch_tell(int from, int to)
{
	AUTO_FREE char *piece = alloc_bytes(PATCH_PIECE);
	ssize_t n;

	while ((n = read(from, piece, PATCH_PIECE)) > 0)
		if (file_write_all(to, piece, (size_t)n) < 0)
			return;
}

/* A file that could not be taken away is a warning to git. True: told. */
static bool
patch_tell_kept_file(int err_fd)
{
	static const char warning[] = "warning: unable to unlink ";
	struct text text;
	bool found = false;

	if (text_map(err_fd, &text) < 0)
		return false;
	for (size_t at = 0; at < text.len && !found;) {
		const char *line = text.at + at, *newline = memchr(line, '\n', text.len - at);
		size_t len = newline != NULL ? (size_t)(newline - line) : text.len - at;

		found = len >= sizeof warning && memcmp(line, warning, sizeof warning - 1) == 0;
		if (found)
			fprintf(stderr, "error: cannot remove %.*s\n", (int)(len - sizeof warning + 1),
				line + sizeof warning - 1);
		at += len + 1;
	}
	text_unmap(&text);
	return found;
}

static bool
patch_tell_directory(const struct guard *guard, int out_fd)
{
	struct patch_names targets;
	const char *directory;
	struct text text;

	if (text_map(out_fd, &text) < 0)
		return false;
	patch_names_read_numstat(text.at, text.len, &targets);
	text_unmap(&text);
	directory = guard_find_directory(guard, &targets);
	if (directory != NULL)
		fprintf(stderr, "error: %s: is a directory or a submodule\n", directory);
	patch_names_fini(&targets);
	return directory != NULL;
}

/* The tool says that all is well: what it has left undone all the same is told. True: nothing. */
static bool
patch_is_done(const struct patch *patch, const struct guard *guard, const struct patch_run *run)
{
	const char *left_out = guard_find_left_out(guard);

	if (left_out != NULL) {
		fprintf(stderr, "error: cannot make the directories of %s: %s\n", left_out, strerror(errno));
		return false;
	}
	return !patch->tool.is_git ||
		(!patch_tell_directory(guard, run->out_fd) && !patch_tell_kept_file(run->err_fd));
}

/* What the tool said is in *ret_run. */
static int
patch_apply_here(struct patch *patch, struct patch_run *ret_run)
{
	struct guard guard;
	int code;

	*ret_run = (struct patch_run){ .patch_fd = patch->fd, .out_fd = -1, .err_fd = -1 };
	if (guard_take(&guard, &patch->names) < 0) {
		fprintf(stderr, "error: cannot keep the files as they are: %s\n", strerror(errno));
		return PATCH_FAILED;
	}
	ret_run->temp_dir = guard.dir;
	code = patch_tool_run(&patch->tool, ret_run);
	if (code == 0 && !patch_is_done(patch, &guard, ret_run))
		code = PATCH_FAILED;
	if (code == 0 && !patch_is_asked())
		guard_release(&guard);
	else
		guard_roll_back(&guard);
	ret_run->temp_dir = NULL;
	return patch_is_asked() ? PATCH_STOPPED : code;
}

/* The top of the repository that the working directory lies in, when that is another directory; else NULL. */
static char *
patch_find_top(void)
{
	AUTO_FREE char *path = getcwd(NULL, 0);
	struct stat st;
	char *slash;

	if (path == NULL || lstat(".git", &st) == 0)
		return NULL;
	while ((slash = strrchr(path, '/')) != NULL) {
		AUTO_FREE char *git = NULL;

		*slash = '\0';
		git = alloc_format("%s/.git", path);
		if (lstat(git, &st) == 0)
			return *path == '\0' ? alloc_string("/") : STEAL_PTR(path);
	}
	return NULL;
}

static void
patch_run_close(struct patch_run *run)
{
	close(run->out_fd);
	close(run->err_fd);
}

static void
patch_run_tell(const struct patch_tool *tool, struct patch_run *run)
{
	if (!tool->is_git) /* whose list of files is for us */
		patch_tell(run->out_fd, 1);
	patch_tell(run->err_fd, 2);
}

/* It does not fit here: perhaps at the top of the repository, from where `git diff` counts. */
static int
patch_apply(struct patch *patch)
{
	struct patch_run here, there;
	int code = patch_apply_here(patch, &here), again;
	AUTO_FREE char *top = code != 0 && code != PATCH_STOPPED ? patch_find_top() : NULL;

	if (top == NULL || chdir(top) < 0) {
		patch_run_tell(&patch->tool, &here);
		patch_run_close(&here);
		return code;
	}
	again = patch_apply_here(patch, &there);
	if (again != 0) {
		patch_run_tell(&patch->tool, &here);
		fprintf(stderr, "and from the top of the repository, %s:\n", top);
	}
	patch_run_tell(&patch->tool, &there);
	patch_run_close(&here);
	patch_run_close(&there);
	return again == 0 || again == PATCH_STOPPED ? again : code;
}

/* Only git knows all that a patch can ask for. True: told. */
static bool
patch_tell_beyond(const struct patch *patch)
{
	struct text text;
	size_t line = 0;

	if (patch->tool.is_git || text_map(patch->fd, &text) < 0)
		return false;
	if (text.at != NULL)
		line = patch_find_beyond(text.at, text.len, patch->tool.is_gnu);
	text_unmap(&text);
	if (line > 0)
		fprintf(stderr, "error: only git can do what is asked at line %zu\n", line);
	return line > 0;
}

int
patch_main(void)
{
	struct patch patch = { .fd = -1 };
	int code;

	patch_block_signals();
	setvbuf(stderr, NULL, _IONBF, 0);
	if (patch_read(&patch) < 0) {
		fprintf(stderr, "error: cannot read the patch: %s\n", strerror(errno));
		return PATCH_FAILED;
	}
	if (!patch_tool_find(&patch.tool)) {
		fputs("git not found: the image has neither git nor patch\n", stderr);
		return PATCH_NO_TOOL;
	}
	if (patch.names.count == 0 && !patch.tool.is_git) {
		fputs("error: No valid patches in input\n", stderr);
		return PATCH_INVALID;
	}
	code = patch_tell_beyond(&patch) ? PATCH_FAILED : patch_apply(&patch);
	patch_names_fini(&patch.names);
	free(patch.tool.path);
	return code;
}
