/* read.c - blocks into entries. */
/* SPDX-License-Identifier: MIT */
#include "agent/tar/read.h"

#include "base/alloc.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { READ_OLD_SPANS = 4, READ_MORE_SPANS = 21, READ_SPAN = 24, READ_SKIP = 32 << 10 };

/* Where GNU's old form of a sparse file keeps its map and size. */
enum { OLD_SPANS_AT = 386, OLD_MORE_AT = 482, OLD_SIZE_AT = 483, MORE_MORE_AT = 504 };

void
tar_reader_init(struct tar_reader *reader, const struct tar_source *source)
{
	*reader = (struct tar_reader){ .source = *source };
	tar_pax_init(&reader->global, NULL);
	tar_pax_init(&reader->next, NULL);
}

static void
entry_fini(struct tar_entry *entry)
{
	free(entry->path);
	free(entry->link);
	free(entry->spans);
	*entry = (struct tar_entry){ .path = NULL };
}

void
tar_reader_fini(struct tar_reader *reader)
{
	tar_pax_fini(&reader->global);
	tar_pax_fini(&reader->next);
	free(reader->long_path);
	free(reader->long_link);
	entry_fini(&reader->entry);
}

static int
reader_failed(struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "the archive did not come whole");
}

/* 1: all of size; 0: the source ended before the first byte; -1. */
static int
reader_fill(struct tar_reader *reader, void *buffer, size_t size, struct err *err)
{
	size_t have = 0;

	while (have < size) {
		ssize_t n = reader->source.read(reader->source.arg, (char *)buffer + have, size - have);

		if (n < 0)
			return reader_failed(err);
		if (n == 0 && have == 0)
			return 0;
		if (n == 0)
			return err_set(err, ERR_INVALID, "the archive ends in the middle of an entry");
		have += (size_t)n;
	}
	return 1;
}

static int
reader_need(struct tar_reader *reader, void *buffer, size_t size, struct err *err)
{
	int rc = reader_fill(reader, buffer, size, err);

	return rc == 0 ? err_set(err, ERR_INVALID, "the archive ends in the middle of an entry") : rc < 0 ? -1 : 0;
}

ssize_t
tar_reader_data(struct tar_reader *reader, void *buffer, size_t size, struct err *err)
{
	ssize_t n;

	if (reader->left == 0)
		return 0;
	if ((int64_t)size > reader->left)
		size = (size_t)reader->left;
	n = reader->source.read(reader->source.arg, buffer, size);
	if (n < 0)
		return reader_failed(err);
	if (n == 0)
		return err_set(err, ERR_INVALID, "the archive ends in the middle of an entry");
	reader->left -= n;
	return n;
}

static int
reader_skip(struct tar_reader *reader, struct err *err)
{
	static char nowhere[READ_SKIP];
	ssize_t n;

	reader->left += reader->padding;
	reader->padding = 0;
	do {
		n = tar_reader_data(reader, nowhere, sizeof nowhere, err);
	} while (n > 0);
	return (int)n;
}

/* --- fields --- */

/* Octal with spaces and NULs around, or base-256; false: neither. */
static bool
field_number(const char *field, size_t size, int64_t *ret)
{
	const unsigned char *bytes = (const unsigned char *)field;
	uint64_t value = 0;
	size_t at = 0;

	if (bytes[0] == 0x80 || bytes[0] == 0xff) {
		value = bytes[0] == 0xff ? UINT64_MAX : 0;
		for (at = 1; at < size; at++) {
			if (at + 8 < size && bytes[at] != (bytes[0] == 0xff ? 0xff : 0))
				return false;
			value = value << 8 | bytes[at];
		}
		*ret = (int64_t)value;
		return (*ret < 0) == (bytes[0] == 0xff);
	}
	while (at < size && field[at] == ' ')
		at++;
	for (; at < size && field[at] >= '0' && field[at] <= '7'; at++)
		value = value * 8 + (unsigned)(field[at] - '0');
	*ret = (int64_t)value;
	return at == size || field[at] == ' ' || field[at] == '\0';
}

