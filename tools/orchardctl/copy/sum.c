/*
 * sum.c - how long a directory's tar will be, by listings.
 *
 * Only an estimate: files change, links of one file are counted each, and long names take more. It is worth a moment
 * and no more, so what is wide or far away has none.
 */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/command.h"
#include "orchardctl/copy/copy.h"
#include "orchardctl/copy/place.h"
#include "orchardctl/output/print.h"

#include <json-c/json_object.h>
#include <math.h>

enum {
	SUM_DIRECTORIES = 256,
	SUM_MS = 1000,
	SUM_SILENCE_S = 2,
	BLOCK = 512,
	BLOCKS_OF_FRACTION = 2 /* a pax record */,
	BLOCKS_OF_END = 2
};

struct sum {
	const struct copy *copy;
	char *directories[SUM_DIRECTORIES]; /* owned */
	size_t found, seen;
	int64_t blocks;
};

static struct json_object *
list(const struct sum *sum, const char *directory)
{
	AUTO_FREE char *path = remote_path(sum->copy, "files/list", directory);
	struct request request = { .path = path, .no_retry = true, .silence_s = SUM_SILENCE_S };
	AUTO_ANSWER answer = { 0 };
	struct err ignored;

	if (client_call(sum->copy->ctl->client, &request, &answer, &ignored) != 0)
		return NULL;
	return json_object_get(print_member(answer.json, "files"));
}

/* False: there are too many directories. */
static bool
add(struct sum *sum, const char *directory, struct json_object *entry)
{
	const char *kind = print_string(entry, "kind");
	double mtime = json_object_get_double(print_member(entry, "mtime"));

	if (strcmp(kind, "socket") == 0)
		return true;
	sum->blocks += 1 + (mtime > floor(mtime) ? BLOCKS_OF_FRACTION : 0);
	if (strcmp(kind, "regular") == 0)
		sum->blocks += (json_object_get_int64(print_member(entry, "size")) + BLOCK - 1) / BLOCK;
	if (strcmp(kind, "directory") != 0)
		return true;
	if (sum->found == SUM_DIRECTORIES)
		return false;
	sum->directories[sum->found++] = place_join(directory, print_string(entry, "name"));
	return true;
}

static bool
add_all(struct sum *sum, const char *directory)
{
	AUTO_JSON struct json_object *files = list(sum, directory);
	bool known = files != NULL && json_object_is_type(files, json_type_array);

	for (size_t i = 0; known && i < json_object_array_length(files); i++)
		known = add(sum, directory, json_object_array_get_idx(files, i));
	return known;
}

int64_t
remote_sum(const struct copy *copy, const char *directory)
{
	struct sum sum = { .copy = copy, .blocks = 1 + BLOCKS_OF_FRACTION + BLOCKS_OF_END };
	int64_t end_ms = clock_boot_ms() + SUM_MS;
	bool known = true;

	sum.directories[sum.found++] = alloc_string(directory);
	while (known && sum.seen < sum.found)
		known = clock_boot_ms() < end_ms && add_all(&sum, sum.directories[sum.seen++]);
	for (size_t i = 0; i < sum.found; i++)
		free(sum.directories[i]);
	return known ? sum.blocks * BLOCK : -1;
}
