/* test_pack.c - a directory through tar and back; streams that want to write elsewhere; streams of nonsense. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "orchardctl/copy/merge.h"
#include "orchardctl/copy/pack.h"
#include "orchardctl/copy/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

struct stream {
	char *bytes;
	size_t len, at, piece;
};

struct world {
	char path[64];
	int top, from, to;
};

static int
setup(void **state)
{
	struct world *world = alloc_zero(1, sizeof *world);

	strcpy(world->path, "/tmp/test-pack-XXXXXX");
	assert_non_null(mkdtemp(world->path));
	world->top = open(world->path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(world->top, "from", 0755) | mkdirat(world->top, "to", 0755), 0);
	world->from = openat(world->top, "from", O_RDONLY | O_DIRECTORY);
	world->to = openat(world->top, "to", O_RDONLY | O_DIRECTORY);
	*state = world;
	return 0;
}

static int
teardown(void **state)
{
	struct world *world = *state;
	struct err err;

	close(world->from);
	close(world->to);
	close(world->top);
	assert_int_equal(file_remove_tree_at(AT_FDCWD, world->path, &err), 0);
	free(world);
	return 0;
}

static ssize_t
on_read(const void **ret_data, void *arg)
{
	struct stream *stream = arg;
	size_t len = stream->len - stream->at;

	len = len < stream->piece ? len : stream->piece;
	*ret_data = stream->bytes + stream->at;
	stream->at += len;
	return (ssize_t)len;
}

static int
unpack(struct world *world, struct stream *stream, struct unpack *ret_unpack, struct err *err)
{
	*ret_unpack = (struct unpack){ .read = on_read, .arg = stream };
	stream->at = 0;
	return unpack_run(ret_unpack, world->to, err);
}

static void
write_file(int dirfd, const char *name, const char *text, mode_t mode)
{
	struct err err;

	assert_int_equal(file_write_atomic_at(dirfd, name, mode, text, strlen(text), false, &err), 0);
}

static void
assert_file(int dirfd, const char *name, const char *text)
{
	AUTO_FREE char *data = NULL;
	struct err err;
	size_t len;

	if (file_read_at(dirfd, name, 1 << 20, &data, &len, &err) != 0)
		fail_msg("%s", err.msg);
	assert_string_equal(data, text);
}

static void
pack_all(const char *directory, struct stream *stream)
{
	struct pack *pack;
	struct err err;
	size_t len = 1;

	assert_int_equal(pack_open(directory, &pack, &err), 0);
	while (len > 0) {
		stream->bytes = alloc_resize(stream->bytes, stream->len + 700);
		assert_int_equal(pack_read(pack, stream->bytes + stream->len, 700, &len, &err), 0);
		stream->len += len;
	}
	pack_close(pack);
}

static void
test_there_and_back(void **state)
{
	struct world *world = *state;
	AUTO_FREE char *from = alloc_format("%s/from", world->path);
	struct stream stream = { .piece = 333 };
	struct unpack result;
	struct stat a, hard;
	char target[16] = { 0 };
	struct err err;

	write_file(world->from, "a", "hello", 0640);
	assert_int_equal(linkat(world->from, "a", world->from, "hard", 0), 0);
	assert_int_equal(symlinkat("/etc", world->from, "link"), 0);
	assert_int_equal(mkdirat(world->from, "sub", 0711), 0);
	write_file(world->from, "sub/b", "deep", 0600);
	pack_all(from, &stream);
	assert_true((int64_t)stream.len <= pack_measure(from) + 4096);
	assert_int_equal(unpack(world, &stream, &result, &err), 0);
	assert_int_equal(result.mode, 0755);
	assert_file(world->to, "a", "hello");
	assert_file(world->to, "sub/b", "deep");
	assert_int_equal(readlinkat(world->to, "link", target, sizeof target - 1), 4);
	assert_int_equal(fstatat(world->to, "a", &a, 0) | fstatat(world->to, "hard", &hard, 0), 0);
	assert_true(a.st_ino == hard.st_ino);
	assert_int_equal(a.st_mode & 07777, 0640);
	free(stream.bytes);
}

/* --- what a sandbox might send --- */

static la_ssize_t
on_made(struct archive *archive, void *arg, const void *data, size_t len)
{
	struct stream *stream = arg;

	(void)archive;
	stream->bytes = alloc_resize(stream->bytes, stream->len + len);
	memcpy(stream->bytes + stream->len, data, len);
	stream->len += len;
	return (la_ssize_t)len;
}

struct member {
	const char *name;
	mode_t type, mode;
	const char *text, *symlink, *hardlink;
};

static void
make(struct stream *stream, const struct member *members)
{
	struct archive *archive = archive_write_new();

	*stream = (struct stream){ .piece = 512 };
	archive_write_set_format_pax(archive);
	assert_int_equal(archive_write_open(archive, stream, NULL, on_made, NULL), ARCHIVE_OK);
	for (; members->name != NULL; members++) {
		struct archive_entry *entry = archive_entry_new();

		archive_entry_set_pathname(entry, members->name);
		archive_entry_set_filetype(entry, members->type);
		archive_entry_set_perm(entry, members->mode);
		archive_entry_set_size(entry, members->text != NULL ? (la_int64_t)strlen(members->text) : 0);
		if (members->symlink != NULL)
			archive_entry_set_symlink(entry, members->symlink);
		if (members->hardlink != NULL)
			archive_entry_set_hardlink(entry, members->hardlink);
		assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
		if (members->text != NULL)
			archive_write_data(archive, members->text, strlen(members->text));
		archive_entry_free(entry);
	}
	archive_write_free(archive);
}

