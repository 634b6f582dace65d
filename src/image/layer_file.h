/* layer_file.h - one member of a layer, made under a name that is free, with owner, mode, attributes and time. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_LAYER_FILE_H
#define ORCHARD_IMAGE_LAYER_FILE_H

#include "base/cleanup.h"

struct archive;
struct archive_entry;
struct err;
struct layer_tree;

/* name: one component below parent that does not exist. */
int layer_file_make(struct layer_tree *tree, int parent, const char *name, struct archive *archive,
	struct archive_entry *entry, struct err *err) MUSTCHECK;
int layer_file_make_symlink(int parent, const char *name, struct archive_entry *entry, struct err *err) MUSTCHECK;
int layer_file_make_fifo(int parent, const char *name, struct archive_entry *entry, struct err *err) MUSTCHECK;
/* Owner, mode and attributes of an open file or directory. */
int layer_file_set(int fd, struct archive_entry *entry, struct err *err) MUSTCHECK;
/* Only the time a member says it was changed; the other one is left alone. */
void layer_file_times(struct archive_entry *entry, struct timespec ret_times[2]);

#endif
