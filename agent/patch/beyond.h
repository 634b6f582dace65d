/*
 * beyond.h - what a patch asks for that `patch` passes over in silence, where the image has no git.
 *
 * GNU's knows git's headers and refuses binary patches, but not the words that stand for one; others know no header at
 * all: a rename, a mode, a link, an empty file is nothing to them, and all is well.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_PATCH_BEYOND_H
#define ORCHARD_AGENT_PATCH_BEYOND_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

/* The number of the line that asks for it; 0: none does. */
size_t patch_find_beyond(const char *text, size_t len, bool is_gnu) MUSTCHECK;

#endif
