/* terminal_describe.c - what is told of a session. */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/terminal_state.h"

#include "base/clock.h"

#include <json-c/json.h>
#include <sys/wait.h>

const char *
terminal_id(const struct terminal *terminal)
{
	return terminal->id;
}

bool
terminal_outlives_viewers(const struct terminal *terminal)
{
	return terminal->detach;
}

pid_t
terminal_pid(const struct terminal *terminal)
{
	return terminal->pid;
}

bool
terminal_has_ended(const struct terminal *terminal)
{
	return terminal->phase == TERMINAL_ENDED;
}

int
terminal_exit_code(const struct terminal *terminal)
{
	return WIFSIGNALED(terminal->status) ? -WTERMSIG(terminal->status) : WEXITSTATUS(terminal->status);
}

struct json_object *
terminal_usage(const struct terminal *terminal)
{
	struct json_object *usage = json_object_new_object();

	json_object_object_add(usage, "wall_s", json_object_new_double(terminal->wall_s));
	json_object_object_add(usage, "cpu_user_s", json_object_new_double(terminal->cpu_user_s));
	json_object_object_add(usage, "cpu_sys_s", json_object_new_double(terminal->cpu_sys_s));
	return usage;
}

struct json_object *
terminal_describe(const struct terminal *terminal)
{
	struct json_object *body = json_object_new_object();
	bool ended = terminal->phase == TERMINAL_ENDED;

	json_object_object_add(body, "session", json_object_new_string(terminal->id));
	json_object_object_add(body, "pid", json_object_new_int64(terminal->pid));
	json_object_object_add(body, "state", json_object_new_string(ended ? "ended" : "running"));
	json_object_object_add(body, "code", ended ? json_object_new_int(terminal_exit_code(terminal)) : NULL);
	json_object_object_add(body, "attached", json_object_new_boolean(terminal->viewer != NULL));
	json_object_object_add(body, "detach", json_object_new_boolean(terminal->detach));
	json_object_object_add(body, "rows", json_object_new_int(terminal->size.rows));
	json_object_object_add(body, "cols", json_object_new_int(terminal->size.cols));
	json_object_object_add(body, "started_at", json_object_new_double(terminal->started_at));
	json_object_object_add(body, "first_offset", json_object_new_uint64(replay_start(&terminal->replay)));
	json_object_object_add(body, "bytes", json_object_new_uint64(terminal->replay.end));
	return body;
}
