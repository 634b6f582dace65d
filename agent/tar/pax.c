/* pax.c - records "LEN key=value\n": names, numbers, times, and GNU's maps of sparse files. */
/* SPDX-License-Identifier: MIT */
#include "agent/tar/read.h"

#include "base/alloc.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { PAX_MAX_DIGITS = 7, PAX_NS_DIGITS = 9 };

static char *
copy_or_null(const char *text)
{
	return text != NULL ? alloc_string(text) : NULL;
}

/* Sparse files are never global. */
void
tar_pax_init(struct tar_pax *pax, const struct tar_pax *from)
{
	*pax = from != NULL ? *from : (struct tar_pax){ .path = NULL };
	pax->path = copy_or_null(pax->path);
	pax->link = copy_or_null(pax->link);
	pax->sparse_name = NULL;
	pax->has_real_size = false;
	pax->sparse_major = pax->sparse_minor = -1;
	pax->spans = NULL;
	pax->span_count = pax->span_size = 0;
	pax->span_offset = -1;
	pax->is_sparse = false;
}

void
tar_pax_fini(struct tar_pax *pax)
{
	free(pax->path);
	free(pax->link);
	free(pax->sparse_name);
	free(pax->spans);
	*pax = (struct tar_pax){ .path = NULL };
}

int
tar_pax_add_span(struct tar_pax *pax, int64_t offset, int64_t len, struct err *err)
{
	if (pax->span_count == TAR_MAX_SPANS)
		return err_set(err, ERR_TOO_LARGE, "a sparse file has more than %d pieces", TAR_MAX_SPANS);
	if (pax->span_count == pax->span_size) {
		pax->span_size = pax->span_size > 0 ? pax->span_size * 2 : 16;
		pax->spans = alloc_resize(pax->spans, pax->span_size * sizeof *pax->spans);
	}
	pax->spans[pax->span_count++] = (struct tar_span){ offset, len };
	return 0;
}

/* A decimal number of at least 0 up to end; -1: none. *at is behind it. */
static int64_t
pax_number(const char **at, const char *end)
{
	int64_t value = 0;
	const char *start = *at;

	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
		if (value > (INT64_MAX - 9) / 10)
			return -1;
		value = value * 10 + (**at - '0');
	}
	return *at > start ? value : -1;
}

static bool
pax_whole_number(const char *at, const char *end, int64_t *ret)
{
	int64_t value = pax_number(&at, end);

	if (value < 0 || at != end)
		return false;
	*ret = value;
	return true;
}

static bool
pax_time(const char *at, const char *end, struct tar_pax *pax)
{
	bool minus = at < end && *at == '-';
	int64_t s;
	int ns = 0, digits = 0;

	at += minus;
	s = pax_number(&at, end);
	if (s < 0)
		return false;
	if (at < end && *at == '.')
		for (at++; at < end && *at >= '0' && *at <= '9'; at++, digits++)
			if (digits < PAX_NS_DIGITS)
				ns = ns * 10 + (*at - '0');
	for (; digits < PAX_NS_DIGITS; digits++)
		ns *= 10;
	pax->has_mtime = at == end;
	pax->mtime_s = minus ? -s - (ns > 0) : s;
	pax->mtime_ns = minus && ns > 0 ? 1000000000 - ns : ns;
	return at == end;
}

/* offset,len,offset,len... */
static int
pax_map(struct tar_pax *pax, const char *at, const char *end, struct err *err)
{
	while (at < end) {
		int64_t offset = pax_number(&at, end), len;

		if (offset < 0 || at == end || *at++ != ',')
			return err_set(err, ERR_INVALID, "the map of a sparse file is wrong");
		len = pax_number(&at, end);
		if (len < 0 || (at < end && *at++ != ','))
			return err_set(err, ERR_INVALID, "the map of a sparse file is wrong");
		if (tar_pax_add_span(pax, offset, len, err) < 0)
			return -1;
	}
	return 0;
}

