/* write.c - ustar headers, and pax records for what does not fit or would lose its fraction. */
/* SPDX-License-Identifier: MIT */
#include "agent/tar/write.h"

#include "base/alloc.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRITE_MAX_ID = 07777777 };
#define WRITE_MAX_SIZE ((int64_t)077777777777)

void
tar_text_fini(struct tar_text *text)
{
	free(text->bytes);
	*text = (struct tar_text){ .bytes = NULL };
}

static char *
text_room(struct tar_text *text, size_t len)
{
	if (text->len + len > text->size) {
		text->size = (text->len + len) * 2;
		text->bytes = alloc_resize(text->bytes, text->size);
	}
	text->len += len;
	return text->bytes + text->len - len;
}

static void
text_pad(struct tar_text *text)
{
	size_t padding = tar_padding((int64_t)text->len);

	if (padding > 0)
		memset(text_room(text, padding), 0, padding);
}

size_t
tar_padding(int64_t size)
{
	return (size_t)(-(uint64_t)size % TAR_BLOCK);
}

/* "LEN key=value\n"; LEN counts its own digits. */
static void
pax_add(struct tar_text *text, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, len = rest + 1;
	char digits[24];

	while (rest + (size_t)snprintf(digits, sizeof digits, "%zu", len) != len)
		len = rest + strlen(digits);
	/* Room for the NUL that snprintf() writes behind. */
	snprintf(text_room(text, len + 1), len + 1, "%s %s=%s\n", digits, key, value);
	text->len--;
}

static void
pax_add_number(struct tar_text *text, const char *key, int64_t value)
{
	char digits[24];

	snprintf(digits, sizeof digits, "%" PRId64, value);
	pax_add(text, key, digits);
}

/* Before 1970 the fraction counts towards zero. */
static void
pax_add_time(struct tar_text *text, const struct tar_entry *entry)
{
	int64_t s = entry->mtime_s;
	int ns = entry->mtime_ns;
	bool minus = s < 0;
	char value[48];

	if (minus && ns > 0) {
		s++;
		ns = 1000000000 - ns;
	}
	snprintf(value, sizeof value, "%s%" PRIu64 ".%09d", minus ? "-" : "", minus ? -(uint64_t)s : (uint64_t)s,
		ns);
	pax_add(text, "mtime", value);
}

static bool
name_is_binary(const char *name)
{
	return name != NULL && !text_is_utf8(name, strlen(name));
}

/* The header itself takes any bytes; not so pax, unless it is told, which GNU tar remarks on. */
static void
pax_records(const struct tar_entry *entry, struct tar_text *text)
{
	bool long_path = strlen(entry->path) > sizeof((struct tar_header *)NULL)->name;
	bool long_link = entry->link != NULL && strlen(entry->link) > sizeof((struct tar_header *)NULL)->link;

	if ((long_path && name_is_binary(entry->path)) || (long_link && name_is_binary(entry->link)))
		pax_add(text, "hdrcharset", "BINARY");
	if (long_path)
		pax_add(text, "path", entry->path);
	if (long_link)
		pax_add(text, "linkpath", entry->link);
	if (entry->size > WRITE_MAX_SIZE)
		pax_add_number(text, "size", entry->size);
	if (entry->uid > WRITE_MAX_ID)
		pax_add_number(text, "uid", entry->uid);
	if (entry->gid > WRITE_MAX_ID)
		pax_add_number(text, "gid", entry->gid);
	if (entry->mtime_ns != 0 || entry->mtime_s < 0 || entry->mtime_s > WRITE_MAX_SIZE)
		pax_add_time(text, entry);
}

/* What does not fit stands in a pax record. */
static void
put_octal(char *field, size_t size, int64_t value, int64_t max)
{
	char digits[24];

	if (value < 0 || value > max)
		value = 0;
	snprintf(digits, sizeof digits, "%0*" PRIo64, (int)size - 1, (uint64_t)value);
	memcpy(field, digits, size);
}

static void
put_name(char *field, size_t size, const char *name)
{
	size_t len = strlen(name);

	memcpy(field, name, len < size ? len : size);
}

static void
put_checksum(struct tar_header *header)
{
	const unsigned char *bytes = (const unsigned char *)header;
	char digits[24];
	unsigned sum = 0;

	memset(header->checksum, ' ', sizeof header->checksum);
	for (size_t i = 0; i < sizeof *header; i++)
		sum += bytes[i];
	snprintf(digits, sizeof digits, "%06o", sum);
	memcpy(header->checksum, digits, 7); /* its NUL, and the space stays */
}

static void
put_header(const struct tar_entry *entry, char type, int64_t size, struct tar_text *text)
{
	struct tar_header header = { .type = type };

	put_name(header.name, sizeof header.name, entry->path);
	if (entry->link != NULL)
		put_name(header.link, sizeof header.link, entry->link);
	put_octal(header.mode, sizeof header.mode, entry->mode & 07777, 07777);
	put_octal(header.uid, sizeof header.uid, entry->uid, WRITE_MAX_ID);
	put_octal(header.gid, sizeof header.gid, entry->gid, WRITE_MAX_ID);
	put_octal(header.size, sizeof header.size, size, WRITE_MAX_SIZE);
	put_octal(header.mtime, sizeof header.mtime, entry->mtime_s, WRITE_MAX_SIZE);
	memcpy(header.magic, "ustar", sizeof header.magic);
	memcpy(header.version, "00", sizeof header.version);
	if (type == TAR_CHARACTER || type == TAR_BLOCK_DEVICE) {
		put_octal(header.dev_major, sizeof header.dev_major, entry->dev_major, WRITE_MAX_ID);
		put_octal(header.dev_minor, sizeof header.dev_minor, entry->dev_minor, WRITE_MAX_ID);
	}
	put_checksum(&header);
	memcpy(text_room(text, sizeof header), &header, sizeof header);
}

void
tar_write_header(const struct tar_entry *entry, struct tar_text *ret_text)
{
	static char pax_path[] = "././@PaxHeader";
	struct tar_entry pax = { .path = pax_path, .mode = 0644 };
	struct tar_text records = { .bytes = NULL };

	ret_text->len = 0;
	pax_records(entry, &records);
	if (records.len > 0) {
		put_header(&pax, 'x', (int64_t)records.len, ret_text);
		memcpy(text_room(ret_text, records.len), records.bytes, records.len);
		text_pad(ret_text);
	}
	tar_text_fini(&records);
	put_header(entry, (char)entry->type, entry->type == TAR_FILE ? entry->size : 0, ret_text);
}
