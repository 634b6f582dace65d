/* test_specs.c - requests are checked as a whole before anything is touched. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "conf/config.h"
#include "domain/sandbox/egress_spec.h"
#include "domain/exec/exec.h"
#include "domain/sandbox/sandbox.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char test_cpu[] = "1", test_memory[] = "2Gi", local[] = "local", kubernetes[] = "kubernetes";

static struct config test_config = {
	.driver = local,
	.default_cpu = test_cpu,
	.default_memory = test_memory,
	.block_network_default = true,
	.default_create_timeout_seconds = 3600,
	.sandbox_ttl_hours = 2,
	.default_exec_timeout_seconds = 300,
	.max_exec_timeout_seconds = 86400,
	.max_output_bytes = 1048576,
	.max_wait_seconds = 3600,
};

static struct json_object *
parse(const char *text)
{
	struct json_object *body;
	struct err err;

	body = json_parse(text, strlen(text), &err);
	if (body == NULL)
		fail_msg("%s: %s", text, err.msg);
	return body;
}

/* The field the first fault is about, or "" when there is none. */
static void
fault_field(const struct json_reader *reader, char *ret, size_t size)
{
	struct json_object *loc;

	ret[0] = '\0';
	if (reader->faults == NULL)
		return;
	json_object_object_get_ex(json_object_array_get_idx(reader->faults, 0), "loc", &loc);
	snprintf(ret, size, "%s", json_object_get_string(json_object_array_get_idx(loc, 1)));
}

static void
sandbox_fault(const char *text, char *ret, size_t size)
{
	AUTO_JSON struct json_object *body = parse(text);
	struct json_reader reader;
	struct sandbox_spec spec;

	json_reader_init(&reader, body);
	sandbox_spec_read(&test_config, &reader, &spec);
	fault_field(&reader, ret, size);
	json_reader_fini(&reader);
}

static void
exec_fault(const char *text, char *ret, size_t size)
{
	AUTO_JSON struct json_object *body = parse(text);
	struct json_reader reader;
	struct exec_spec spec;

	json_reader_init(&reader, body);
	exec_spec_read(&test_config, &reader, &spec);
	fault_field(&reader, ret, size);
	exec_spec_fini(&spec);
	json_reader_fini(&reader);
}

struct fault_case {
	const char *body;
	const char *field; /* "": it is fine */
};

static void
check_cases(void (*fault)(const char *text, char *ret, size_t size), const struct fault_case *cases, size_t n)
{
	char field[64];

	for (size_t i = 0; i < n; i++) {
		fault(cases[i].body, field, sizeof field);
		if (strcmp(field, cases[i].field) != 0)
			fail_msg("%s: fault in \"%s\", not in \"%s\"", cases[i].body, field, cases[i].field);
	}
}

