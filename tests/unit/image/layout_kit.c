/* layout_kit.c - tars by libarchive, layouts by hand. */
/* SPDX-License-Identifier: MIT */
#include "layout_kit.h"

#include "base/file.h"
#include "base/text.h"
#include "image/oci_layout.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

enum { SKIP = 77, TAR_MAX = 8 << 20 };

char kit_dir[64];
struct err kit_err;

void
kit_require_root(void)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH };
	AUTO_FD here = (int)syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof how);

	if (geteuid() == 0 && here >= 0)
		return;
	fprintf(stderr, "SKIPPED: unpacking layers needs root and openat2, which valgrind may not know\n");
	exit(SKIP);
}

static void
make_dir(const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", kit_dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

int
kit_set_up(void **state)
{
	static const char *const dirs[] = { "layout", "layout/blobs", "layout/blobs/sha256", "layer", "images",
		"images/layers", "images/manifests", "images/names", "images/sizes", "images/tmp" };

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	/* Not /tmp, which may be a tmpfs without the attributes that layers need. */
	strcpy(kit_dir, "/var/tmp/orchard-layers-XXXXXX");
	assert_non_null(mkdtemp(kit_dir));
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
		make_dir(dirs[i]);
	memset(&kit_err, 0, sizeof kit_err);
	return 0;
}

int
kit_tear_down(void **state)
{
	(void)state;
	return file_remove_tree_at(AT_FDCWD, kit_dir, &kit_err);
}

void
kit_tar_open(struct kit_tar *tar, enum kit_packing packing)
{
	tar->data = must_alloc(malloc(TAR_MAX));
	tar->archive = must_alloc(archive_write_new());
	archive_write_set_format_pax_restricted(tar->archive);
	if (packing == KIT_GZIP)
		archive_write_add_filter_gzip(tar->archive);
	else if (packing == KIT_ZSTD)
		archive_write_add_filter_zstd(tar->archive);
	assert_int_equal(archive_write_open_memory(tar->archive, tar->data, TAR_MAX, &tar->len), ARCHIVE_OK);
}

struct archive_entry *
kit_entry(const char *name, unsigned type, mode_t mode, const char *text)
{
	struct archive_entry *entry = must_alloc(archive_entry_new());

	archive_entry_set_pathname(entry, name);
	archive_entry_set_filetype(entry, type);
	archive_entry_set_perm(entry, mode);
	archive_entry_set_mtime(entry, 1000000000, 0);
	archive_entry_set_size(entry, 0);
	if (type == AE_IFLNK)
		archive_entry_set_symlink(entry, text);
	else if (text != NULL)
		archive_entry_set_size(entry, (la_int64_t)strlen(text));
	return entry;
}

void
kit_tar_put(struct kit_tar *tar, struct archive_entry *entry, const char *content)
{
	assert_true(archive_write_header(tar->archive, entry) >= ARCHIVE_WARN);
	if (content != NULL)
		assert_int_equal(archive_write_data(tar->archive, content, strlen(content)), strlen(content));
	archive_entry_free(entry);
}

void
kit_file(struct kit_tar *tar, const char *name, const char *content)
{
	kit_tar_put(tar, kit_entry(name, AE_IFREG, 0644, content), content);
}

void
kit_dir_entry(struct kit_tar *tar, const char *name)
{
	kit_tar_put(tar, kit_entry(name, AE_IFDIR, 0755, NULL), NULL);
}

void
kit_symlink(struct kit_tar *tar, const char *name, const char *target)
{
	kit_tar_put(tar, kit_entry(name, AE_IFLNK, 0777, target), NULL);
}

void
kit_hard_link(struct kit_tar *tar, const char *name, const char *target)
{
	struct archive_entry *entry = kit_entry(name, AE_IFREG, 0644, NULL);

	archive_entry_set_hardlink(entry, target);
	kit_tar_put(tar, entry, NULL);
}

void
kit_tar_close(struct kit_tar *tar)
{
	assert_int_equal(archive_write_free(tar->archive), ARCHIVE_OK);
	tar->archive = NULL;
}

void
kit_tar_free(struct kit_tar *tar)
{
	free(tar->data);
}

void
kit_write(const char *path, const void *data, size_t len)
{
	char full[256];

	snprintf(full, sizeof full, "%s/layout/%s", kit_dir, path);
	if (file_write_atomic_at(AT_FDCWD, full, 0600, data, len, false, &kit_err) != 0)
		fail_msg("%s", kit_err.msg);
}

struct oci_descriptor
kit_blob(const void *data, size_t len)
{
	struct oci_descriptor blob = { .size = (int64_t)len };
	char path[OCI_NAME_SIZE];

	text_sha256_hex(data, len, blob.digest);
	snprintf(path, sizeof path, "blobs/sha256/%s", blob.digest);
	kit_write(path, data, len);
	return blob;
}

struct oci_descriptor
kit_image(const struct kit_tar *layers, size_t count, const char *architecture, const char *layer_type)
{
	char text[8192];
	struct oci_descriptor config;
	size_t len;

	len = (size_t)snprintf(text, sizeof text,
		"{\"os\":\"linux\",\"architecture\":\"%s\",\"config\":{\"Env\":[\"A=b\",\"broken\"],\"User\":"
		"\"1000\","
		"\"WorkingDir\":\"/work\"}}",
		architecture != NULL ? architecture : oci_this_architecture());
	config = kit_blob(text, len);
	len = (size_t)snprintf(text, sizeof text,
		"{\"schemaVersion\":2,\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\","
		"\"digest\":\"sha256:%s\",\"size\":%lld},\"layers\":[",
		config.digest, (long long)config.size);
	for (size_t i = 0; i < count; i++) {
		struct oci_descriptor layer = kit_blob(layers[i].data, layers[i].len);

		len += (size_t)snprintf(text + len, sizeof text - len,
			"%s{\"mediaType\":\"%s\",\"digest\":\"sha256:%s\",\"size\":%lld}", i > 0 ? "," : "",
			layer_type, layer.digest, (long long)layer.size);
	}
	len += (size_t)snprintf(text + len, sizeof text - len, "]}");
	return kit_blob(text, len);
}

const char *
kit_index_entry(const struct oci_descriptor *manifest, const char *tag)
{
	static char text[512];

	snprintf(text, sizeof text,
		"{\"mediaType\":\"application/"
		"vnd.oci.image.manifest.v1+json\",\"digest\":\"sha256:%s\",\"size\":%lld,"
		"\"annotations\":{\"org.opencontainers.image.ref.name\":\"%s\"}}",
		manifest->digest, (long long)manifest->size, tag);
	return text;
}

void
kit_index(const char *manifests)
{
	static const char mark[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
	char text[8192];

	snprintf(text, sizeof text, "{\"schemaVersion\":2,\"manifests\":[%s]}", manifests);
	kit_write("index.json", text, strlen(text));
	kit_write("oci-layout", mark, strlen(mark));
}
