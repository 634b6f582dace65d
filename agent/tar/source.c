/* source.c - gzip is told by its first bytes; several members one after the other are one archive. */
/* SPDX-License-Identifier: MIT */
#include "agent/tar/source.h"

#include "base/alloc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { SOURCE_PIECE = 32 << 10, SOURCE_MAGIC = 6, SOURCE_GZIP_WINDOW = 15 + 16 };

struct body_source {
	ssize_t (*read)(void *arg, void *buffer, size_t size);
	void *arg;
	size_t at, have; /* of piece: bytes of the body that nobody took */
	bool gzip, member_ended, body_ended;
	const char *fault;
	z_stream stream;
	unsigned char piece[SOURCE_PIECE];
};

/* More of the body behind what is there; false: it was cut. */
static bool
source_more(struct body_source *source)
{
	ssize_t n = source->read(source->arg, source->piece + source->have, SOURCE_PIECE - source->have);

	if (n < 0)
		return false;
	source->have += (size_t)n;
	source->body_ended = n == 0;
	return true;
}

struct body_source *
body_source_create(ssize_t (*read)(void *arg, void *buffer, size_t size), void *arg)
{
	struct body_source *source = alloc_zero(1, sizeof *source);

	source->read = read;
	source->arg = arg;
	while (source->have < SOURCE_MAGIC && !source->body_ended && source_more(source))
		;
	source->gzip = source->have >= 2 && memcmp(source->piece, "\x1f\x8b", 2) == 0;
	if (source->gzip && inflateInit2(&source->stream, SOURCE_GZIP_WINDOW) != Z_OK)
		abort();
	return source;
}

void
body_source_free(struct body_source *source)
{
	if (source->gzip)
		inflateEnd(&source->stream);
	free(source);
}

const char *
body_source_other(const struct body_source *source)
{
	static const struct {
		const char *magic, *name;
		size_t len;
	} others[] = { { "\x28\xb5\x2f\xfd", "zstd", 4 }, { "\3757zXZ", "xz", 5 }, { "BZh", "bzip2", 3 },
		{ "PK\3\4", "zip", 4 } };

	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (source->have >= others[i].len && memcmp(source->piece, others[i].magic, others[i].len) == 0)
			return others[i].name;
	return NULL;
}

const char *
body_source_fault(const struct body_source *source)
{
	return source->fault;
}

static ssize_t
source_plain(struct body_source *source, void *buffer, size_t size)
{
	size_t left = source->have - source->at;

	if (left == 0)
		return source->body_ended ? 0 : source->read(source->arg, buffer, size);
	if (size > left)
		size = left;
	memcpy(buffer, source->piece + source->at, size);
	source->at += size;
	return (ssize_t)size;
}

/* -1: cut; 0: the body has ended; 1: there are bytes. */
static int
source_fill(struct body_source *source)
{
	if (source->at < source->have)
		return 1;
	source->at = source->have = 0;
	if (!source->body_ended && !source_more(source))
		return -1;
	return source->have > 0;
}

/* What follows the last member and is none, such as zeros, is nobody's. */
static ssize_t
source_next_member(struct body_source *source)
{
	int rc = source_fill(source);

	if (rc <= 0)
		return rc;
	if (source->piece[source->at] != 0x1f) {
		source->at = source->have;
		return 0;
	}
	source->member_ended = false;
	return inflateReset(&source->stream) == Z_OK ? 1 : -1;
}

static ssize_t
source_inflate(struct body_source *source, void *buffer, size_t size)
{
	z_stream *stream = &source->stream;

	stream->next_out = buffer;
	stream->avail_out = (uInt)size;
	while (stream->avail_out == size) {
		int rc = source->member_ended ? (int)source_next_member(source) : source_fill(source);

		if (rc < 0 || (rc == 0 && source->member_ended))
			return rc;
		if (rc == 0) {
			source->fault = "the gzip stream ends in the middle";
			return -1;
		}
		stream->next_in = source->piece + source->at;
		stream->avail_in = (uInt)(source->have - source->at);
		rc = inflate(stream, Z_NO_FLUSH);
		source->at = source->have - stream->avail_in;
		source->member_ended = rc == Z_STREAM_END;
		if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
			source->fault = "the gzip stream is broken";
			return -1;
		}
	}
	return (ssize_t)(size - stream->avail_out);
}

ssize_t
body_source_read(void *arg, void *buffer, size_t size)
{
	struct body_source *source = arg;

	return source->gzip ? source_inflate(source, buffer, size) : source_plain(source, buffer, size);
}
