/* try_sandbox.c - the one proof that all of it works: a sandbox, a command in it, and its end. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/command.h"
#include "orchardctl/doctor/finding.h"
#include "orchardctl/output/cell.h"
#include "orchardctl/output/print.h"

#include <json-c/json_object.h>

static int
post(struct findings *findings, const char *path, const char *json, struct answer *answer, struct err *err)
{
	AUTO_JSON struct json_object *body = json_parse(json, strlen(json), err);
	struct request request = { .method = "POST", .path = path, .body = body, .once = true };

	return client_call(findings->ctl->client, &request, answer, err);
}

static bool
await_ready(struct findings *findings, const char *id)
{
	AUTO_FREE char *path = path_format("/sandboxes/%s/wait?timeout=60", id);
	struct err err;
	AUTO_JSON struct json_object *box = client_get(findings->ctl->client, path, &err);

	if (box == NULL)
		finding_add(findings, FINDING_FAIL, "sandbox", NULL, "%s", err.msg);
	else if (strcmp(print_string(box, "status"), "ready") != 0)
		finding_add(findings, FINDING_FAIL, "sandbox", "docs/local-driver.md has a cure for each message",
			"%s: %s", print_string(box, "status"), print_string(box, "status_message"));
	else
		return true;
	return false;
}

static void
try_command(struct findings *findings, const char *id, int64_t began_ms)
{
	AUTO_FREE char *path = path_format("/sandboxes/%s/exec", id), *took = NULL;
	AUTO_ANSWER answer = { 0 };
	struct err err;

	if (post(findings, path, "{\"command\":[\"/bin/sh\",\"-c\",\"echo fine\"],\"timeout_seconds\":60}", &answer,
		    &err) != 0) {
		finding_add(findings, FINDING_FAIL, "command", NULL, "%s", err.msg);
		return;
	}
	took = cell_duration((double)(clock_boot_ms() - began_ms) / 1000);
	if (strcmp(print_string(answer.json, "stdout"), "fine\n") == 0)
		finding_add(findings, FINDING_OK, "command", NULL,
			"ran in a new sandbox of the default image, %s after it was asked for", took);
	else
		finding_add(findings, FINDING_FAIL, "command", "try another image: orchardctl run IMAGE -- COMMAND",
			"it ended with exit code %s: %s%s", print_string(answer.json, "exit_code"),
			print_string(answer.json, "error"), print_string(answer.json, "stderr"));
}

void
doctor_try_sandbox(struct findings *findings)
{
	int64_t began_ms = clock_boot_ms();
	AUTO_ANSWER answer = { 0 };
	AUTO_FREE char *path = NULL;
	struct err err;
	const char *id;

	if (post(findings, "/sandboxes",
		    "{\"image\":\"default\",\"timeout\":60,\"ttl_seconds\":300,\"labels\":{\"orchardctl\":"
		    "\"doctor\"}}",
		    &answer, &err) != 0) {
		finding_add(findings, FINDING_FAIL, "sandbox", NULL, "%s", err.msg);
		return;
	}
	id = print_string(answer.json, "sandbox_id");
	if (await_ready(findings, id))
		try_command(findings, id, began_ms);
	path = path_format("/sandboxes/%s", id);
	if (client_call(findings->ctl->client, &(struct request){ .method = "DELETE", .path = path }, NULL, &err) !=
		0)
		finding_add(findings, FINDING_WARN, "sandbox", "orchardctl rm --label orchardctl=doctor",
			"%s stays: %s", id, err.msg);
}
