/* fuzz_agent_request.c - any JSON object as the body of the agent's POST /exec. */
/* SPDX-License-Identifier: MIT */
#include "fuzz_kit.h"

#include "agent/request.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"

#include <json-c/json.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO_JSON struct json_object *body = json_parse((const char *)data, len, &(struct err){ 0 });
	struct exec_request request;
	struct err err;

	if (!json_object_is_type(body, json_type_object))
		return 0;
	if (exec_request_read(body, &request, &err) != 0) {
		FUZZ_CHECK(err.msg[0] != '\0');
		return 0;
	}
	FUZZ_CHECK(id_is_uuid(request.job_id) && request.fence > 0 && request.timeout_ms > 0);
	FUZZ_CHECK(request.command != NULL && request.lane != NULL);
	FUZZ_CHECK(request.stdin_data != NULL || request.stdin_len == 0);
	exec_request_fini(&request);
	return 0;
}