static bool
header_is_right(const struct tar_header *header)
{
	const unsigned char *bytes = (const unsigned char *)header;
	const size_t from = offsetof(struct tar_header, checksum), to = from + sizeof header->checksum;
	int64_t wanted, sum = 0, signed_sum = 0;

	for (size_t i = 0; i < sizeof *header; i++) {
		unsigned char byte = i >= from && i < to ? ' ' : bytes[i];

		sum += byte;
		signed_sum += (signed char)byte;
	}
	return field_number(header->checksum, sizeof header->checksum, &wanted) &&
		(wanted == sum || wanted == signed_sum);
}

static char *
field_text(const char *field, size_t size)
{
	return alloc_format("%.*s", (int)strnlen(field, size), field);
}

static char *
header_path(const struct tar_header *header)
{
	AUTO_FREE char *name = field_text(header->name, sizeof header->name);

	/* GNU's own form ends in a space here, and has other things where the prefix is. */
	if (memcmp(header->magic, "ustar", sizeof header->magic) != 0 || header->prefix[0] == '\0')
		return STEAL_PTR(name);
	return alloc_format("%.*s/%s", (int)strnlen(header->prefix, sizeof header->prefix), header->prefix, name);
}

/* --- what stands before an entry --- */

/* The data of a header of headers, with a NUL behind. */
static int
reader_extra(struct tar_reader *reader, int64_t size, char **ret_text, struct err *err)
{
	AUTO_FREE char *text = NULL;
	char padding[TAR_BLOCK];

	if (size < 0 || size > TAR_MAX_PAX)
		return err_set(err, ERR_TOO_LARGE, "a header of an entry has more than %d bytes", TAR_MAX_PAX);
	text = alloc_zero(1, (size_t)size + 1);
	if (size > 0 && reader_need(reader, text, (size_t)size, err) < 0)
		return -1;
	size = -size & (TAR_BLOCK - 1);
	if (size > 0 && reader_need(reader, padding, (size_t)size, err) < 0)
		return -1;
	*ret_text = STEAL_PTR(text);
	return 0;
}

static int
reader_extra_header(struct tar_reader *reader, char type, int64_t size, struct err *err)
{
	AUTO_FREE char *text = NULL;

	if (reader_extra(reader, size, &text, err) < 0)
		return -1;
	if (type == 'g' || type == 'x' || type == 'X')
		return tar_pax_read(type == 'g' ? &reader->global : &reader->next, text, (size_t)size, err);
	if (type == 'L' || type == 'K') {
		char **name = type == 'L' ? &reader->long_path : &reader->long_link;

		if (strlen(text) > TAR_MAX_NAME)
			return err_set(
				err, ERR_INVALID, "the name of an entry is longer than %d bytes", TAR_MAX_NAME);
		free(*name);
		*name = STEAL_PTR(text);
	}
	return 0; /* a volume's label and the like */
}

/* --- sparse files --- */

static int
old_spans(struct tar_pax *pax, const char *at, int count, struct err *err)
{
	for (int i = 0; i < count && at[i * READ_SPAN] != '\0'; i++) {
		int64_t offset, len;

		if (!field_number(at + i * READ_SPAN, 12, &offset) ||
			!field_number(at + i * READ_SPAN + 12, 12, &len))
			return err_set(err, ERR_INVALID, "the map of a sparse file is wrong");
		if (tar_pax_add_span(pax, offset, len, err) < 0)
			return -1;
	}
	return 0;
}

static int
old_sparse(struct tar_reader *reader, const struct tar_header *header, struct err *err)
{
	const char *block = (const char *)header;
	struct tar_pax *pax = &reader->next;
	char more[TAR_BLOCK];
	bool goes_on = block[OLD_MORE_AT] != '\0';

	pax->is_sparse = true;
	pax->has_real_size = field_number(block + OLD_SIZE_AT, 12, &pax->real_size);
	if (old_spans(pax, block + OLD_SPANS_AT, READ_OLD_SPANS, err) < 0)
		return -1;
	while (goes_on) {
		if (reader_need(reader, more, sizeof more, err) < 0 ||
			old_spans(pax, more, READ_MORE_SPANS, err) < 0)
			return -1;
		goes_on = more[MORE_MORE_AT] != '\0';
	}
	return 0;
}

