/*
 * fuzz_specs.c - any JSON object, read as the body of a create and of an exec.
 *
 * What is taken keeps its bounds; what is refused is refused in words that are themselves good JSON.
 */
/* SPDX-License-Identifier: MIT */
#include "fuzz_config.h"

#include "base/err.h"
#include "base/json.h"
#include "domain/sandbox/egress_spec.h"
#include "domain/exec/exec.h"
#include "domain/sandbox/sandbox.h"

#include <json-c/json.h>

static void
check_faults(struct json_reader *reader)
{
	AUTO_JSON struct json_object *again = NULL;
	struct err err;
	const char *text;
	size_t len;

	FUZZ_CHECK(json_object_array_length(reader->faults) > 0);
	text = json_text(reader->faults, &len);
	again = json_parse(text, len, &err);
	FUZZ_CHECK(again != NULL);
}

static void
check_create(struct json_object *body)
{
	AUTO_JSON struct json_object *egress = NULL;
	struct json_reader reader;
	struct sandbox_spec spec;

	json_reader_init(&reader, body);
	sandbox_spec_read(fuzz_config(), &reader, &spec);
	if (reader.faults != NULL) {
		check_faults(&reader);
	} else {
		FUZZ_CHECK(spec.image != NULL && spec.image[0] != '\0');
		FUZZ_CHECK(spec.cpu_milli > 0 && spec.memory_bytes > 0 && spec.disk_bytes >= 0);
		FUZZ_CHECK(spec.create_timeout_s > 0);
		FUZZ_CHECK(spec.ttl_ms > 0 || spec.ttl_ms == SANDBOX_TIME_DEFAULT);
		FUZZ_CHECK(spec.egress.count <= EGRESS_MAX && !(spec.egress.limited && spec.block_network));
		egress = egress_json(&spec.egress);
		FUZZ_CHECK((egress != NULL) == spec.egress.limited);
	}
	json_reader_fini(&reader);
}

static void
check_exec(struct json_object *body)
{
	struct json_reader reader;
	struct exec_spec spec;

	json_reader_init(&reader, body);
	exec_spec_read(fuzz_config(), &reader, &spec);
	if (reader.faults != NULL) {
		check_faults(&reader);
	} else {
		FUZZ_CHECK(spec.command != NULL && spec.lane != NULL && strlen(spec.lane) < 64);
		FUZZ_CHECK(spec.timeout_ms > 0 && spec.wait_timeout_ms >= 0);
		FUZZ_CHECK(spec.max_output_bytes >= 0 && spec.max_output_bytes <= fuzz_config()->max_output_bytes);
	}
	exec_spec_fini(&spec);
	json_reader_fini(&reader);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO_JSON struct json_object *body = NULL;
	struct err err;

	body = json_parse((const char *)data, len, &err);
	if (!json_object_is_type(body, json_type_object))
		return 0;
	check_create(body);
	check_exec(body);
	return 0;
}
