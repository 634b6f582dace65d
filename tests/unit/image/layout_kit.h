/* layout_kit.h - builds tars and OCI layouts for tests, in a directory of the test's own. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_SPAWNER_LAYOUT_KIT_H
#define ORCHARD_TESTS_SPAWNER_LAYOUT_KIT_H

#include "base/cleanup.h"
#include "base/err.h"
#include "image/oci_blob.h"

#include <stdbool.h>
#include <sys/types.h>

struct archive;
struct archive_entry;

enum kit_packing { KIT_PLAIN, KIT_GZIP, KIT_ZSTD };

extern char kit_dir[64]; /* layout/, images/ */

/* Exits 77 with a loud message where layers can't be unpacked (not root). */
void kit_require_root(void);
int kit_set_up(void **state);
int kit_tear_down(void **state);
/* Reads the message of the last failure. */
extern struct err kit_err;

struct kit_tar {
	struct archive *archive;
	char *data;
	size_t len;
};
void kit_tar_open(struct kit_tar *tar, enum kit_packing packing);
/* type: one of AE_IFREG...; text: content, or the target of a link. The entry is to be given to kit_tar_put. */
struct archive_entry *kit_entry(const char *name, unsigned type, mode_t mode, const char *text);
void kit_tar_put(struct kit_tar *tar, struct archive_entry *entry, const char *content);
void kit_file(struct kit_tar *tar, const char *name, const char *content);
void kit_dir_entry(struct kit_tar *tar, const char *name);
void kit_symlink(struct kit_tar *tar, const char *name, const char *target);
void kit_hard_link(struct kit_tar *tar, const char *name, const char *target);
/* data and len are complete; kit_tar_free when done. */
void kit_tar_close(struct kit_tar *tar);
void kit_tar_free(struct kit_tar *tar);

/* Stores a blob in the layout. */
struct oci_descriptor kit_blob(const void *data, size_t len);
void kit_write(const char *path, const void *data, size_t len);
/* Of an image with these layers; architecture NULL: this machine's. Its manifest. */
struct oci_descriptor
kit_image(const struct kit_tar *layers, size_t count, const char *architecture, const char *layer_type);
/* Writes oci-layout and index.json with that list of manifests. */
void kit_index(const char *manifests);
/* One entry of the list, a static buffer. */
const char *kit_index_entry(const struct oci_descriptor *manifest, const char *tag);

#endif
