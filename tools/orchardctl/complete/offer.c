/* offer.c - what is offered, and asked of the server for that. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/complete/offer.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/complete/line.h"
#include "orchardctl/output/cell.h"
#include "orchardctl/output/print.h"

#include <ctype.h>
#include <json-c/json_object.h>
#include <stdio.h>

#define PATIENCE_S    3.0
#define SANDBOXES_MAX "1000"
#define ENTRIES_MAX   "1000"
enum {
	LOOKED_AT = 10, /* sandboxes whose jobs are asked for: each is a request */
	ABOUT_LEN = 60
};

static bool
is_printable(const char *word)
{
	for (; *word != '\0'; word++)
		if (iscntrl((unsigned char)*word))
			return false;
	return true;
}

void
offer(const struct line *line, const char *word, const char *end, const char *about)
{
	AUTO_FREE char *shown = about != NULL ? cell_line(about) : NULL;
	size_t len = shown != NULL ? strlen(shown) : 0;

	if (strncmp(word, line->typed, strlen(line->typed)) != 0 || !is_printable(word))
		return;
	printf("%.*s%s%s", line->before_len, line->before, word, end != NULL ? end : "");
	if (len > ABOUT_LEN)
		for (len = ABOUT_LEN; (shown[len] & 0xc0) == 0x80; len--)
			;
	if (len > 0)
		printf("\t%.*s", (int)len, shown);
	putchar('\n');
}

void
offer_files(void)
{
	puts(":files");
}

void
offer_words(const struct line *line, const char *words)
{
	while (*words != '\0') {
		size_t len = strcspn(words, " ");
		AUTO_FREE char *word = alloc_format("%.*s", (int)len, words);

		offer(line, word, NULL, NULL);
		words += len + strspn(words + len, " ");
	}
}

/* The array of that name in the answer, whose owner is *ret_answer; NULL: there is none. */
static struct json_object *
ask(const struct ctl *ctl, const char *path, const char *name, struct answer *answer)
{
	const struct request request = { .path = path, .silence_s = PATIENCE_S, .no_retry = true };
	struct err err;

	return client_call(ctl->client, &request, answer, &err) == 0 ? print_array(answer->json, name) : NULL;
}

void
offer_sandboxes(const struct ctl *ctl, const struct line *line, const char *end)
{
	AUTO_ANSWER answer = { 0 };
	struct json_object *boxes = ask(ctl, "/sandboxes?limit=" SANDBOXES_MAX, "sandboxes", &answer);

	for (size_t i = 0; boxes != NULL && i < json_object_array_length(boxes); i++) {
		struct json_object *box = json_object_array_get_idx(boxes, i);
		AUTO_FREE char *about = alloc_format(
			"%s, %s", print_string(box, "status"), print_string(box, "image"));

		offer(line, print_string(box, "sandbox_id"), end, about);
	}
}

static void
offer_job(const struct line *line, struct json_object *job, const char *sandbox, bool live)
{
	struct json_object *command = print_member(job, "command");
	const char *status = print_string(job, "status");
	AUTO_FREE char *about = NULL;

	if (live && strcmp(status, "queued") != 0 && strcmp(status, "running") != 0)
		return;
	about = alloc_format(
		"%s in %s: %s", status, sandbox, command != NULL ? json_object_get_string(command) : "");
	offer(line, print_string(job, "job_id"), NULL, about);
}

void
offer_jobs(const struct ctl *ctl, const struct line *line, bool live)
{
	AUTO_ANSWER answer = { 0 };
	struct json_object *boxes = ask(ctl, "/sandboxes?status=ready&limit=10", "sandboxes", &answer);

	for (size_t i = 0; boxes != NULL && i < json_object_array_length(boxes) && i < LOOKED_AT; i++) {
		const char *sandbox = print_string(json_object_array_get_idx(boxes, i), "sandbox_id");
		AUTO_FREE char *path = path_format("/sandboxes/%s/jobs?limit=20", sandbox);
		AUTO_ANSWER page = { 0 };
		struct json_object *jobs = ask(ctl, path, "jobs", &page);

		for (size_t j = 0; jobs != NULL && j < json_object_array_length(jobs); j++)
			offer_job(line, json_object_array_get_idx(jobs, j), sandbox, live);
	}
}

void
offer_paths(
	const struct ctl *ctl, const struct line *line, const char *sandbox, const char *before, const char *path)
{
	const char *slash = strrchr(path, '/');
	int dir_len = slash != NULL ? (int)(slash + 1 - path) : 0;
	AUTO_FREE char *dir = alloc_format("%.*s", dir_len, path);
	AUTO_FREE char *query = path_format("/sandboxes/%s/files/list?limit=" ENTRIES_MAX, sandbox);
	bool hidden = path[dir_len] == '.';
	AUTO_ANSWER answer = { 0 };
	struct json_object *entries;

	path_add(&query, "path", dir_len > 0 ? dir : NULL);
	entries = ask(ctl, query, "files", &answer);
	for (size_t i = 0; entries != NULL && i < json_object_array_length(entries); i++) {
		struct json_object *entry = json_object_array_get_idx(entries, i);
		const char *name = print_string(entry, "name");
		AUTO_FREE char *word = alloc_format("%s%s%s", before, dir, name);

		if (name[0] != '.' || hidden)
			offer(line, word, strcmp(print_string(entry, "type"), "directory") == 0 ? "/" : NULL, NULL);
	}
}
