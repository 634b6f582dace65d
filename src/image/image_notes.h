/*
 * image_notes.h - what names of registries stood for when a registry was last asked, on disk.
 *
 * names/<sha256 of the name> holds the digest of a manifest and the name; when it was written is when it was true.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_IMAGE_NOTES_H
#define ORCHARD_IMAGE_IMAGE_NOTES_H

#include "base/cleanup.h"
#include "image/image.h"

#include <stdbool.h>
#include <stdint.h>

struct err;

int image_note_write(int images_fd, const char *name, const char *digest, struct err *err) MUSTCHECK;
/* False: there is none. *ret_age_s: how old it is; INT64_MAX when the clock can't tell. */
bool image_note_read(int images_fd, const char *name, char ret_digest[IMAGE_DIGEST_SIZE], int64_t *ret_age_s);
/* Only the digest, of the file below images_fd. */
bool image_note_digest(int images_fd, const char *path, char ret_digest[IMAGE_DIGEST_SIZE]);
/* Whether what belongs to a manifest is unpacked here. */
bool image_is_here(int images_fd, const char *digest);

#endif
