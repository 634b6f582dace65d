/* job_find.c - asks a sandbox for its newest job. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/commands/job_find.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/output/print.h"

#include <json-c/json_object.h>

char *
job_find(struct client *client, const char *word, struct err *err)
{
	AUTO_FREE char *path = path_format("/sandboxes/%s/jobs?limit=1", word);
	AUTO_JSON struct json_object *page = NULL;
	struct json_object *jobs;

	if (id_is_uuid(word))
		return alloc_string(word);
	page = client_get(client, path, err);
	if (page == NULL)
		return NULL;
	jobs = print_array(page, "jobs");
	if (jobs == NULL || json_object_array_length(jobs) == 0) {
		err_set(err, ERR_NOT_FOUND, "sandbox \"%s\" has run no commands", word);
		return NULL;
	}
	return alloc_string(print_string(json_object_array_get_idx(jobs, 0), "job_id"));
}
