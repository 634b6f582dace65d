/* source.h - a request's body as an archive: as it is, or unpacked by gzip's rules. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TAR_SOURCE_H
#define ORCHARD_AGENT_TAR_SOURCE_H

#include "base/cleanup.h"

#include <sys/types.h>

struct body_source;

/* Reads the body's first bytes. */
struct body_source *body_source_create(ssize_t (*read)(void *arg, void *buffer, size_t size), void *arg);
void body_source_free(struct body_source *source);
/* What it is when it is neither tar nor gzip, such as "zstd"; NULL: no compression that is known. */
const char *body_source_other(const struct body_source *source);
/* For struct tar_source: its arg is the body_source. */
ssize_t body_source_read(void *source, void *buffer, size_t size) MUSTCHECK;
/* Why the last read failed, when that was not the body; NULL: it was cut. */
const char *body_source_fault(const struct body_source *source);

#endif
