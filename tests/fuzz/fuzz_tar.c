/* fuzz_tar.c - any bytes as an archive, plain or gzip: read to their end, in memory that they do not choose. */
/* SPDX-License-Identifier: MIT */
#include "agent/tar/place.h"
#include "agent/tar/read.h"
#include "agent/tar/source.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { FUZZ_MAX_OUT = 4 << 20 };

struct input {
	const uint8_t *at;
	size_t left;
};

static ssize_t
input_read(void *arg, void *buffer, size_t size)
{
	struct input *input = arg;

	if (size > input->left)
		size = input->left;
	if (size > 700) /* pieces that end anywhere */
		size = 700;
	memcpy(buffer, input->at, size);
	input->at += size;
	input->left -= size;
	return (ssize_t)size;
}

/* The checksum is right, so that what lies behind it is reached. */
static void
mend_checksums(uint8_t *bytes, size_t size)
{
	for (size_t at = 0; at + 512 <= size; at += 512) {
		unsigned sum = 8 * ' ';

		if (memcmp(bytes + at + 148, "fixme", 5) != 0)
			continue;
		for (size_t i = 0; i < 512; i++)
			sum += i >= 148 && i < 156 ? 0 : bytes[at + i];
		for (int i = 5; i >= 0; i--, sum /= 8)
			bytes[at + 148 + (size_t)i] = (uint8_t)('0' + sum % 8);
		bytes[at + 154] = 0;
		bytes[at + 155] = ' ';
	}
}

static void
take_entry(const struct tar_entry *entry)
{
	struct place place;
	struct err err;
	char *name = place_name(entry->path, &err);

	place_init(&place, -1, "/a/b", false);
	/* Where a relative one leads depends on the directory that it is in. */
	if (name != NULL && entry->link != NULL && entry->link[0] == '/' &&
		place_check_link(&place, entry->link, &err) == 0 && strncmp(entry->link, "/a/b", 4) != 0 &&
		strchr(entry->link + 1, '/') == NULL)
		abort();
	if (name != NULL && (name[0] == '/' || strncmp(name, "../", 3) == 0 || strcmp(name, "..") == 0))
		abort();
	free(name);
	for (size_t i = 1; i < entry->span_count; i++)
		if (entry->spans[i].offset < entry->spans[i - 1].offset + entry->spans[i - 1].len)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char out[8192];
	uint8_t *copy = malloc(size + 1);
	struct input input = { copy, size };
	struct tar_source source = { .read = body_source_read };
	struct tar_reader reader;
	const struct tar_entry *entry;
	size_t all = 0;
	struct err err;

	if (copy == NULL)
		return 0;
	memcpy(copy, data, size);
	mend_checksums(copy, size);
	source.arg = body_source_create(input_read, &input);
	(void)body_source_other(source.arg);
	tar_reader_init(&reader, &source);
	while (all < FUZZ_MAX_OUT && tar_reader_next(&reader, &entry, &err) > 0) {
		ssize_t n;

		take_entry(entry);
		while (all < FUZZ_MAX_OUT && (n = tar_reader_data(&reader, out, sizeof out, &err)) > 0)
			all += (size_t)n;
	}
	tar_reader_fini(&reader);
	body_source_free(source.arg);
	free(copy);
	return 0;
}