static void
test_sandbox_requests(void **state)
{
	static const struct fault_case cases[] = {
		{ "{\"image\":\"default\"}", "" },
		{ "{}", "image" },
		{ "{\"image\":null}", "image" },
		{ "{\"image\":5}", "image" },
		{ "{\"image\":\"\"}", "image" },
		{ "{\"image\":\"a\\u0000b\"}", "image" },
		{ "{\"image\":\"i\",\"sandbox_id\":\"a-1\"}", "" },
		{ "{\"image\":\"i\",\"sandbox_id\":null}", "" },
		{ "{\"image\":\"i\",\"sandbox_id\":\"\"}", "sandbox_id" },
		{ "{\"image\":\"i\",\"sandbox_id\":\"Foo_Bar\"}", "sandbox_id" },
		{ "{\"image\":\"i\",\"sandbox_id\":\"lock:x\"}", "sandbox_id" },
		{ "{\"image\":\"i\",\"sandbox_id\":\"-a\"}", "sandbox_id" },
		{ "{\"image\":\"i\",\"sandbox_id\":\"a-\"}", "sandbox_id" },
		{ "{\"image\":\"i\",\"sandbox_id\":\"../x\"}", "sandbox_id" },
		{ "{\"image\":\"i\",\"sandbox_id\":\"a\\n\"}", "sandbox_id" },
		{ "{\"image\":\"i\",\"sandbox_id\":"
		  "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
			"sandbox_id" },
		{ "{\"image\":\"i\",\"cpu\":\"2000m\",\"memory\":\"16Gi\"}", "" },
		{ "{\"image\":\"i\",\"cpu\":0.5,\"memory\":134217728}", "" },
		{ "{\"image\":\"i\",\"cpu\":\"0\"}", "cpu" },
		{ "{\"image\":\"i\",\"cpu\":-1}", "cpu" },
		{ "{\"image\":\"i\",\"cpu\":true}", "cpu" },
		{ "{\"image\":\"i\",\"memory\":\"16G b\"}", "memory" },
		{ "{\"image\":\"i\",\"memory\":\"123456789012345678901\"}", "memory" },
		{ "{\"image\":\"i\",\"memory\":[]}", "memory" },
		{ "{\"image\":\"i\",\"timeout\":1.5,\"ttl_seconds\":60,\"idle_timeout_seconds\":0}", "" },
		{ "{\"image\":\"i\",\"timeout\":0}", "timeout" },
		{ "{\"image\":\"i\",\"timeout\":\"5\"}", "timeout" },
		{ "{\"image\":\"i\",\"ttl_seconds\":-1}", "ttl_seconds" },
		{ "{\"image\":\"i\",\"ttl_seconds\":1e18}", "ttl_seconds" },
		{ "{\"image\":\"i\",\"working_dir\":\"relative\"}", "working_dir" },
		{ "{\"image\":\"i\",\"labels\":{\"a\":1}}", "labels" },
		{ "{\"image\":\"i\",\"labels\":{\"a\":\"b\"}}", "" },
		{ "{\"image\":\"i\",\"env\":{\"A=B\":\"c\"}}", "env" },
		{ "{\"image\":\"i\",\"env\":{\"\":\"c\"}}", "env" },
		{ "{\"image\":\"i\",\"env\":{\"A\":\"c\\u0000\"}}", "env" },
		{ "{\"image\":\"i\",\"env\":{\"A\":\"b c\\n'$\"}}", "" },
		{ "{\"image\":\"i\",\"block_network\":\"yes\"}", "block_network" },
		{ "{\"image\":\"i\",\"egress\":{\"allow\":[]}}", "" },
		{ "{\"image\":\"i\",\"egress\":null,\"block_network\":true}", "" },
		{ "{\"image\":\"i\",\"egress\":{\"allow\":[\"10.1.2.0/"
		  "24:443\",\"1.2.3.4\"]},\"block_network\":false}",
			"" },
		{ "{\"image\":\"i\",\"egress\":{\"allow\":[]},\"block_network\":true}", "egress" },
		{ "{\"image\":\"i\",\"egress\":{}}", "egress" },
		{ "{\"image\":\"i\",\"egress\":[]}", "egress" },
		{ "{\"image\":\"i\",\"egress\":{\"allow\":\"1.2.3.4\"}}", "egress" },
		{ "{\"image\":\"i\",\"egress\":{\"allow\":[1]}}", "egress" },
		{ "{\"image\":\"i\",\"egress\":{\"allow\":[null]}}", "egress" },
		{ "{\"image\":\"i\",\"egress\":{\"allow\":[\"1.2.3.4\\u0000\"]}}", "egress" },
		{ "{\"image\":\"i\",\"egress\":{\"allow\":[\"example.org\"]}}", "egress" },
		{ "{\"image\":\"i\",\"egress\":{\"allow\":[\"::1\"]}}", "egress" },
		{ "{\"image\":\"i\",\"egress\":{\"allow\":[\"1.2.3.4/24\"]}}", "egress" },
		{ "{\"image\":\"i\",\"egress\":{\"allow\":[\"2001:db8::/32\"]}}", "egress" },
		{ "{\"image\":\"i\",\"egress\":{\"allow\":[\"169.254.169.254\"]}}", "egress" },
		{ "{\"image\":\"i\",\"egress\":{\"allow\":[\"127.0.0.1:80\"]}}", "egress" },
		{ "{\"image\":\"i\",\"egress\":{\"allow\":[\"224.0.0.0/4\"]}}", "egress" },
		{ "{\"image\":\"i\",\"what\":{}}", "" },
	};

	(void)state;
	check_cases(sandbox_fault, cases, sizeof cases / sizeof *cases);
}

