/* handle_service.c - what this service is and how it is: root, health, readiness, resources, and how to talk to it. */
/* SPDX-License-Identifier: MIT */
#include "config.h"
#include "worker/routes.h"

#include "cluster/cluster.h"
#include "domain/service.h"
#include "worker/api.h"
#include "worker/openapi.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <event2/buffer.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char media_type_json[] = "application/json";

void
handle_root(struct request *request)
{
	static const char body[] = "{\"service\":\"orchard\",\"version\":\"" PACKAGE_VERSION
				   "\",\"status\":\"running\"}";

	respond_text(request, 200, media_type_json, body, sizeof body - 1);
}

/* Probes and load balancers ask this all the time: nothing is built or looked up. */
void
handle_health(struct request *request)
{
	static const char body[] = "{\"status\":\"healthy\"}";

	respond_text(request, 200, media_type_json, body, sizeof body - 1);
}

static void
respond_not_ready(struct request *request, const char *problems)
{
	struct json_object *body = json_object_new_object(), *list = json_object_new_array();

	while (*problems != '\0') {
		size_t len = strcspn(problems, "\n");

		if (len > 0)
			json_object_array_add(list, json_object_new_string_len(problems, (int)len));
		problems += len + (problems[len] == '\n');
	}
	json_object_object_add(body, "status", json_object_new_string("not_ready"));
	json_object_object_add(body, "problems", list);
	respond_json(request, 503, body);
}

static void
ready_on_checked(bool ready, const char *problems, void *arg)
{
	static const char body[] = "{\"status\":\"ready\"}";
	struct request *request = request_ref_take(arg);
	char words[640], all[4096];

	if (request == NULL)
		return;
	if (request->api->cluster != NULL && cluster_problem(request->api->cluster, words, sizeof words)) {
		snprintf(all, sizeof all, "%s\n%s", words, problems);
		respond_not_ready(request, all);
	} else if (ready) {
		respond_text(request, 200, media_type_json, body, sizeof body - 1);
	} else {
		respond_not_ready(request, problems);
	}
}

void
handle_ready(struct request *request)
{
	if (request->api->draining)
		respond_not_ready(request, "this worker process is stopping");
	else
		service_check_ready(request->api->service, ready_on_checked, request_ref(request));
}

static void
resources_on_known(struct json_object *resources, const struct err *why, void *arg)
{
	struct request *request = request_ref_take(arg);

	if (request == NULL)
		json_object_put(resources);
	else if (why != NULL)
		respond_err(request, why);
	else
		respond_json(request, 200, resources);
}

void
handle_resources(struct request *request)
{
	service_resources(request->api->service, resources_on_known, request_ref(request));
}

void
handle_openapi(struct request *request)
{
	struct evbuffer *body = evbuffer_new();
	size_t len;
	const char *text = openapi_text(&len);

	if (body == NULL || evbuffer_add_reference(body, text, len, NULL, NULL) != 0)
		abort();
	respond_buffer(request, 200, media_type_json, body);
	evbuffer_free(body);
}
