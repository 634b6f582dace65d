/* problem.c - a refusal as its detail, code and request id, and what to do about it where that is known. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/client/problem.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "orchardctl/client/client.h"

#include <json-c/json_object.h>
#include <stdio.h>

static enum err_code
kind_of_status(long status)
{
	static const struct {
		long status;
		enum err_code kind;
	} kinds[] = {
		{ 400, ERR_INVALID },
		{ 401, ERR_DENIED },
		{ 403, ERR_DENIED },
		{ 404, ERR_NOT_FOUND },
		{ 408, ERR_TIMEOUT },
		{ 409, ERR_CONFLICT },
		{ 410, ERR_GONE },
		{ 413, ERR_TOO_LARGE },
		{ 416, ERR_RANGE },
		{ 422, ERR_INVALID },
		{ 429, ERR_BUSY },
		{ 501, ERR_UNSUPPORTED },
		{ 503, ERR_BUSY },
		{ 507, ERR_NO_SPACE },
	};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (kinds[i].status == status)
			return kinds[i].kind;
	return ERR_INTERNAL;
}

static const char *
text_in(struct json_object *object, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(object, name, &value) ? json_object_get_string(value) : NULL;
}

/* "body.image: is required; query.limit: ..." of the faults of a 422. malloc'ed. */
static char *
faults_text(struct json_object *faults)
{
	char *all = alloc_string("");

	for (size_t i = 0; i < json_object_array_length(faults); i++) {
		struct json_object *fault = json_object_array_get_idx(faults, i), *loc = NULL;
		AUTO_FREE char *before = all;
		AUTO_FREE char *where = alloc_string("");
		const char *msg = text_in(fault, "msg");

		if (json_object_object_get_ex(fault, "loc", &loc) && json_object_is_type(loc, json_type_array)) {
			/* The first says only that it is in the body or the query. */
			for (size_t j = 1; j < json_object_array_length(loc); j++) {
				AUTO_FREE char *shorter = where;

				where = alloc_format("%s%s%s", shorter, j > 1 ? "." : "",
					json_object_get_string(json_object_array_get_idx(loc, j)));
			}
		}
		all = alloc_format("%s%s%s%s%s", before, i > 0 ? "; " : "", where, where[0] != '\0' ? " " : "",
			msg != NULL ? msg : "is wrong");
	}
	return all;
}

static const char *
advice(const struct answer *answer)
{
	static const struct {
		const char *code, *advice;
	} table[] = {
		{ "missing_api_key",
			"\ngive one by --api-key, SANDBOX_API_KEY or 'orchardctl config set-context'; a server "
			"that "
			"scripts/quickstart started keeps its key in /var/lib/orchard/api-key" },
		{ "invalid_api_key", "\n'orchardctl config view' tells the server and where its key comes from" },
		{ "sandbox_exists", "\nleave --id out, or remove that one by 'orchardctl rm'" },
		{ "no_capacity", "\n'orchardctl resources' tells what there is" },
		{ "image_not_allowed",
			"\nits operator lists what may be used in image_registries and local_image_paths" },
		{ "sandbox_not_ready", "\n'orchardctl get' tells why" },
	};

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (strcmp(answer->code, table[i].code) == 0)
			return table[i].advice;
	return "";
}

static void
copy_code(struct answer *answer, const char *code)
{
	snprintf(answer->code, sizeof answer->code, "%s", code != NULL ? code : "");
}

int
problem_of_answer(struct answer *answer, const char *url, struct err *err)
{
	enum err_code kind = kind_of_status(answer->status);
	AUTO_FREE char *faults = NULL;
	struct json_object *detail = NULL;
	const char *words, *id;

	if (answer->json == NULL || !json_object_object_get_ex(answer->json, "detail", &detail)) {
		copy_code(answer, NULL);
		return err_set(err, kind, "%s answered with status %ld, and not as an Orchard server does", url,
			answer->status);
	}
	copy_code(answer, text_in(answer->json, "code"));
	if (json_object_is_type(detail, json_type_array))
		faults = faults_text(detail);
	words = faults != NULL ? faults : json_object_get_string(detail);
	id = text_in(answer->json, "request_id");
	return err_set(err, kind, "%.300s [%s%s%s]%s", words != NULL ? words : "refused",
		answer->code[0] != '\0' ? answer->code : "refused", id != NULL ? ", request " : "",
		id != NULL ? id : "", advice(answer));
}
