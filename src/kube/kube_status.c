/* kube_status.c - Status objects as errors in words. */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_status.h"

#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>
#include <limits.h>
#include <string.h>

static const struct {
	int http_status;
	enum err_code code;
} codes[] = {
	{ 400, ERR_INVALID },
	{ 401, ERR_DENIED },
	{ 403, ERR_DENIED },
	{ 404, ERR_NOT_FOUND },
	{ 409, ERR_CONFLICT },
	{ 410, ERR_GONE },
	{ 413, ERR_TOO_LARGE },
	{ 422, ERR_INVALID },
	{ 429, ERR_BUSY },
	{ 504, ERR_TIMEOUT },
};

static bool
is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (strchr(" \t\r\n", text[i]) == NULL || text[i] == '\0')
			return false;
	}
	return true;
}

/* What lists hold has no bound but that of their bytes, and who wrote it is trusted as much as the cluster is. */
struct json_object *
kube_json_parse(const char *text, size_t len)
{
	struct json_tokener *tokener;
	struct json_object *value;
	size_t end;

	if (len == 0 || len >= INT_MAX)
		return NULL;
	tokener = must_alloc(json_tokener_new_ex(JSON_MAX_DEPTH));
	json_tokener_set_flags(tokener, JSON_TOKENER_VALIDATE_UTF8);
	value = json_tokener_parse_ex(tokener, text, (int)len);
	end = json_tokener_get_parse_end(tokener);
	/* A number alone ends where the text does; of the API server there are only objects. */
	if (json_tokener_get_error(tokener) != json_tokener_success ||
		!json_object_is_type(value, json_type_object) || !is_blank(text + end, len - end)) {
		json_object_put(value);
		value = NULL;
	}
	json_tokener_free(tokener);
	return value;
}

const char *
kube_json_text(struct json_object *object, const char *name)
{
	struct json_object *value;

	if (!json_object_is_type(object, json_type_object) || !json_object_object_get_ex(object, name, &value) ||
		!json_object_is_type(value, json_type_string))
		return "";
	return json_object_get_string(value);
}

struct json_object *
kube_json_object(struct json_object *object, const char *name)
{
	struct json_object *value;

	if (!json_object_is_type(object, json_type_object) || !json_object_object_get_ex(object, name, &value) ||
		!json_object_is_type(value, json_type_object))
		return NULL;
	return value;
}

const char *
kube_status_reason(struct json_object *body)
{
	return strcmp(kube_json_text(body, "kind"), "Status") == 0 ? kube_json_text(body, "reason") : "";
}

bool
kube_status_passes(int http_status)
{
	return http_status == 429 || (http_status >= 500 && http_status != 501 && http_status != 505);
}

static enum err_code
code_of(int http_status, const char *reason)
{
	if (strcmp(reason, "AlreadyExists") == 0)
		return ERR_EXISTS;
	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
		if (codes[i].http_status == http_status)
			return codes[i].code;
	}
	return http_status >= 500 ? ERR_UNAVAILABLE : ERR_INTERNAL;
}

int
kube_status_err(int http_status, struct json_object *body, struct err *err)
{
	const char *reason = kube_status_reason(body), *message = kube_json_text(body, "message");
	enum err_code code = code_of(http_status, reason);

	if (strcmp(kube_json_text(body, "kind"), "Status") != 0)
		return err_set(err, code, "the API server answered with HTTP status %d", http_status);
	if (message[0] == '\0')
		message = reason[0] != '\0' ? reason : "without a word";
	return err_set(err, code, "the API server refused (%d): %s", http_status, message);
}