/* One line with a number of the map that stands before the data; the block it is in is used up byte by byte. */
static int
map_number(struct tar_reader *reader, char *block, size_t *at, int64_t *ret, struct err *err)
{
	int64_t value = 0;

	for (int digits = 0; digits < 20; digits++) {
		if (*at == TAR_BLOCK) {
			if (reader->left + reader->padding < TAR_BLOCK ||
				reader_need(reader, block, TAR_BLOCK, err) < 0)
				break;
			reader->left -= TAR_BLOCK;
			*at = 0;
		}
		if (block[(*at)++] == '\n' && digits > 0) {
			*ret = value;
			return 0;
		}
		if (block[*at - 1] < '0' || block[*at - 1] > '9' || value > (INT64_MAX - 9) / 10)
			break;
		value = value * 10 + (block[*at - 1] - '0');
	}
	return err_set(err, ERR_INVALID, "the map of a sparse file is wrong");
}

/* GNU's form 1.0: the map is the first blocks of the data. */
static int
data_sparse(struct tar_reader *reader, struct err *err)
{
	size_t at = TAR_BLOCK;
	char block[TAR_BLOCK];
	int64_t count, offset, len;

	if (map_number(reader, block, &at, &count, err) < 0)
		return -1;
	for (int64_t i = 0; i < count; i++)
		if (map_number(reader, block, &at, &offset, err) < 0 ||
			map_number(reader, block, &at, &len, err) < 0 ||
			tar_pax_add_span(&reader->next, offset, len, err) < 0)
			return -1;
	return reader->left < 0 ? err_set(err, ERR_INVALID, "the map of a sparse file is wrong") : 0;
}

/* The pieces rise, are within the file, and have as many bytes as come. */
static int
take_spans(struct tar_reader *reader, struct err *err)
{
	struct tar_entry *entry = &reader->entry;
	struct tar_pax *pax = &reader->next;
	int64_t end = 0, all = 0;

	if (pax->sparse_major == 1 && data_sparse(reader, err) < 0)
		return -1;
	for (size_t i = 0; i < pax->span_count; i++) {
		const struct tar_span *span = &pax->spans[i];

		if (span->offset < end || span->len < 0 || span->offset > INT64_MAX - span->len)
			return err_set(err, ERR_INVALID, "the map of a sparse file is wrong");
		end = span->offset + span->len;
		all += span->len;
	}
	if (!pax->has_real_size || pax->real_size < end || all != reader->left)
		return err_set(err, ERR_INVALID, "the map of a sparse file does not fit its size");
	entry->size = pax->real_size;
	entry->spans = pax->spans != NULL ? STEAL_PTR(pax->spans) : alloc_zero(1, sizeof *entry->spans);
	entry->span_count = pax->span_count;
	return 0;
}

/* --- an entry --- */

static bool
type_is_known(char type)
{
	return type != '\0' && strchr("01234567SD", type) != NULL;
}

static enum tar_type
entry_type(char type, const char *path)
{
	size_t len = strlen(path);

	if (type == 'D')
		return TAR_DIRECTORY;
	if (type >= TAR_HARD_LINK && type <= TAR_FIFO)
		return (enum tar_type)type;
	/* Before ustar a slash at the end was all that made a directory. */
	return type == '0' && len > 0 && path[len - 1] == '/' ? TAR_DIRECTORY : TAR_FILE;
}

static void
entry_names(struct tar_reader *reader, const struct tar_header *header)
{
	struct tar_entry *entry = &reader->entry;
	struct tar_pax *pax = &reader->next;

	if (pax->sparse_name != NULL)
		entry->path = STEAL_PTR(pax->sparse_name);
	else if (pax->path != NULL && *pax->path != '\0')
		entry->path = STEAL_PTR(pax->path);
	else
		entry->path = reader->long_path != NULL ? STEAL_PTR(reader->long_path) : header_path(header);
	if (header->type != TAR_HARD_LINK && header->type != TAR_SYMLINK)
		return;
	if (pax->link != NULL && *pax->link != '\0')
		entry->link = STEAL_PTR(pax->link);
	else
		entry->link = reader->long_link != NULL ? STEAL_PTR(reader->long_link)
							: field_text(header->link, sizeof header->link);
}