static void
test_exec_requests(void **state)
{
	static const struct fault_case cases[] = {
		{ "{\"command\":\"true\"}", "" },
		{ "{\"command\":\"\"}", "" },
		{ "{\"command\":[\"/bin/echo\",\"a b\",\"\"]}", "" },
		{ "{}", "command" },
		{ "{\"command\":null}", "command" },
		{ "{\"command\":[]}", "command" },
		{ "{\"command\":[\"\"]}", "command" },
		{ "{\"command\":[1]}", "command" },
		{ "{\"command\":[\"a\",\"b\\u0000\"]}", "command" },
		{ "{\"command\":\"a\\u0000b\"}", "command" },
		{ "{\"command\":{}}", "command" },
		{ "{\"command\":\"x\",\"timeout_seconds\":null}", "" },
		{ "{\"command\":\"x\",\"timeout_seconds\":0}", "" },
		{ "{\"command\":\"x\",\"timeout_seconds\":0.5}", "" },
		{ "{\"command\":\"x\",\"timeout_seconds\":-1}", "timeout_seconds" },
		{ "{\"command\":\"x\",\"timeout_seconds\":\"5\"}", "timeout_seconds" },
		{ "{\"command\":\"x\",\"timeout_seconds\":1e18}", "timeout_seconds" },
		{ "{\"command\":\"x\",\"timeout_seconds\":86401}", "timeout_seconds" },
		{ "{\"command\":\"x\",\"env\":{\"=\":\"\"}}", "env" },
		{ "{\"command\":\"x\",\"env\":{\"\":\"\"}}", "env" },
		{ "{\"command\":\"x\",\"env\":{\"A\":5}}", "env" },
		{ "{\"command\":\"x\",\"env\":{\"MY-VAR.x\":\"a\\nb\"}}", "" },
		{ "{\"command\":\"x\",\"stdin\":\"a\",\"stdin_base64\":\"YQ==\"}", "stdin" },
		{ "{\"command\":\"x\",\"stdin_base64\":\"YQ\"}", "stdin_base64" },
		{ "{\"command\":\"x\",\"stdin\":\"a\\u0000b\"}", "" },
		{ "{\"command\":\"x\",\"encoding\":\"utf8\"}", "" },
		{ "{\"command\":\"x\",\"encoding\":\"base64\"}", "" },
		{ "{\"command\":\"x\",\"encoding\":\"latin1\"}", "encoding" },
		{ "{\"command\":\"x\",\"lane\":\"build 1\"}", "" },
		{ "{\"command\":\"x\",\"lane\":\"a\\tb\"}", "lane" },
		{ "{\"command\":\"x\",\"max_output_bytes\":0}", "" },
		{ "{\"command\":\"x\",\"max_output_bytes\":1048577}", "max_output_bytes" },
		{ "{\"command\":\"x\",\"max_output_bytes\":-1}", "max_output_bytes" },
		{ "{\"command\":\"x\",\"wait_timeout\":999999}", "" },
		{ "{\"command\":\"x\",\"wait_timeout\":-1}", "wait_timeout" },
		{ "{\"command\":\"x\",\"wait\":\"no\"}", "wait" },
		{ "{\"command\":\"x\",\"cwd\":7}", "cwd" },
	};

	(void)state;
	check_cases(exec_fault, cases, sizeof cases / sizeof *cases);
}

