/* request.h - the body of POST /exec, checked. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_REQUEST_H
#define ORCHARD_AGENT_REQUEST_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct json_object;

/* Strings and objects are the body's, which must live as long. */
struct exec_request {
	const char *job_id;
	int64_t fence;
	const char *lane;
	struct json_object *command;
	const char *cwd; /* NULL: the default directory */
	struct json_object *env; /* NULL: none */
	bool login_shell;
	int64_t timeout_ms, kill_grace_ms;
	uint8_t *stdin_data; /* owned; NULL: /dev/null */
	size_t stdin_len;
	const char *user; /* NULL: the configuration's */
	int64_t max_output_bytes;
};

/* ERR_INVALID names every wrong field. */
int exec_request_read(struct json_object *body, struct exec_request *ret_request, struct err *err) MUSTCHECK;
void exec_request_fini(struct exec_request *request);

#endif
