/* job_view.c - columns of a job. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/commands/job_view.h"

#include <stddef.h>

const struct column job_columns[] = {
	{ "JOB", "job_id", COLUMN_TEXT, false },
	{ "SANDBOX", "sandbox_id", COLUMN_TEXT, true },
	{ "STATUS", "status", COLUMN_STATUS, false },
	{ "VERDICT", "verdict", COLUMN_TEXT, true },
	{ "EXIT", "exit_code", COLUMN_TEXT, false },
	{ "SIGNAL", "signal", COLUMN_TEXT, true },
	{ "ERROR", "error", COLUMN_TEXT, true },
	{ "AGE", "created_at", COLUMN_SINCE, false },
	{ "QUEUED FOR", "queue_s", COLUMN_SECONDS, true },
	{ "QUEUE POSITION", "queue_position", COLUMN_TEXT, true },
	{ "BLOCKED BY", "blocked_by", COLUMN_TEXT, true },
	{ "TOOK", "usage.wall_s", COLUMN_SECONDS, false },
	{ "CPU USER", "usage.cpu_user_s", COLUMN_SECONDS, true },
	{ "CPU SYSTEM", "usage.cpu_sys_s", COLUMN_SECONDS, true },
	{ "MOST MEMORY", "usage.max_rss_bytes", COLUMN_BYTES, true },
	{ "STDOUT SIZE", "stdout_bytes", COLUMN_BYTES, true },
	{ "STDERR SIZE", "stderr_bytes", COLUMN_BYTES, true },
	{ "LANE", "lane", COLUMN_TEXT, true },
	{ "COMMAND", "command", COLUMN_TEXT, false },
	{ NULL, NULL, COLUMN_TEXT, false },
};