static void
read_exec(const char *text, struct json_object **ret_body, struct exec_spec *ret_spec)
{
	struct json_reader reader;

	*ret_body = parse(text);
	json_reader_init(&reader, *ret_body);
	exec_spec_read(&test_config, &reader, ret_spec);
	assert_null(reader.faults);
	json_reader_fini(&reader);
}

static void
test_exec_values(void **state)
{
	struct json_object *body;
	struct exec_spec spec;

	(void)state;
	read_exec("{\"command\":\"x\"}", &body, &spec);
	assert_int_equal(spec.timeout_ms, 300000);
	assert_true(spec.wait);
	assert_string_equal(spec.lane, "");
	assert_null(spec.stdin_base64);
	assert_int_equal(spec.max_output_bytes, 1048576);
	assert_int_equal(spec.wait_timeout_ms, 0);
	exec_spec_fini(&spec);
	json_object_put(body);

	read_exec("{\"command\":\"x\",\"timeout_seconds\":0.0005,\"stdin\":\"a\\u0000b\",\"wait_timeout\":999999,"
		  "\"wait\":false,\"cwd\":\"\",\"encoding\":\"base64\"}",
		&body, &spec);
	assert_int_equal(spec.timeout_ms, 1);
	assert_string_equal(spec.stdin_base64, "YQBi");
	assert_int_equal(spec.wait_timeout_ms, 3600000);
	assert_false(spec.wait);
	assert_null(spec.cwd);
	assert_true(spec.base64);
	exec_spec_fini(&spec);
	json_object_put(body);

	read_exec("{\"command\":\"x\",\"timeout_seconds\":0,\"wait_timeout\":0}", &body, &spec);
	assert_int_equal(spec.timeout_ms, 300000);
	assert_int_equal(spec.wait_timeout_ms, 1);
	exec_spec_fini(&spec);
	json_object_put(body);
}

static void
test_sandbox_values(void **state)
{
	AUTO_JSON struct json_object *body = parse("{\"image\":\"i\",\"cpu\":0.1,\"memory\":\"1G\",\"disk\":"
						   "\"3Gi\",\"timeout\":1.2,\"ttl_seconds\":0.5}");
	struct json_reader reader;
	struct sandbox_spec spec;

	(void)state;
	json_reader_init(&reader, body);
	sandbox_spec_read(&test_config, &reader, &spec);
	assert_null(reader.faults);
	json_reader_fini(&reader);
	assert_int_equal(spec.cpu_milli, 100);
	assert_int_equal(spec.memory_bytes, 1000000000);
	assert_int_equal(spec.disk_bytes, INT64_C(3) << 30);
	assert_int_equal(spec.create_timeout_s, 2);
	assert_int_equal(spec.ttl_ms, 500);
	assert_int_equal(spec.idle_timeout_ms, SANDBOX_TIME_DEFAULT);
	assert_true(spec.block_network);
	assert_null(spec.id);
}

static void
read_egress(struct json_object *body, struct sandbox_spec *ret_spec, char *ret_fault, size_t size)
{
	struct json_reader reader;

	json_reader_init(&reader, body);
	sandbox_spec_read(&test_config, &reader, ret_spec);
	fault_field(&reader, ret_fault, size);
	json_reader_fini(&reader);
}

static void
test_egress_asks_for_a_network(void **state)
{
	AUTO_JSON struct json_object *body = parse(
		"{\"image\":\"i\",\"egress\":{\"allow\":[\"10.1.2.0/24:443\",\"1.2.3.4/32\",\"0.0.0.0/0\"]}}");
	AUTO_JSON struct json_object *shown = NULL;
	struct sandbox_spec spec;
	char fault[64];

	(void)state;
	read_egress(body, &spec, fault, sizeof fault);
	assert_string_equal(fault, "");
	assert_false(spec.block_network);
	assert_true(spec.egress.limited);
	assert_int_equal(spec.egress.count, 3);
	shown = egress_json(&spec.egress);
	assert_string_equal(json_text(shown, NULL), "{\"allow\":[\"10.1.2.0/24:443\",\"1.2.3.4\",\"0.0.0.0/0\"]}");
}

