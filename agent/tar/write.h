/* write.h - the headers of an archive. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TAR_WRITE_H
#define ORCHARD_AGENT_TAR_WRITE_H

#include "agent/tar/tar.h"

struct tar_text {
	char *bytes; /* grows, is used again */
	size_t len, size;
};

void tar_text_fini(struct tar_text *text);
/* All that stands before the entry's data: whole blocks. */
void tar_write_header(const struct tar_entry *entry, struct tar_text *ret_text);
/* How many zeros follow size bytes of data. */
size_t tar_padding(int64_t size);

#endif
