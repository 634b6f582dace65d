/* test_imager.c - from a name and a layout to layers and settings, or to words that say what is wrong. */
/* SPDX-License-Identifier: MIT */
#include "layout_kit.h"

#include "base/json.h"
#include "base/text.h"
#include "conf/config.h"
#include "image/imager.h"
#include "image/oci_layout.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

static struct config config = { .image_max_bytes = 1 << 30 };
static const char *form = "oci";
static const char gzip_type[] = "application/vnd.oci.image.layer.v1.tar+gzip";

struct run {
	pid_t pid;
	int fd;
	struct imager_word last;
	char progress[512]; /* all of it */
};

static int
open_images(void)
{
	char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/images", kit_dir);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void
start(struct run *run, const char *directory, const char *tag)
{
	char text[IMAGE_NAME_SIZE];
	struct image_name name;
	int ends[2];

	memset(run, 0, sizeof *run);
	snprintf(text, sizeof text, "%s:%s/%s%s%s", form, kit_dir, directory, tag[0] != '\0' ? ":" : "", tag);
	assert_int_equal(image_name_parse(text, &name, &kit_err), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	run->pid = fork();
	if (run->pid == 0)
		imager_main(&(struct imager_order){ .config = &config,
				    .images_fd = open_images(),
				    .text = text,
				    .name = &name,
				    .known = "" },
			ends[1]);
	close(ends[1]);
	run->fd = ends[0];
}

static void
finish(struct run *run)
{
	do {
		size_t len = strlen(run->progress);

		assert_int_equal(recv(run->fd, &run->last, sizeof run->last, 0), sizeof run->last);
		if (run->last.kind == IMAGER_PROGRESS)
			snprintf(run->progress + len, sizeof run->progress - len, "%s;", run->last.why.msg);
	} while (run->last.kind == IMAGER_PROGRESS);
	close(run->fd);
	assert_int_equal(waitpid(run->pid, NULL, 0), run->pid);
}

static void
expect_done(const char *tag, const struct oci_descriptor *manifest)
{
	struct run run;

	start(&run, "layout", tag);
	finish(&run);
	if (run.last.kind != IMAGER_DONE)
		fail_msg("%s", run.last.why.msg);
	assert_string_equal(run.last.digest, manifest->digest);
}

static void
expect_failure(const char *directory, const char *tag, enum err_code code, const char *words)
{
	struct run run;

	start(&run, directory, tag);
	finish(&run);
	assert_int_equal(run.last.kind, IMAGER_FAILED);
	if (run.last.why.code != code || strstr(run.last.why.msg, words) == NULL)
		fail_msg("%d: \"%s\" does not say \"%s\"", run.last.why.code, run.last.why.msg, words);
}

static struct kit_tar
small_layer(const char *name)
{
	struct kit_tar tar;

	kit_tar_open(&tar, KIT_GZIP);
	kit_file(&tar, name, name);
	kit_tar_close(&tar);
	return tar;
}

static struct oci_descriptor
small_image(const char *name)
{
	struct kit_tar layer = small_layer(name);
	struct oci_descriptor manifest = kit_image(&layer, 1, NULL, gzip_type);

	kit_tar_free(&layer);
	return manifest;
}

static size_t
count_layers(void)
{
	char path[128];
	size_t count = 0;
	AUTO_DIR *dir = NULL;

	snprintf(path, sizeof path, "%s/images/layers", kit_dir);
	dir = opendir(path);
	assert_non_null(dir);
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
		count += entry->d_name[0] != '.';
	return count;
}

static void
test_layers_and_settings_are_what_the_spawner_opens(void **state)
{
	struct kit_tar layers[] = { small_layer("a"), small_layer("b"), small_layer("a") };
	struct oci_descriptor manifest = kit_image(layers, 3, NULL, gzip_type);
	struct image_name name = { .form = IMAGE_OCI };
	AUTO_FD images = open_images();
	struct image image;
	struct run run;

	(void)state;
	kit_index(kit_index_entry(&manifest, "v1"));
	start(&run, "layout", "v1");
	finish(&run);
	assert_string_equal(run.progress, "unpacking layer 1 of 2;unpacking layer 2 of 2;");
	assert_int_equal(image_open(images, &name, run.last.digest, &image, &kit_err), 0);
	assert_int_equal(image.layer_count, 2); /* a layer that comes twice is stacked once, on top */
	assert_int_equal(faccessat(image.layers[0], "a", F_OK, 0), 0);
	assert_int_equal(faccessat(image.layers[1], "b", F_OK, 0), 0);
	assert_string_equal(image.user, "1000");
	assert_string_equal(image.working_dir, "/work");
	assert_int_equal(json_object_array_length(image.env), 1);
	image_close(&image);
	start(&run, "layout", "v1");
	finish(&run);
	assert_string_equal(run.progress, "");
	for (size_t i = 0; i < 3; i++)
		kit_tar_free(&layers[i]);
}

/* Of an image without layers that asks for this working directory. */
static void
expect_working_dir(const char *asked, const char *expected)
{
	struct image_name name = { .form = IMAGE_OCI };
	struct oci_descriptor config_blob, manifest;
	AUTO_FD images = open_images();
	struct image image;
	char text[512];
	struct run run;

	snprintf(text, sizeof text, "{\"os\":\"linux\",\"config\":{\"WorkingDir\":\"%s\"}}", asked);
	config_blob = kit_blob(text, strlen(text));
	snprintf(text, sizeof text, "{\"config\":{\"digest\":\"sha256:%s\",\"size\":%lld},\"layers\":[]}",
		config_blob.digest, (long long)config_blob.size);
	manifest = kit_blob(text, strlen(text));
	kit_index(kit_index_entry(&manifest, "v1"));
	start(&run, "layout", "v1");
	finish(&run);
	assert_int_equal(image_open(images, &name, run.last.digest, &image, &kit_err), 0);
	assert_string_equal(image.working_dir, expected);
	image_close(&image);
}

static void
test_a_working_dir_that_is_not_absolute_counts_from_the_root(void **state)
{
	(void)state;
	expect_working_dir("app/src", "/app/src");
	expect_working_dir(".", "/.");
	expect_working_dir("/app", "/app");
	expect_working_dir("", "");
}

static void
put_dir(struct kit_tar *tar, const char *name, mode_t mode, uid_t owner)
{
	struct archive_entry *entry = kit_entry(name, AE_IFDIR, mode, NULL);

	archive_entry_set_uid(entry, owner);
	archive_entry_set_gid(entry, owner);
	kit_tar_put(tar, entry, NULL);
}

/* As the spawner opens it. */
static void
open_stack(const struct kit_tar *layers, size_t count, struct image *ret_image)
{
	struct oci_descriptor manifest = kit_image(layers, count, NULL, gzip_type);
	struct image_name name = { .form = IMAGE_OCI };
	AUTO_FD images = open_images();

	kit_index(kit_index_entry(&manifest, "v1"));
	expect_done("v1", &manifest);
	assert_int_equal(image_open(images, &name, manifest.digest, ret_image, &kit_err), 0);
}

static void
expect_dir(int layer, const char *path, mode_t mode, uid_t owner)
{
	struct stat st;

	assert_int_equal(fstatat(layer, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode, S_IFDIR | mode);
	assert_int_equal(st.st_uid, owner);
	assert_int_equal(st.st_gid, owner);
}

static void
test_directories_that_a_layer_implies_are_as_those_below(void **state)
{
	struct kit_tar layers[3];
	struct image image;

	(void)state;
	kit_tar_open(&layers[0], KIT_GZIP);
	put_dir(&layers[0], "tmp", 01777, 0);
	put_dir(&layers[0], "home", 0711, 0);
	put_dir(&layers[0], "home/user", 0700, 1000);
	put_dir(&layers[0], "cleared", 0700, 1000);
	put_dir(&layers[0], "cleared/below", 0700, 1000);
	put_dir(&layers[0], "named", 0700, 1000);
	put_dir(&layers[0], "plain", 0755, 0);
	kit_tar_close(&layers[0]);
	kit_tar_open(&layers[1], KIT_GZIP);
	kit_file(&layers[1], "tmp/file", "f");
	kit_file(&layers[1], "new/deep/file", "f");
	kit_file(&layers[1], "cleared/.wh..wh..opq", "");
	kit_file(&layers[1], "cleared/below/file", "f");
	put_dir(&layers[1], "named", 0750, 7);
	kit_file(&layers[1], "plain/file", "f");
	kit_tar_close(&layers[1]);
	kit_tar_open(&layers[2], KIT_GZIP);
	kit_file(&layers[2], "home/user/file", "f");
	kit_file(&layers[2], "named/file", "f");
	kit_tar_close(&layers[2]);
	open_stack(layers, 3, &image);
	assert_int_equal(image.layer_count, 4);
	expect_dir(image.layers[0], "tmp", 01777, 0);
	expect_dir(image.layers[0], "home", 0711, 0);
	expect_dir(image.layers[0], "home/user", 0700, 1000);
	expect_dir(image.layers[0], "named", 0750, 7);
	expect_dir(image.layers[0], "cleared", 0700, 1000); /* only what was in it is hidden */
	for (size_t i = 0; i < 4; i++) {
		static const char *const without[] = { "new", "plain", "cleared/below", "tmp/file" };

		assert_int_equal(faccessat(image.layers[0], without[i], F_OK, AT_SYMLINK_NOFOLLOW), -1);
	}
	image_close(&image);
	for (size_t i = 0; i < 3; i++)
		kit_tar_free(&layers[i]);
}

/* Each of the names costs the more the deeper it is: an image of such is made all the same, and soon. */
static void
test_no_layers_keep_an_imager_busy_for_long(void **state)
{
	char deep[4000];
	struct kit_tar layers[2];
	struct image image;

	(void)state;
	for (size_t i = 0; i + 2 < sizeof deep; i += 2)
		memcpy(deep + i, "a/", 3);
	strcat(deep, "f");
	for (size_t i = 0; i < 2; i++) {
		kit_tar_open(&layers[i], KIT_GZIP);
		if (i == 0)
			put_dir(&layers[i], "a", 0700, 1000);
		kit_file(&layers[i], deep, i == 0 ? "0" : "1");
		kit_tar_close(&layers[i]);
	}
	open_stack(layers, 2, &image);
	assert_int_equal(image.layer_count, 2); /* what was found by then is not used in part */
	image_close(&image);
	for (size_t i = 0; i < 2; i++)
		kit_tar_free(&layers[i]);
}

static void
test_directories_that_are_hidden_or_named_anew_need_nothing(void **state)
{
	struct kit_tar layers[3];
	struct image image;

	(void)state;
	kit_tar_open(&layers[0], KIT_GZIP);
	put_dir(&layers[0], "gone", 0700, 1000);
	put_dir(&layers[0], "named", 0700, 1000);
	kit_tar_close(&layers[0]);
	kit_tar_open(&layers[1], KIT_GZIP);
	kit_file(&layers[1], "gone/file", "f");
	kit_file(&layers[1], "named/file", "f");
	kit_tar_close(&layers[1]);
	kit_tar_open(&layers[2], KIT_GZIP);
	kit_file(&layers[2], ".wh.gone", "");
	put_dir(&layers[2], "named", 0750, 7);
	kit_tar_close(&layers[2]);
	open_stack(layers, 3, &image);
	assert_int_equal(image.layer_count, 3);
	image_close(&image);
	for (size_t i = 0; i < 3; i++)
		kit_tar_free(&layers[i]);
}

static void
test_several_imagers_unpack_a_layer_once(void **state)
{
	struct oci_descriptor manifest = small_image("shared");
	struct run runs[4];

	(void)state;
	kit_index(kit_index_entry(&manifest, "v1"));
	for (size_t i = 0; i < 4; i++)
		start(&runs[i], "layout", "v1");
	for (size_t i = 0; i < 4; i++) {
		finish(&runs[i]);
		assert_int_equal(runs[i].last.kind, IMAGER_DONE);
	}
	assert_int_equal(count_layers(), 1);
}

static void
test_tags_are_found_and_missing_ones_listed(void **state)
{
	struct oci_descriptor one = small_image("one"), two = small_image("two");
	char list[2048];

	(void)state;
	kit_index(kit_index_entry(&one, "v1"));
	expect_done("", &one);
	snprintf(list, sizeof list, "%s,", kit_index_entry(&one, "v1"));
	strcat(list, kit_index_entry(&two, "v2"));
	kit_index(list);
	expect_done("v2", &two);
	expect_failure("layout", "v9", ERR_NOT_FOUND, "v1, v2");
	expect_failure("layout", "", ERR_NOT_FOUND, "v1, v2");
	strcat(list, ",");
	strcat(list, kit_index_entry(&two, "latest"));
	kit_index(list);
	expect_done("", &two);
	kit_index("");
	expect_failure("layout", "", ERR_NOT_FOUND, "no image");
}

static void
test_an_index_within_is_read_for_this_machine(void **state)
{
	struct oci_descriptor ours = small_image("ours"), index;
	char text[2048];

	(void)state;
	snprintf(text, sizeof text,
		"{\"manifests\":[{\"digest\":\"sha256:%064d\",\"platform\":{\"os\":\"linux\",\"architecture\":"
		"\"mips\"}},"
		"{\"digest\":\"sha256:%s\",\"size\":%lld,\"platform\":{\"os\":\"linux\",\"architecture\":\"%s\"}}]"
		"}",
		0, ours.digest, (long long)ours.size, oci_this_architecture());
	index = kit_blob(text, strlen(text));
	kit_index(kit_index_entry(&index, "multi"));
	expect_done("multi", &ours);
	snprintf(text, sizeof text,
		"{\"manifests\":[{\"digest\":\"sha256:%064d\",\"platform\":{\"os\":\"linux\",\"architecture\":"
		"\"mips\"}},"
		"{\"digest\":\"sha256:%064d\",\"platform\":{\"os\":\"windows\",\"architecture\":\"vax\"}}]}",
		0, 0);
	index = kit_blob(text, strlen(text));
	kit_index(kit_index_entry(&index, "multi"));
	expect_failure("layout", "multi", ERR_UNSUPPORTED, "linux/mips, windows/vax");
}

static void
test_what_every_processor_can_run_is_preferred(void **state)
{
	struct oci_descriptor special = small_image("special"), common = small_image("common"), index;
	static const char entry[] = "{\"digest\":\"sha256:%s\",\"size\":%lld,\"platform\":{\"os\":\"linux\","
				    "\"architecture\":\"%s\"%s}}";
	char text[2048], first[512], second[512];

	(void)state;
	snprintf(first, sizeof first, entry, special.digest, (long long)special.size, oci_this_architecture(),
		",\"variant\":\"v99\"");
	snprintf(second, sizeof second, entry, common.digest, (long long)common.size, oci_this_architecture(), "");
	snprintf(text, sizeof text, "{\"manifests\":[%s,%s]}", first, second);
	index = kit_blob(text, strlen(text));
	kit_index(kit_index_entry(&index, "multi"));
	expect_done("multi", &common);
	snprintf(text, sizeof text, "{\"manifests\":[%s]}", first);
	index = kit_blob(text, strlen(text));
	kit_index(kit_index_entry(&index, "multi"));
	expect_done("multi", &special); /* there is nothing else */
}

static void
test_images_for_others_are_refused(void **state)
{
	struct kit_tar layer = small_layer("a");
	struct oci_descriptor manifest = kit_image(&layer, 1, "mips", gzip_type);

	(void)state;
	kit_index(kit_index_entry(&manifest, "v1"));
	expect_failure("layout", "v1", ERR_UNSUPPORTED, "linux/mips");
	expect_failure("layout", "v1", ERR_UNSUPPORTED, oci_this_architecture());
	manifest = kit_image(&layer, 1, NULL, "application/vnd.oci.image.layer.v1.tar+gzip+encrypted");
	kit_index(kit_index_entry(&manifest, "v1"));
	expect_failure("layout", "v1", ERR_UNSUPPORTED, "encrypted");
	manifest = kit_image(&layer, 1, NULL, "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip");
	kit_index(kit_index_entry(&manifest, "v1"));
	expect_failure("layout", "v1", ERR_UNSUPPORTED, "foreign");
	kit_tar_free(&layer);
}

static void
test_what_is_no_layout_is_said(void **state)
{
	(void)state;
	expect_failure("missing", "", ERR_NOT_FOUND, "missing");
	expect_failure("layout", "", ERR_NOT_FOUND, "index.json");
	kit_write("index.json", "{}", 2);
	expect_failure("layout", "", ERR_NOT_FOUND, "oci-layout");
	kit_index("");
	kit_write("index.json", "{", 1);
	expect_failure("layout", "", ERR_INVALID, "index.json");
}

static void
test_files_that_lead_out_or_never_end_are_not_read(void **state)
{
	char path[128];

	(void)state;
	kit_index("");
	snprintf(path, sizeof path, "%s/layout/index.json", kit_dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/shadow", path), 0);
	expect_failure("layout", "", ERR_INVALID, "leads out");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_failure("layout", "", ERR_INVALID, "not a plain file");
}

static void
test_corrupt_and_missing_blobs_are_named(void **state)
{
	struct kit_tar layer = small_layer("a");
	struct oci_descriptor manifest = kit_image(&layer, 1, NULL, gzip_type),
			      blob = kit_blob(layer.data, layer.len);
	char path[OCI_NAME_SIZE], full[256];

	(void)state;
	kit_index(kit_index_entry(&manifest, "v1"));
	snprintf(path, sizeof path, "blobs/sha256/%s", blob.digest);
	layer.data[layer.len / 2] ^= 0x55;
	kit_write(path, layer.data, layer.len);
	expect_failure("layout", "v1", ERR_INVALID, blob.digest);
	assert_int_equal(count_layers(), 0);
	kit_write(path, layer.data, layer.len / 2);
	expect_failure("layout", "v1", ERR_INVALID, "bytes instead of");
	snprintf(full, sizeof full, "%s/layout/%s", kit_dir, path);
	assert_int_equal(unlink(full), 0);
	expect_failure("layout", "v1", ERR_INVALID, "missing in the layout");
	snprintf(path, sizeof path, "blobs/sha256/%s", manifest.digest);
	memset(full, ' ', sizeof full);
	kit_write(path, full, (size_t)manifest.size < sizeof full ? (size_t)manifest.size : sizeof full);
	expect_failure("layout", "v1", ERR_INVALID, manifest.digest);
	kit_tar_free(&layer);
}

/* What "docker save" writes: a list, a configuration named by its digest, layers as tars that are not compressed. */
static void
write_docker_archive(const char *layer_path, const struct kit_tar *layer, const char *diff_id)
{
	char config_text[512], name[80], manifest[512], path[128];
	struct kit_tar tar;
	FILE *file;

	snprintf(config_text, sizeof config_text,
		"{\"os\":\"linux\",\"architecture\":\"%s\",\"config\":{\"User\":\"7\"},\"rootfs\":{\"diff_ids\":["
		"\"sha256:"
		"%s\"]}}",
		oci_this_architecture(), diff_id);
	text_sha256_hex(config_text, strlen(config_text), name);
	strcat(name, ".json");
	snprintf(manifest, sizeof manifest,
		"[{\"Config\":\"%s\",\"RepoTags\":[\"docker.io/team/app:v1\"],\"Layers\":[\"%s\"]}]", name,
		layer_path);
	kit_tar_open(&tar, KIT_PLAIN);
	kit_file(&tar, name, config_text);
	kit_file(&tar, "manifest.json", manifest);
	if (layer != NULL) {
		struct archive_entry *entry = kit_entry(layer_path, AE_IFREG, 0644, NULL);

		archive_entry_set_size(entry, (la_int64_t)layer->len);
		kit_tar_put(&tar, entry, NULL);
		assert_int_equal(archive_write_data(tar.archive, layer->data, layer->len), layer->len);
	} else {
		kit_symlink(&tar, layer_path, "/etc/passwd");
	}
	kit_symlink(&tar, "blobs", "/etc");
	kit_tar_close(&tar);
	snprintf(path, sizeof path, "%s/archive", kit_dir);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(tar.data, 1, tar.len, file), tar.len);
	assert_int_equal(fclose(file), 0);
	kit_tar_free(&tar);
}

static void
test_docker_archives(void **state)
{
	struct kit_tar layer;
	char hex[TEXT_SHA256_HEX_SIZE];
	struct run run;

	(void)state;
	form = "docker-archive";
	kit_tar_open(&layer, KIT_PLAIN);
	kit_file(&layer, "a", "a");
	kit_tar_close(&layer);
	text_sha256_hex(layer.data, layer.len, hex);
	write_docker_archive("x/layer.tar", &layer, hex);
	for (int i = 0; i < 2; i++) {
		start(&run, "archive", i == 0 ? "" : "app:v1");
		finish(&run);
		if (run.last.kind != IMAGER_DONE)
			fail_msg("%s", run.last.why.msg);
	}
	assert_int_equal(count_layers(), 1);
	expect_failure("archive", "pp:v1", ERR_NOT_FOUND, "docker.io/team/app:v1");
	hex[0] = hex[0] == '0' ? '1' : '0';
	write_docker_archive("x/layer.tar", &layer, hex);
	expect_failure("archive", "", ERR_INVALID, "corrupt");
	write_docker_archive("x/layer.tar", NULL, hex);
	expect_failure("archive", "", ERR_INVALID, "leads out");
	write_docker_archive("../../etc/passwd", &layer, hex);
	expect_failure("archive", "", ERR_INVALID, "climbs");
	assert_int_equal(count_layers(), 1);
	kit_tar_free(&layer);
	form = "oci";
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_set_up, kit_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_layers_and_settings_are_what_the_spawner_opens),
		TEST(test_a_working_dir_that_is_not_absolute_counts_from_the_root),
		TEST(test_directories_that_a_layer_implies_are_as_those_below),
		TEST(test_no_layers_keep_an_imager_busy_for_long),
		TEST(test_directories_that_are_hidden_or_named_anew_need_nothing),
		TEST(test_several_imagers_unpack_a_layer_once),
		TEST(test_tags_are_found_and_missing_ones_listed),
		TEST(test_an_index_within_is_read_for_this_machine),
		TEST(test_what_every_processor_can_run_is_preferred),
		TEST(test_images_for_others_are_refused),
		TEST(test_what_is_no_layout_is_said),
		TEST(test_files_that_lead_out_or_never_end_are_not_read),
		TEST(test_corrupt_and_missing_blobs_are_named),
		TEST(test_docker_archives),
	};

	kit_require_root();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