/* {"allow": [text]}: the first fault, NULL for none; owned by the reader. */
static const char *
fault_of_egress(const char *text, struct json_reader *reader)
{
	AUTO_FREE char *line = alloc_format("{\"image\":\"i\",\"egress\":{\"allow\":[\"%s\"]}}", text);
	AUTO_JSON struct json_object *body = parse(line);
	struct json_object *msg = NULL;
	struct sandbox_spec spec;

	json_reader_init(reader, body);
	sandbox_spec_read(&test_config, reader, &spec);
	if (reader->faults != NULL)
		json_object_object_get_ex(json_object_array_get_idx(reader->faults, 0), "msg", &msg);
	return json_object_get_string(msg);
}

/* Pods alone have IPv6. Nothing of it gets round what no sandbox reaches. */
static void
test_egress_of_ipv6(void **state)
{
	static const struct {
		const char *text, *pods, *local; /* words of the refusal; NULL: taken */
	} cases[] = {
		{ "2001:db8::/32", NULL, "on loopback only" },
		{ "[2001:db8::1]:443", NULL, "on loopback only" },
		{ "::/0", NULL, "on loopback only" },
		{ "64:ff9b::808:808", NULL, "on loopback only" },
		{ "1.2.3.4", NULL, NULL },
		{ "::1", "loopback", "loopback" },
		{ "::", "loopback", "loopback" },
		{ "::8.8.8.8", "reserved", "reserved" },
		{ "fe80::1", "link-local", "link-local" },
		{ "fe80::1%eth0", "no IPv6 address", "no IPv6 address" },
		{ "ff02::1", "multicast", "multicast" },
		{ "fd00:ec2::254", "metadata", "metadata" },
		{ "64:ff9b::a9fe:a9fe", "metadata", "metadata" },
		{ "::ffff:8.8.8.8", "write 8.8.8.8", "write 8.8.8.8" },
		{ "::ffff:a9fe:a9fe", "write 169.254.169.254", "write 169.254.169.254" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		for (int pods = 0; pods < 2; pods++) {
			const char *wanted = pods ? cases[i].pods : cases[i].local, *said;
			struct json_reader reader;

			test_config.driver = pods ? kubernetes : local;
			said = fault_of_egress(cases[i].text, &reader);
			if ((said != NULL) != (wanted != NULL) || (said != NULL && strstr(said, wanted) == NULL))
				fail_msg("%s: %s", cases[i].text, said != NULL ? said : "taken");
			json_reader_fini(&reader);
		}
	}
	test_config.driver = local;
}

static void
test_egress_is_bounded(void **state)
{
	AUTO_JSON struct json_object *body = parse("{\"image\":\"i\",\"egress\":{\"allow\":[]}}");
	struct json_object *egress, *allow;
	struct sandbox_spec spec;
	char fault[64];

	(void)state;
	json_object_object_get_ex(body, "egress", &egress);
	json_object_object_get_ex(egress, "allow", &allow);
	test_config.driver = kubernetes;
	for (int i = 0; i < EGRESS_MAX; i++) /* both count, and what is said twice is kept */
		json_object_array_add(allow, json_object_new_string(i % 2 ? "1.2.3.4" : "2001:db8::1"));
	read_egress(body, &spec, fault, sizeof fault);
	assert_string_equal(fault, "");
	assert_int_equal(spec.egress.count, EGRESS_MAX);
	json_object_array_add(allow, json_object_new_string("1.2.3.4"));
	read_egress(body, &spec, fault, sizeof fault);
	assert_string_equal(fault, "egress");
	test_config.driver = local;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_egress_asks_for_a_network),
		cmocka_unit_test(test_egress_of_ipv6),
		cmocka_unit_test(test_egress_is_bounded),
		cmocka_unit_test(test_sandbox_requests),
		cmocka_unit_test(test_exec_requests),
		cmocka_unit_test(test_exec_values),
		cmocka_unit_test(test_sandbox_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