static void
test_nothing_is_written_elsewhere(void **state)
{
	struct world *world = *state;
	static const struct member hostile[][3] = {
		{ { .name = "../out", .type = AE_IFREG, .mode = 0644, .text = "bad" } },
		{ { .name = "a/../../out", .type = AE_IFREG, .mode = 0644, .text = "bad" } },
		{ { .name = "/tmp/test-pack-out", .type = AE_IFREG, .mode = 0644, .text = "bad" } },
		{ { .name = "way", .type = AE_IFLNK, .mode = 0777, .symlink = ".." },
			{ .name = "way/out", .type = AE_IFREG, .mode = 0644, .text = "bad" } },
		{ { .name = "theirs", .type = AE_IFREG, .mode = 0644, .hardlink = "../secret" } },
		{ { .name = "theirs", .type = AE_IFREG, .mode = 0644, .hardlink = "/etc/passwd" } },
	};

	write_file(world->top, "secret", "secret", 0600);
	for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
		struct stream stream;
		struct unpack result;
		struct err err;

		make(&stream, hostile[i]);
		assert_int_equal(unpack(world, &stream, &result, &err), -1);
		assert_int_equal(faccessat(world->top, "out", F_OK, 0), -1);
		assert_int_equal(access("/tmp/test-pack-out", F_OK), -1);
		assert_int_equal(faccessat(world->to, "theirs", F_OK, 0), -1);
		free(stream.bytes);
	}
}

static void
test_no_rights_come_along(void **state)
{
	struct world *world = *state;
	static const struct member members[] = {
		{ .name = "suid", .type = AE_IFREG, .mode = 06755, .text = "x" },
		{ .name = "sticky", .type = AE_IFDIR, .mode = 01777 },
		{ .name = "fifo", .type = AE_IFIFO, .mode = 0644 },
		{ .name = "disk", .type = AE_IFBLK, .mode = 0666 },
		{ .name = NULL },
	};
	struct stream stream;
	struct unpack result;
	struct stat stat;
	struct err err;

	make(&stream, members);
	assert_int_equal(unpack(world, &stream, &result, &err), 0);
	assert_int_equal(result.skipped, 2);
	assert_int_equal(fstatat(world->to, "suid", &stat, 0), 0);
	assert_int_equal(stat.st_mode & 07000, 0);
	assert_int_equal(faccessat(world->to, "fifo", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(faccessat(world->to, "disk", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	free(stream.bytes);
}

static void
test_a_cut_stream_is_no_success(void **state)
{
	struct world *world = *state;
	static char text[5001];
	const struct member members[] = {
		{ .name = "file", .type = AE_IFREG, .mode = 0644, .text = memset(text, 'x', sizeof text - 1) },
		{ .name = NULL }
	};
	struct stream stream;
	struct unpack result;
	struct err err;
	size_t whole;

	make(&stream, members);
	whole = stream.len;
	for (size_t len = 100; len < sizeof text; len += 777) {
		stream.len = len;
		assert_int_equal(unpack(world, &stream, &result, &err), -1);
	}
	stream.len = whole;
	assert_int_equal(unpack(world, &stream, &result, &err), 0);
	assert_file(world->to, "file", text);
	free(stream.bytes);
}

static void
test_a_tree_is_merged_into_another(void **state)
{
	struct world *world = *state;
	struct err err;

	assert_int_equal(mkdirat(world->from, "both", 0755) | mkdirat(world->to, "both", 0755) |
			mkdirat(world->from, "new", 0755),
		0);
	write_file(world->from, "both/a", "new", 0600);
	write_file(world->from, "new/b", "b", 0600);
	write_file(world->to, "both/a", "old", 0600);
	write_file(world->to, "both/kept", "kept", 0600);
	assert_int_equal(merge_run(world->from, world->to, &err), 0);
	assert_file(world->to, "both/a", "new");
	assert_file(world->to, "both/kept", "kept");
	assert_file(world->to, "new/b", "b");
}

static void
test_no_merge_goes_through_a_link(void **state)
{
	struct world *world = *state;
	struct err err;

	assert_int_equal(mkdirat(world->from, "way", 0755) | mkdirat(world->top, "outside", 0755) |
			symlinkat("../outside", world->to, "way"),
		0);
	write_file(world->from, "way/file", "bad", 0600);
	assert_int_equal(merge_run(world->from, world->to, &err), -1);
	assert_int_equal(faccessat(world->top, "outside/file", F_OK, 0), -1);
}

static void
test_inside(void **state)
{
	(void)state;
	assert_true(unpack_is_inside("a/b"));
	assert_true(unpack_is_inside("./a/..b/b.."));
	assert_true(unpack_is_inside("..."));
	assert_false(unpack_is_inside(".."));
	assert_false(unpack_is_inside("a/.."));
	assert_false(unpack_is_inside("a//../b"));
	assert_false(unpack_is_inside("/a"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_there_and_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_is_written_elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_rights_come_along, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_cut_stream_is_no_success, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_tree_is_merged_into_another, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_merge_goes_through_a_link, setup, teardown),
		cmocka_unit_test(test_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
