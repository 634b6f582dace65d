/* test_layer.c - what a layer's tar becomes, and that nothing it says is done outside its directory. */
/* SPDX-License-Identifier: MIT */
#include "layout_kit.h"

#include "image/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <cmocka.h>

static struct kit_tar tar;
static struct unpack_limit limit = { .bytes_max = INT64_MAX };

static const char *
at(const char *name)
{
	static char path[512];

	snprintf(path, sizeof path, "%s/layer/%s", kit_dir, name);
	return path;
}

static int
unpack_as(const struct oci_descriptor *blob)
{
	char path[256];
	int rc;

	snprintf(path, sizeof path, "%s/layout/blobs/sha256/%s", kit_dir, blob->digest);
	AUTO_FD file = open(path, O_RDONLY | O_CLOEXEC);
	AUTO_FD dir = open(at(""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(file >= 0 && dir >= 0);
	rc = unpack_layer(file, blob, dir, &limit, &kit_err);
	return rc;
}

static int
unpack(void)
{
	struct oci_descriptor blob;
	int rc;

	kit_tar_close(&tar);
	blob = kit_blob(tar.data, tar.len);
	rc = unpack_as(&blob);
	kit_tar_free(&tar);
	return rc;
}

static void
expect_unpacked(void)
{
	if (unpack() != 0)
		fail_msg("%s", kit_err.msg);
}

static void
expect_refused(enum err_code code, const char *words)
{
	assert_int_equal(unpack(), -1);
	assert_int_equal(kit_err.code, code);
	if (strstr(kit_err.msg, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", kit_err.msg, words);
}

static struct stat
status(const char *name)
{
	struct stat st;

	if (lstat(at(name), &st) != 0)
		fail_msg("%s: %s", name, strerror(errno));
	return st;
}

static void
expect_content(const char *name, const char *content)
{
	AUTO_FD fd = open(at(name), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[64] = "";

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof text - 1), strlen(content));
	assert_string_equal(text, content);
}

static bool
is_whiteout(const char *name)
{
	struct stat st = status(name);

	return S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0);
}

static bool
is_opaque(const char *name)
{
	char value[4];

	return lgetxattr(at(name), "trusted.overlay.opaque", value, sizeof value) == 1 && value[0] == 'y';
}

static void
test_plain_gzip_and_zstd_are_read(void **state)
{
	(void)state;
	for (int packing = KIT_PLAIN; packing <= KIT_ZSTD; packing++) {
		kit_tar_open(&tar, packing);
		kit_file(&tar, packing == KIT_PLAIN ? "plain" : packing == KIT_GZIP ? "gzip" : "zstd", "text");
		expect_unpacked();
	}
	expect_content("plain", "text");
	expect_content("gzip", "text");
	expect_content("zstd", "text");
}

static void
test_owner_mode_and_time_are_kept(void **state)
{
	struct archive_entry *entry = kit_entry("su", AE_IFREG, 06751, "x");

	(void)state;
	kit_tar_open(&tar, KIT_PLAIN);
	archive_entry_set_uid(entry, 1234);
	archive_entry_set_gid(entry, 65000);
	kit_tar_put(&tar, entry, "x");
	kit_tar_put(&tar, kit_entry("closed/", AE_IFDIR, 01500, NULL), NULL);
	kit_file(&tar, "closed/in", "y");
	kit_tar_put(&tar, kit_entry("pipe", AE_IFIFO, 0622, NULL), NULL);
	expect_unpacked();
	assert_int_equal(status("su").st_mode, S_IFREG | 06751);
	assert_int_equal(status("su").st_uid, 1234);
	assert_int_equal(status("su").st_gid, 65000);
	assert_int_equal(status("su").st_mtime, 1000000000);
	assert_int_equal(status("closed").st_mode, S_IFDIR | 01500);
	assert_int_equal(status("closed").st_mtime, 1000000000);
	assert_int_equal(status("pipe").st_mode, S_IFIFO | 0622);
}

static bool
is_implied(const char *name)
{
	char value[4];

	return lgetxattr(at(name), UNPACK_IMPLIED_XATTR, value, sizeof value) == 1 && value[0] == 'y';
}

static void
test_parents_that_are_no_members_are_marked(void **state)
{
	(void)state;
	kit_tar_open(&tar, KIT_PLAIN);
	kit_file(&tar, "implied/below/file", "f");
	kit_file(&tar, "later/file", "f");
	kit_dir_entry(&tar, "later");
	kit_dir_entry(&tar, "named");
	kit_file(&tar, "named/file", "f");
	expect_unpacked();
	assert_true(is_implied("implied"));
	assert_true(is_implied("implied/below"));
	assert_false(is_implied("later"));
	assert_false(is_implied("named"));
	assert_true(is_implied("")); /* there are such */
}

static void
test_a_member_that_a_link_led_to_before_is_not_marked(void **state)
{
	(void)state;
	kit_tar_open(&tar, KIT_PLAIN);
	kit_dir_entry(&tar, "usr");
	kit_dir_entry(&tar, "usr/lib");
	kit_symlink(&tar, "lib", "usr/lib");
	kit_file(&tar, "lib/below/file", "f");
	kit_dir_entry(&tar, "usr/lib/below");
	expect_unpacked();
	assert_false(is_implied("usr/lib/below"));
}

static void
test_a_layer_that_names_all_is_not_marked(void **state)
{
	(void)state;
	kit_tar_open(&tar, KIT_PLAIN);
	kit_dir_entry(&tar, "named");
	kit_file(&tar, "named/file", "f");
	kit_file(&tar, "later/file", "f");
	kit_dir_entry(&tar, "later");
	expect_unpacked();
	assert_false(is_implied(""));
}

static void
test_whiteouts_become_devices_and_opaque_directories(void **state)
{
	(void)state;
	kit_tar_open(&tar, KIT_PLAIN);
	kit_file(&tar, "dir/.wh.gone", "");
	kit_file(&tar, "opaque/.wh..wh..opq", "");
	kit_file(&tar, "opaque/new", "n");
	kit_file(&tar, ".wh..wh.plnk", "");
	kit_file(&tar, ".wh.again", "");
	kit_dir_entry(&tar, "again");
	kit_dir_entry(&tar, "before");
	kit_file(&tar, ".wh.before", "");
	expect_unpacked();
	assert_true(is_whiteout("dir/gone"));
	assert_true(is_opaque("opaque"));
	assert_false(is_opaque("dir"));
	expect_content("opaque/new", "n");
	assert_int_equal(access(at("opaque/.wh..wh..opq"), F_OK), -1);
	assert_int_equal(access(at(".wh..wh.plnk"), F_OK), -1);
	assert_true(S_ISDIR(status("again").st_mode) && is_opaque("again"));
	assert_true(S_ISDIR(status("before").st_mode) && is_opaque("before"));
}

static void
test_a_whiteout_of_nothing_or_of_dotdot_is_refused(void **state)
{
	(void)state;
	kit_tar_open(&tar, KIT_PLAIN);
	kit_file(&tar, "a/.wh...", "");
	expect_refused(ERR_INVALID, "deletes nothing");
}

static void
test_hard_links_are_links_of_the_layer(void **state)
{
	(void)state;
	kit_tar_open(&tar, KIT_PLAIN);
	kit_file(&tar, "a/file", "x");
	kit_hard_link(&tar, "b/link", "a/file");
	kit_hard_link(&tar, "a/file", "./a/file");
	expect_unpacked();
	assert_int_equal(status("a/file").st_ino, status("b/link").st_ino);
	assert_int_equal(status("a/file").st_nlink, 2);
	kit_tar_open(&tar, KIT_PLAIN);
	kit_hard_link(&tar, "c", "etc/passwd");
	expect_refused(ERR_INVALID, "not in the layer");
	kit_tar_open(&tar, KIT_PLAIN);
	kit_hard_link(&tar, "c", "../../etc/passwd");
	expect_refused(ERR_INVALID, "..");
}

static void
test_links_never_lead_out_of_the_layer(void **state)
{
	char outside[128];

	(void)state;
	snprintf(outside, sizeof outside, "%s/outside", kit_dir);
	assert_int_equal(mkdir(outside, 0755), 0);
	kit_tar_open(&tar, KIT_PLAIN);
	kit_symlink(&tar, "climb", "../../../../../../../..");
	kit_file(&tar, "climb/orchard-test-climbed", "x");
	kit_symlink(&tar, "absolute", outside);
	kit_dir_entry(&tar, outside);
	kit_file(&tar, "absolute/written", "x");
	kit_symlink(&tar, "file", "/etc/orchard-test-written");
	kit_file(&tar, "file", "x");
	kit_symlink(&tar, "proc", "/proc/self/root");
	kit_hard_link(&tar, "stolen", "file");
	expect_unpacked();
	assert_int_equal(access("/orchard-test-climbed", F_OK), -1);
	expect_content("orchard-test-climbed", "x");
	snprintf(outside, sizeof outside, "%s/outside/written", kit_dir);
	assert_int_equal(access(outside, F_OK), -1);
	assert_int_equal(access("/etc/orchard-test-written", F_OK), -1);
	expect_content("file", "x");
}

static void
test_names_that_climb_are_refused(void **state)
{
	static const char *const names[] = { "../x", "a/../../x", "/../x", "a/..", ".." };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		kit_tar_open(&tar, KIT_PLAIN);
		kit_file(&tar, names[i], "x");
		expect_refused(ERR_INVALID, "..");
	}
}

static void
test_absolute_and_untidy_names_lie_in_the_layer(void **state)
{
	(void)state;
	kit_tar_open(&tar, KIT_PLAIN);
	kit_dir_entry(&tar, "./");
	kit_file(&tar, "/etc//orchard-test-name", "x");
	kit_file(&tar, "./a/./b", "y");
	expect_unpacked();
	expect_content("etc/orchard-test-name", "x");
	expect_content("a/b", "y");
}

static void
test_names_keep_their_bytes(void **state)
{
	(void)state;
	kit_tar_open(&tar, KIT_PLAIN);
	kit_file(&tar, "cafe\xcc\x81", "decomposed");
	kit_file(&tar, "caf\xc3\xa9", "composed");
	kit_file(&tar, "\xff\xfe", "no text");
	expect_unpacked();
	expect_content("cafe\xcc\x81", "decomposed");
	expect_content("caf\xc3\xa9", "composed");
	expect_content("\xff\xfe", "no text");
}

static void
test_the_last_of_several_members_wins(void **state)
{
	(void)state;
	kit_tar_open(&tar, KIT_PLAIN);
	kit_file(&tar, "a", "1");
	kit_file(&tar, "a", "2");
	kit_file(&tar, "d/deep/er", "1");
	kit_file(&tar, "d", "file");
	kit_symlink(&tar, "l", "a");
	kit_dir_entry(&tar, "l");
	expect_unpacked();
	expect_content("a", "2");
	expect_content("d", "file");
	assert_true(S_ISDIR(status("l").st_mode));
}

static void
test_only_harmless_attributes_are_taken(void **state)
{
	static const unsigned char capability[20] = { 1, 0, 0, 2, 0, 4 };
	struct archive_entry *entry = kit_entry("ping", AE_IFREG, 0755, "x");
	char value[32];

	(void)state;
	kit_tar_open(&tar, KIT_PLAIN);
	archive_entry_xattr_add_entry(entry, "user.note", "hello", 5);
	archive_entry_xattr_add_entry(entry, "security.capability", capability, sizeof capability);
	archive_entry_xattr_add_entry(entry, "trusted.overlay.redirect", "/etc", 4);
	kit_tar_put(&tar, entry, "x");
	expect_unpacked();
	assert_int_equal(lgetxattr(at("ping"), "user.note", value, sizeof value), 5);
	assert_int_equal(lgetxattr(at("ping"), "security.capability", value, sizeof value), sizeof capability);
	assert_int_equal(lgetxattr(at("ping"), "trusted.overlay.redirect", value, sizeof value), -1);
}

static void
test_holes_stay_holes(void **state)
{
	enum { SIZE = 4 << 20, PLACE = 2 << 20 };
	struct archive_entry *entry = kit_entry("sparse", AE_IFREG, 0644, NULL);
	char *content = must_alloc(calloc(1, SIZE));

	(void)state;
	memcpy(content + PLACE, "abcd", 4);
	archive_entry_set_size(entry, SIZE);
	archive_entry_sparse_add_entry(entry, PLACE, 4);
	kit_tar_open(&tar, KIT_PLAIN);
	assert_true(archive_write_header(tar.archive, entry) >= ARCHIVE_WARN);
	assert_int_equal(archive_write_data(tar.archive, content, SIZE), SIZE);
	archive_entry_free(entry);
	free(content);
	expect_unpacked();
	assert_true(tar.len < PLACE); /* else the tar itself has no holes */
	assert_int_equal(status("sparse").st_size, SIZE);
	assert_true(status("sparse").st_blocks < PLACE / 512);
}

static void
test_devices_are_left_out(void **state)
{
	struct archive_entry *entry = kit_entry("disk", AE_IFBLK, 0666, NULL);

	(void)state;
	kit_tar_open(&tar, KIT_PLAIN);
	archive_entry_set_rdev(entry, makedev(8, 0));
	kit_tar_put(&tar, entry, NULL);
	kit_file(&tar, "after", "x");
	expect_unpacked();
	assert_int_equal(access(at("disk"), F_OK), -1);
	expect_content("after", "x");
}

static void
test_a_wrong_digest_is_named_whatever_the_tar_says(void **state)
{
	struct oci_descriptor blob, other;

	(void)state;
	kit_tar_open(&tar, KIT_GZIP);
	kit_file(&tar, "a", "text");
	kit_tar_close(&tar);
	blob = kit_blob(tar.data, tar.len);
	other = blob;
	memset(other.digest, 'a', sizeof other.digest - 1);
	tar.data[tar.len / 2] ^= 0x55;
	kit_write(
		"blobs/sha256/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", tar.data, tar.len);
	kit_tar_free(&tar);
	assert_int_equal(unpack_as(&other), -1);
	assert_non_null(strstr(kit_err.msg, other.digest));
	assert_int_equal(unpack_as(&blob), 0);
}

static int
unpack_bytes(const void *data, size_t len)
{
	struct oci_descriptor blob = kit_blob(data, len);

	return unpack_as(&blob);
}

static void
test_a_tar_may_lack_its_end_but_not_its_members(void **state)
{
	(void)state;
	kit_tar_open(&tar, KIT_PLAIN);
	kit_file(&tar, "a", "text");
	kit_tar_close(&tar);
	assert_int_equal(unpack_bytes(tar.data, 1024), 0); /* a header and a block */
	expect_content("a", "text");
	assert_int_equal(unpack_bytes(tar.data, 512 + 4), 0); /* not even the block is full */
	expect_content("a", "text");
	assert_int_equal(unpack_bytes(tar.data, 514), -1);
	assert_non_null(strstr(kit_err.msg, "damaged"));
	assert_int_equal(unpack_bytes("no tar at all", 13), -1);
	assert_int_equal(unpack_bytes("", 0), 0);
	kit_tar_free(&tar);
}

static void
test_a_full_disk_is_said(void **state)
{
	(void)state;
	if (mount("tmpfs", at(""), "tmpfs", 0, "size=1m") != 0)
		skip();
	kit_tar_open(&tar, KIT_GZIP);
	for (int i = 0; i < 400; i++) {
		char name[16];

		snprintf(name, sizeof name, "f%d", i);
		kit_file(&tar, name, "x");
	}
	assert_int_equal(unpack(), -1);
	(void)umount2(at(""), MNT_DETACH);
	assert_int_equal(kit_err.code, ERR_NO_SPACE);
}

static void
test_more_than_allowed_is_not_written(void **state)
{
	char *zeros = must_alloc(calloc(1, (4 << 20) + 1));
	struct stat st;

	(void)state;
	memset(zeros, '0', 4 << 20);
	kit_tar_open(&tar, KIT_GZIP);
	kit_file(&tar, "bomb", zeros);
	free(zeros);
	limit.bytes_max = 1 << 20;
	assert_int_equal(unpack(), -1);
	limit.bytes_max = INT64_MAX;
	assert_int_equal(kit_err.code, ERR_TOO_LARGE);
	assert_non_null(strstr(kit_err.msg, "image_max_bytes"));
	assert_int_equal(stat(at("bomb"), &st), 0);
	assert_true(st.st_size <= 1 << 20);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_set_up, kit_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_plain_gzip_and_zstd_are_read),
		TEST(test_owner_mode_and_time_are_kept),
		TEST(test_parents_that_are_no_members_are_marked),
		TEST(test_a_member_that_a_link_led_to_before_is_not_marked),
		TEST(test_a_layer_that_names_all_is_not_marked),
		TEST(test_whiteouts_become_devices_and_opaque_directories),
		TEST(test_a_whiteout_of_nothing_or_of_dotdot_is_refused),
		TEST(test_hard_links_are_links_of_the_layer),
		TEST(test_links_never_lead_out_of_the_layer),
		TEST(test_names_that_climb_are_refused),
		TEST(test_absolute_and_untidy_names_lie_in_the_layer),
		TEST(test_names_keep_their_bytes),
		TEST(test_the_last_of_several_members_wins),
		TEST(test_only_harmless_attributes_are_taken),
		TEST(test_holes_stay_holes),
		TEST(test_devices_are_left_out),
		TEST(test_a_wrong_digest_is_named_whatever_the_tar_says),
		TEST(test_a_tar_may_lack_its_end_but_not_its_members),
		TEST(test_a_full_disk_is_said),
		TEST(test_more_than_allowed_is_not_written),
	};

	kit_require_root();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
