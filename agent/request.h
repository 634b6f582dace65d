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
struct json_reader;

/* Strings and objects are the body's, which must live as long. */
struct exec_request {
	const char *job_id;
	int64_t fence;
	const char *lane;
	struct json_object *command;
	const char *cwd; /* NULL: the default directory */
	struct json_object *env; /* NULL: none */
	bool login_shell;
	bool apply_patch; /* the agent applies the patch in stdin_data; command is only its name */
	int64_t timeout_ms, kill_grace_ms;
	uint8_t *stdin_data; /* owned; NULL: none */
	size_t stdin_len;
	bool stdin_open; /* a pipe that takes more later; else the data, or /dev/null */
	const char *user; /* NULL: the configuration's */
	int64_t max_output_bytes;
	int64_t spool_bytes; /* kept of each stream that exceeds that */
	int64_t hold_ms; /* what is not kept waits for a reader; 0: for nobody */
};

/* ERR_INVALID names every wrong field. */
int exec_request_read(struct json_object *body, struct exec_request *ret_request, struct err *err) MUSTCHECK;
void exec_request_fini(struct exec_request *request);

/* Parts that other requests have too. Faults an env with a name or a value no process can have. */
void request_read_env(struct json_reader *reader, struct json_object **ret_env);
/* The user to act as; one that this agent cannot act as is a fault. */
void request_read_user(struct json_reader *reader, size_t max_len, const char **ret_user);
/* Faults what is no argv. */
void request_check_list(struct json_reader *reader, const char *field, struct json_object *list);

#endif
