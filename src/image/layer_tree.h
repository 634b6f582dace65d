/*
 * layer_tree.h - writes the members of a layer's tar into a directory.
 *
 * Names are resolved by the kernel with the directory as root (openat2), whatever
 * links the layer holds; a name with ".." is refused. Deletions become what overlayfs
 * understands: a device 0:0 hides a name, an opaque directory hides what lies below it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_LAYER_TREE_H
#define ORCHARD_IMAGE_LAYER_TREE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct archive;
struct archive_entry;
struct err;

struct layer_dir {
	char *path;
	struct timespec mtime;
};

struct layer_tree {
	int root;
	int64_t members, bytes, bytes_max, bytes_free;
	struct layer_dir *dirs; /* get their times when nothing is put into them any more */
	size_t dir_count, dir_room, path_bytes;
	char **opaque;
	size_t opaque_count, opaque_room;
	void *implied; /* tsearch(3) tree of paths: directories that are only the parents of members so far */
	unsigned skipped;
	bool ended; /* behind the last member there is not even its padding */
};

/* root stays the caller's. What may be written is bytes_max, and what the filesystem has free, less a reserve. */
void layer_tree_init(struct layer_tree *tree, int root, int64_t bytes_max);
void layer_tree_free(struct layer_tree *tree);
int layer_tree_add(
	struct layer_tree *tree, struct archive *archive, struct archive_entry *entry, struct err *err) MUSTCHECK;
/* Counts what is about to be written; ERR_NO_SPACE or ERR_TOO_LARGE when that is too much. */
int layer_tree_charge(struct layer_tree *tree, int64_t bytes, struct err *err) MUSTCHECK;
void layer_tree_finish(struct layer_tree *tree);
/* Parents before what is in them. What took such a place later, and is no directory, may be among them. */
void layer_tree_each_implied(const struct layer_tree *tree, void (*call)(const char *path, void *arg), void *arg);

#endif