/* 1: it was one of these; 0: not; -1. */
static int
pax_sparse(struct tar_pax *pax, const char *key, const char *at, const char *end, struct err *err)
{
	int64_t number = 0;
	bool is_number = pax_whole_number(at, end, &number), right = true;

	if (strncmp(key, "GNU.sparse.", 11) != 0)
		return 0;
	key += 11;
	pax->is_sparse = true;
	if (strcmp(key, "map") == 0)
		return pax_map(pax, at, end, err) < 0 ? -1 : 1;
	if (strcmp(key, "offset") == 0)
		pax->span_offset = (right = is_number) ? number : -1;
	else if (strcmp(key, "numbytes") == 0 && pax->span_offset >= 0 && is_number) {
		if (tar_pax_add_span(pax, pax->span_offset, number, err) < 0)
			return -1;
		pax->span_offset = -1;
	} else if (strcmp(key, "size") == 0 || strcmp(key, "realsize") == 0) {
		pax->has_real_size = right = is_number;
		pax->real_size = number;
	} else if (strcmp(key, "major") == 0 || strcmp(key, "minor") == 0) {
		right = is_number && number <= 1;
		*(key[1] == 'a' ? &pax->sparse_major : &pax->sparse_minor) = (int)number;
	} else {
		right = strcmp(key, "numblocks") == 0;
	}
	return right ? 1 : err_set(err, ERR_INVALID, "GNU.sparse.%.32s of a sparse file is wrong", key);
}

static int
pax_name(char **name, const char *key, const char *at, const char *end, struct err *err)
{
	size_t len = (size_t)(end - at);

	if (len > TAR_MAX_NAME || memchr(at, '\0', len) != NULL)
		return err_set(err, ERR_INVALID, "the %s of an entry is longer than %d bytes, or has a NUL", key,
			TAR_MAX_NAME);
	free(*name);
	*name = alloc_zero(1, len + 1);
	memcpy(*name, at, len);
	return 0;
}

/* An empty value takes back what a global header said. */
static int
pax_record(struct tar_pax *pax, const char *key, const char *at, const char *end, struct err *err)
{
	bool right = true, given = at < end;
	int rc;

	if (strcmp(key, "path") == 0)
		return pax_name(&pax->path, key, at, end, err);
	if (strcmp(key, "linkpath") == 0)
		return pax_name(&pax->link, key, at, end, err);
	if (strcmp(key, "GNU.sparse.name") == 0)
		return pax_name(&pax->sparse_name, key, at, end, err);
	rc = pax_sparse(pax, key, at, end, err);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	if (strcmp(key, "size") == 0)
		right = !(pax->has_size = given) || pax_whole_number(at, end, &pax->size);
	else if (strcmp(key, "uid") == 0)
		right = !(pax->has_uid = given) || pax_whole_number(at, end, &pax->uid);
	else if (strcmp(key, "gid") == 0)
		right = !(pax->has_gid = given) || pax_whole_number(at, end, &pax->gid);
	else if (strcmp(key, "mtime") == 0)
		right = given ? pax_time(at, end, pax) : !(pax->has_mtime = false);
	return right ? 0 : err_set(err, ERR_INVALID, "the %s of an entry is no number", key);
}

int
tar_pax_read(struct tar_pax *pax, const char *text, size_t len, struct err *err)
{
	const char *end = text + len;

	while (text < end && *text != '\0') {
		const char *at = text, *equals;
		int64_t size = pax_number(&at, end - text < PAX_MAX_DIGITS ? end : text + PAX_MAX_DIGITS);
		AUTO_FREE char *key = NULL;

		if (size < 1 || size > end - text || at == end || *at != ' ' || text + size <= at + 1 ||
			text[size - 1] != '\n')
			return err_set(err, ERR_INVALID, "a pax header is broken");
		at++;
		equals = memchr(at, '=', (size_t)(text + size - at));
		if (equals == NULL)
			return err_set(err, ERR_INVALID, "a pax header is broken");
		key = alloc_format("%.*s", (int)(equals - at), at);
		if (pax_record(pax, key, equals + 1, text + size - 1, err) < 0)
			return -1;
		text += size;
	}
	return 0;
}
