/* unpack_tar.c - reads a tar from a pipe, in the cage. */
/* SPDX-License-Identifier: MIT */
#include "image/unpack.h"

#include "image/layer_tree.h"
#include "image/oci_blob.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { CHUNK = 256 << 10 };

struct source {
	int fd;
	char *chunk;
};

static la_ssize_t
on_read(struct archive *archive, void *arg, const void **ret_data)
{
	struct source *source = arg;
	ssize_t n;

	do
		n = read(source->fd, source->chunk, CHUNK);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		archive_set_error(archive, errno, "read");
	*ret_data = source->chunk;
	return n;
}

/* The rest of the blob counts for its digest only. */
static void
drain(struct source *source)
{
	ssize_t n;

	do
		n = read(source->fd, source->chunk, CHUNK);
	while (n > 0 || (n < 0 && errno == EINTR));
}

static struct archive *
open_archive(struct source *source, struct err *err)
{
	struct archive *archive = must_alloc(archive_read_new());

	(void)archive_read_support_filter_gzip(archive);
	(void)archive_read_support_filter_zstd(archive);
	(void)archive_read_support_format_tar(archive);
	(void)archive_read_support_format_empty(archive);
	if (archive_read_open(archive, source, NULL, on_read, NULL) == ARCHIVE_OK)
		return archive;
	err_set(err, ERR_INVALID, "it is no tar, plain or by gzip or zstd (%s); copy the image again",
		archive_error_string(archive));
	archive_read_free(archive);
	return NULL;
}

static int
read_members(struct archive *archive, struct layer_tree *tree, struct err *err)
{
	struct archive_entry *entry;
	char name[OCI_NAME_SIZE];
	int rc;

	/* A warning is about a name that the locale can't show; it comes as the bytes it is. */
	while ((rc = archive_read_next_header(archive, &entry)) == ARCHIVE_OK || rc == ARCHIVE_WARN) {
		if (layer_tree_add(tree, archive, entry, err) != 0) {
			const char *raw = archive_entry_pathname(entry);

			return err_prefix(
				err, "member \"%s\"", oci_printable(raw != NULL ? raw : "", name, sizeof name));
		}
		if (tree->ended)
			return 0;
	}
	if (rc != ARCHIVE_EOF)
		return err_set(err, ERR_INVALID, "the layer is damaged (%s); copy the image again",
			archive_error_string(archive));
	return 0;
}

static void
say(int report_fd, struct unpack_word *word, enum unpack_kind kind)
{
	word->kind = kind;
	while (send(report_fd, word, sizeof *word, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

struct implied_words {
	int report_fd;
	struct unpack_word *word;
};

static void
say_implied(const char *path, void *arg)
{
	const struct implied_words *words = arg;

	snprintf(words->word->path, sizeof words->word->path, "%s", path);
	say(words->report_fd, words->word, UNPACK_IMPLIED);
}

void
unpack_tar(int pipe_fd, int layer_fd, int64_t bytes_max, int report_fd)
{
	struct source source = { pipe_fd, must_alloc(malloc(CHUNK)) };
	struct unpack_word *word = must_alloc(calloc(1, sizeof *word));
	struct archive *archive = open_archive(&source, &word->why);
	struct layer_tree tree;
	int rc = -1;

	layer_tree_init(&tree, layer_fd, bytes_max);
	if (archive != NULL) {
		rc = read_members(archive, &tree, &word->why);
		archive_read_free(archive);
	}
	if (rc == 0) {
		drain(&source);
		layer_tree_finish(&tree);
		for (size_t i = 0; i < tree.opaque_count; i++) {
			snprintf(word->path, sizeof word->path, "%s", tree.opaque[i]);
			say(report_fd, word, UNPACK_OPAQUE);
		}
		layer_tree_each_implied(&tree, say_implied, &(struct implied_words){ report_fd, word });
	}
	word->bytes = tree.bytes;
	say(report_fd, word, rc == 0 ? UNPACK_DONE : UNPACK_FAILED);
	layer_tree_free(&tree);
	free(word);
	free(source.chunk);
}
