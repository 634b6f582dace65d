/* cmd_patch.c - patch: a diff into a sandbox, whole or not at all. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/commands/spec.h"
#include "orchardctl/output/cell.h"
#include "orchardctl/output/print.h"

#include <fcntl.h>
#include <json-c/json_object.h>
#include <stdio.h>

enum { PATCH_MAX = 64 << 20, MARGIN_SECONDS = 60 };

struct patch {
	struct json_object *body; /* owned */
	const char *sandbox, *file;
	double timeout_s;
};

static int
read_line(struct args *args, struct patch *patch)
{
	for (int code; (code = args_next(args)) != ARG_END;) {
		if (code == ARG_WORD && patch->file != NULL) {
			args_fail(args, "one file, please; what is \"%s\"?", args->value);
			return -1;
		}
		if (code == ARG_WORD && patch->sandbox == NULL)
			patch->sandbox = args->value;
		else if (code == ARG_WORD)
			patch->file = args->value;
		else if (code == ARG_STOP || spec_take_exec(args, code, patch->body) < 0)
			return -1;
	}
	if (patch->sandbox == NULL) {
		args_fail(args, "into which sandbox?");
		return -1;
	}
	return 0;
}

static int
read_patch(struct patch *patch, struct err *err)
{
	bool from_stdin = patch->file == NULL || strcmp(patch->file, "-") == 0;
	AUTO_FREE char *text = NULL;
	AUTO_FREE char *encoded = NULL;
	size_t len;

	if (file_read_at(AT_FDCWD, from_stdin ? "/dev/stdin" : patch->file, PATCH_MAX, &text, &len, err) < 0) {
		/* It is no sandbox that is not there. */
		err->code = ERR_INVALID;
		return -1;
	}
	if (len == 0)
		return err_set(err, ERR_INVALID, "%s is empty, and no patch", from_stdin ? "stdin" : patch->file);
	if (text_is_utf8(text, len) && memchr(text, '\0', len) == NULL) {
		spec_set_string(patch->body, "patch", text);
		return 0;
	}
	encoded = alloc_bytes(text_base64_size(len) + 1);
	text_base64_encode(text, len, encoded);
	spec_set_string(patch->body, "patch_base64", encoded);
	return 0;
}

/* The words of git or patch, as such; what they quote may be anything. */
static void
show_said(const char *text)
{
	while (*text != '\0') {
		AUTO_FREE char *line = alloc_format("%.*s", (int)strcspn(text, "\n"), text);
		AUTO_FREE char *shown = cell_line(line);

		fprintf(stderr, "  | %s\n", shown);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
}

static int
apply(const struct ctl *ctl, struct patch *patch)
{
	AUTO_FREE char *path = path_format("/sandboxes/%s/apply_patch", patch->sandbox);
	struct json_object *timeout = print_member(patch->body, "timeout_seconds");
	struct request request = { .method = "POST", .path = path, .body = patch->body, .once = true };
	AUTO_ANSWER answer = { 0 };
	struct json_object *success;
	struct err err;
	const char *why;

	request.silence_s = (timeout != NULL ? json_object_get_double(timeout) : 30) + MARGIN_SECONDS;
	if (read_patch(patch, &err) < 0 || client_call(ctl->client, &request, &answer, &err) < 0)
		return ctl_fail(ctl, &err);
	if (ctl->output_given)
		print_one(ctl, answer.json,
			(const struct column[]){ { "JOB", "job_id", COLUMN_TEXT, false },
				{ "SUCCESS", "success", COLUMN_BOOL, false },
				{ "ERROR", "error", COLUMN_TEXT, false }, { NULL, NULL, COLUMN_TEXT, false } },
			"job_id");
	else
		fputs(print_string(answer.json, "stdout"), stdout);
	success = print_member(answer.json, "success");
	if (success != NULL && json_object_get_boolean(success))
		return CTL_OK;
	why = print_string(answer.json, "error");
	ctl_error("%s\nnothing has changed", why[0] != '\0' ? why : "the patch was not applied");
	show_said(print_string(answer.json, "stderr"));
	return CTL_FAILED;
}

int
cmd_patch(struct ctl *ctl, int argc, char **argv)
{
	struct patch patch = { .body = must_alloc(json_object_new_object()) };
	struct args args;
	int status;

	args_init(&args, ctl, argc, argv);
	if (read_line(&args, &patch) < 0)
		status = args.status;
	else
		status = ctl_open(ctl);
	if (status == CTL_OK && ctl->client != NULL)
		status = apply(ctl, &patch);
	json_object_put(patch.body);
	return status;
}
