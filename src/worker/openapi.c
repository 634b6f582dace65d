/* openapi.c - joins the parts of the description and fills in what the code knows. */
/* SPDX-License-Identifier: MIT */
#include "config.h"
#include "worker/openapi.h"

#include "base/err.h"
#include "base/json.h"
#include "worker/openapi_refusal.h"
#include "worker/routes.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct json_object *
member(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, name, &value);
	return value;
}

/* The member, made if it is missing: an object, or what `make` makes. */
static struct json_object *
member_made(struct json_object *object, const char *name, struct json_object *(*make)(void))
{
	struct json_object *value = member(object, name);

	if (value == NULL) {
		value = make();
		json_object_object_add(object, name, value);
	}
	return value;
}

/* Objects are joined member by member; of anything else the later one stands. */
static void
merge(struct json_object *into, struct json_object *from)
{
	json_object_object_foreach(from, name, value)
	{
		struct json_object *there = member(into, name);

		if (json_object_is_type(there, json_type_object) && json_object_is_type(value, json_type_object))
			merge(there, value);
		else
			json_object_object_add(into, name, json_object_get(value));
	}
}

/* The parts are of this build, so one that can't be read is a fault of it. */
static struct json_object *
join_parts(void)
{
	struct json_object *document = json_object_new_object();

	for (const char *const *part = openapi_parts; *part != NULL; part++) {
		struct err err;
		struct json_object *value = json_parse(*part, strlen(*part), &err);

		if (value == NULL) {
			fprintf(stderr, "docs/openapi, part %td: %s\n", part - openapi_parts, err.msg);
			abort();
		}
		merge(document, value);
		json_object_put(value);
	}
	return document;
}

/* {"$ref": "#/components/KIND/NAME"} */
static struct json_object *
reference(const char *kind, const char *name)
{
	struct json_object *object = json_object_new_object();
	char text[160];

	snprintf(text, sizeof text, "#/components/%s/%s", kind, name);
	json_object_object_add(object, "$ref", json_object_new_string(text));
	return object;
}

static void
add_parameters(struct json_object *operation, const char *pattern)
{
	struct json_object *list = member_made(operation, "parameters", json_object_new_array);

	if (strstr(pattern, "{sandbox}") != NULL)
		json_object_array_add(list, reference("parameters", "Sandbox"));
	if (strstr(pattern, "{job}") != NULL)
		json_object_array_add(list, reference("parameters", "Job"));
	json_object_array_add(list, reference("parameters", "RequestId"));
}

/* A response that stands elsewhere gets it there. */
static void
add_request_id(struct json_object *responses)
{
	json_object_object_foreach(responses, name, response)
	{
		(void)name;
		if (member(response, "$ref") == NULL)
			json_object_object_add(member_made(response, "headers", json_object_new_object),
				"X-Request-ID", reference("headers", "RequestId"));
	}
}

static void
complete_operation(struct json_object *document, struct json_object *operation, const struct route *route)
{
	struct json_object *responses = member_made(operation, "responses", json_object_new_object);
	struct json_object *components = member(document, "components");

	if (route->auth == ROUTE_OPEN)
		json_object_object_add(operation, "security", json_object_new_array());
	add_parameters(operation, route->pattern);
	add_request_id(responses);
	openapi_add_refusals(operation, route, member(document, "x-problems"),
		member_made(components, "responses", json_object_new_object));
	json_object_object_del(operation, "x-problems");
}

void
openapi_path(const struct route *route, char ret_path[OPENAPI_PATH_SIZE])
{
	const char *close = strchr(route->pattern, '}');

	if (close == NULL)
		snprintf(ret_path, OPENAPI_PATH_SIZE, "%s", route->pattern);
	else
		snprintf(ret_path, OPENAPI_PATH_SIZE, "%.*s_id%s", (int)(close - route->pattern), route->pattern,
			close);
}

const char *
openapi_method(const struct route *route)
{
	static const char *const names[] = {
		[HTTP_GET] = "get",
		[HTTP_POST] = "post",
		[HTTP_PUT] = "put",
		[HTTP_PATCH] = "patch",
		[HTTP_DELETE] = "delete",
	};

	return names[route->method];
}

struct json_object *
openapi_build(const struct route *table, size_t count)
{
	struct json_object *document = join_parts();

	json_object_object_add(member(document, "info"), "version", json_object_new_string(PACKAGE_VERSION));
	add_request_id(member(member(document, "components"), "responses"));
	for (size_t i = 0; i < count; i++) {
		char path[OPENAPI_PATH_SIZE];
		struct json_object *operation;

		openapi_path(&table[i], path);
		operation = member(member(member(document, "paths"), path), openapi_method(&table[i]));
		if (operation != NULL)
			complete_operation(document, operation, &table[i]);
	}
	json_object_object_del(document, "x-problems");
	return document;
}

const char *
openapi_text(size_t *ret_len)
{
	static struct json_object *document; /* never freed; text lies in it */
	static const char *text;
	static size_t len;

	if (document == NULL) {
		document = openapi_build(routes, routes_count);
		text = json_text(document, &len);
	}
	*ret_len = len;
	return text;
}
