/* agent_stream.c - a running command's output by offset, and bytes for its stdin. */
/* SPDX-License-Identifier: MIT */
#include "backend/agent_priv.h"

#include "base/err.h"

#include <stdio.h>

enum {
	MAX_OUTPUT = 8 * 1024 *
		1024, /* two streams of the protocol's most, in base64, and what stands around them */
	MAX_STDIN = 64 * 1024,
	OUTPUT_GUARD_MS = 30000 /* beyond the time it was asked to wait */
};

static int
output_path(const struct agent_output_ask *ask, char *ret_path, size_t size)
{
	int len = snprintf(ret_path, size, "/jobs/%s/output?limit=%u&wait_ms=%lld%s", ask->job_id, ask->limit,
		(long long)(ask->wait_ms > 0 ? ask->wait_ms : 0), ask->reader ? "&reader=1" : "");

	if (ask->stdout_offset >= 0)
		len += snprintf(
			ret_path + len, size - (size_t)len, "&stdout_offset=%lld", (long long)ask->stdout_offset);
	if (ask->stderr_offset >= 0)
		len += snprintf(
			ret_path + len, size - (size_t)len, "&stderr_offset=%lld", (long long)ask->stderr_offset);
	return len;
}

int
agent_output_get(struct agent_client *client, const struct agent_target *target, const struct agent_output_ask *ask,
	agent_done_f *done, void *arg, struct agent_call **ret_call, struct err *err)
{
	struct agent_peer *peer;
	char path[192];

	if (!id_is_uuid(ask->job_id))
		return err_set(err, ERR_INVALID, "a job id must be a UUID");
	if (agent_peer_get(client, target, &peer, err) < 0)
		return -1;
	output_path(ask, path, sizeof path);
	return agent_request_start(peer,
		&(struct agent_request){
			.method = "GET",
			.target = path,
			.timeout_ms = (ask->wait_ms > 0 ? ask->wait_ms : 0) + OUTPUT_GUARD_MS,
			.max_answer = MAX_OUTPUT,
		},
		done, arg, ret_call, err);
}

int
agent_stdin_write(struct agent_client *client, const struct agent_target *target,
	const struct agent_stdin_write *write, agent_done_f *done, void *arg, struct agent_call **ret_call,
	struct err *err)
{
	struct agent_peer *peer;
	char path[192];

	if (!id_is_uuid(write->job_id) || !id_is_uuid(write->write_id))
		return err_set(err, ERR_INVALID, "the ids of a job and of a write must be UUIDs");
	if (agent_peer_get(client, target, &peer, err) < 0)
		return -1;
	snprintf(path, sizeof path, "/jobs/%s/stdin?write_id=%s%s", write->job_id, write->write_id,
		write->eof ? "&eof=1" : "");
	return agent_request_start(peer,
		&(struct agent_request){
			.method = "POST",
			.target = path,
			.data = write->data,
			.len = write->len,
			.timeout_ms = write->timeout_ms,
			.max_answer = MAX_STDIN,
		},
		done, arg, ret_call, err);
}
