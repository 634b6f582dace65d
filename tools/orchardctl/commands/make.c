/* make.c - waits in pieces that pass load balancers. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/commands/make.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/output/print.h"

#include <json-c/json_object.h>

enum { PIECE_MS = 50000 };

struct json_object *
make_sandbox(struct client *client, struct json_object *body, struct err *err)
{
	struct request request = { .method = "POST", .path = "/sandboxes", .body = body, .once = true };
	AUTO_ANSWER answer = { 0 };

	if (client_call(client, &request, &answer, err) < 0)
		return NULL;
	if (print_member(answer.json, "sandbox_id") == NULL) {
		err_set(err, ERR_INTERNAL, "the server answered, but not as an Orchard server does");
		return NULL;
	}
	return STEAL_PTR(answer.json);
}

static struct json_object *
wait_piece(struct client *client, const char *id, int64_t ms, struct answer *answer, struct err *err)
{
	AUTO_FREE char *path = path_format("/sandboxes/%s/wait", id);
	AUTO_FREE char *timeout = alloc_format("%.3f", (double)ms / 1000);
	struct request request = { .silence_s = (double)ms / 1000 + 30 };

	path_add(&path, "timeout", timeout);
	request.path = path;
	if (client_call(client, &request, answer, err) < 0)
		return NULL;
	return STEAL_PTR(answer->json);
}

struct json_object *
make_wait_ready(struct client *client, const char *id, double timeout_s, struct err *err)
{
	int64_t end = clock_boot_ms() + (int64_t)(timeout_s * 1000);

	for (;;) {
		int64_t left = end - clock_boot_ms();
		AUTO_ANSWER answer = { 0 };
		AUTO_JSON struct json_object *box = NULL;
		const char *status;

		if (left <= 0)
			left = 1;
		box = wait_piece(client, id, left < PIECE_MS ? left : PIECE_MS, &answer, err);
		if (box == NULL && (answer.status != 408 || clock_boot_ms() >= end))
			return NULL;
		if (box == NULL)
			continue;
		status = print_string(box, "status");
		if (strcmp(status, "ready") == 0)
			return STEAL_PTR(box);
		if (strcmp(status, "failed") == 0) {
			const char *why = print_string(box, "status_message");

			err_set(err, ERR_NOT_READY, "sandbox %s failed: %s", id,
				why[0] != '\0' ? why : "no reason given");
			return NULL;
		}
	}
}