static int
entry_numbers(struct tar_reader *reader, const struct tar_header *header, int64_t size, struct err *err)
{
	struct tar_entry *entry = &reader->entry;
	const struct tar_pax *pax = &reader->next;
	int64_t mode = 0, major = 0, minor = 0;

	if (!field_number(header->mode, sizeof header->mode, &mode) ||
		!field_number(header->uid, sizeof header->uid, &entry->uid) ||
		!field_number(header->gid, sizeof header->gid, &entry->gid) ||
		!field_number(header->mtime, sizeof header->mtime, &entry->mtime_s))
		return err_set(err, ERR_INVALID, "a number in the header of %.200s is wrong", entry->path);
	if (entry->type == TAR_CHARACTER || entry->type == TAR_BLOCK_DEVICE)
		if (!field_number(header->dev_major, sizeof header->dev_major, &major) ||
			!field_number(header->dev_minor, sizeof header->dev_minor, &minor))
			return err_set(err, ERR_INVALID, "the device number of %.200s is wrong", entry->path);
	entry->mode = (unsigned)mode & 07777;
	entry->dev_major = (unsigned)major;
	entry->dev_minor = (unsigned)minor;
	entry->uid = pax->has_uid ? pax->uid : entry->uid;
	entry->gid = pax->has_gid ? pax->gid : entry->gid;
	entry->mtime_s = pax->has_mtime ? pax->mtime_s : entry->mtime_s;
	entry->mtime_ns = pax->has_mtime ? pax->mtime_ns : 0;
	entry->size = entry->type == TAR_FILE ? size : 0;
	return 0;
}

/* Links and the like may name a size, but only files, and GNU's lists of a directory, have data. */
static int
entry_take(struct tar_reader *reader, const struct tar_header *header, int64_t size, struct err *err)
{
	struct tar_entry *entry = &reader->entry;

	if (!type_is_known(header->type == '\0' ? '0' : header->type))
		return err_set(
			err, ERR_INVALID, "entries of type 0x%02x are not known", (unsigned char)header->type);
	entry_names(reader, header);
	entry->type = entry_type(header->type == '\0' ? '0' : header->type, entry->path);
	if (entry_numbers(reader, header, size, err) < 0)
		return -1;
	if (header->type == 'S' && old_sparse(reader, header, err) < 0)
		return -1;
	if (entry->type != TAR_FILE && header->type != 'D')
		size = 0;
	reader->left = size;
	reader->padding = -size & (TAR_BLOCK - 1);
	return reader->next.is_sparse && entry->type == TAR_FILE ? take_spans(reader, err) : 0;
}

static void
reader_forget(struct tar_reader *reader)
{
	tar_pax_fini(&reader->next);
	tar_pax_init(&reader->next, &reader->global);
	free(reader->long_path);
	free(reader->long_link);
	reader->long_path = reader->long_link = NULL;
	entry_fini(&reader->entry);
}

/* 1: a header; 0: the end; -1. */
static int
reader_header(struct tar_reader *reader, struct tar_header *header, int64_t *ret_size, struct err *err)
{
	static const struct tar_header nothing;
	int rc = reader_fill(reader, header, sizeof *header, err);

	reader->is_empty = rc == 0 && reader->entries == 0;
	if (rc <= 0)
		return rc;
	if (memcmp(header, &nothing, sizeof nothing) == 0)
		return 0;
	if (!header_is_right(header))
		return err_set(err, ERR_INVALID,
			reader->entries == 0 ? "it is no tar archive" : "the header of an entry is broken");
	if (!field_number(header->size, sizeof header->size, ret_size) || *ret_size < 0)
		return err_set(err, ERR_INVALID, "the size of an entry is wrong");
	return 1;
}

int
tar_reader_next(struct tar_reader *reader, const struct tar_entry **ret_entry, struct err *err)
{
	struct tar_header header;
	int64_t size = 0;
	int rc;

	if (reader->ended)
		return 0;
	if (reader_skip(reader, err) < 0)
		return -1;
	reader_forget(reader);
	while ((rc = reader_header(reader, &header, &size, err)) > 0) {
		if (header.type == '\0' || strchr("LKxXgVN", header.type) == NULL)
			break;
		if (reader_extra_header(reader, header.type, size, err) < 0)
			return -1;
		reader->entries++;
		if (header.type == 'g')
			reader_forget(reader);
	}
	reader->ended = rc == 0;
	if (rc <= 0)
		return rc;
	reader->entries++;
	if (reader->next.has_size)
		size = reader->next.size;
	if (size > INT64_MAX - TAR_BLOCK)
		return err_set(err, ERR_INVALID, "the size of an entry is wrong");
	if (entry_take(reader, &header, size, err) < 0)
		return -1;
	*ret_entry = &reader->entry;
	return 1;
}
