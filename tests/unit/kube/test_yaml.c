/* test_yaml.c - YAML texts as JSON values, and what is refused. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/json.h"
#include "kube/kube_yaml.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void
test_values_are_those_of_json(void **state)
{
	static const struct {
		const char *yaml, *json;
	} cases[] = {
		{ "a: 1\nb: [x, 'y', \"z\"]\n", "{\"a\":1,\"b\":[\"x\",\"y\",\"z\"]}" },
		{ "{\"a\": {\"b\": [1, -2, 2.5, true, null]}}", "{\"a\":{\"b\":[1,-2,2.5,true,null]}}" },
		{ "a:\nb: ~\nc: null\nd: ''\n", "{\"a\":null,\"b\":null,\"c\":null,\"d\":\"\"}" },
		{ "a: 'true'\nb: \"1\"\nc: True\nd: yes\n",
			"{\"a\":\"true\",\"b\":\"1\",\"c\":true,\"d\":\"yes\"}" },
		{ "a: 2000m\nb: 1.2.3\nc: 0123\nd: -x\ne: 0x10\n",
			"{\"a\":\"2000m\",\"b\":\"1.2.3\",\"c\":\"0123\",\"d\":\"-x\",\"e\":\"0x10\"}" },
		{ "a: !!str 1\nb: |\n  two\n  lines\n", "{\"a\":\"1\",\"b\":\"two\\nlines\\n\"}" },
		{ "- a: 1\n  b: 2\n- []\n- {}\n", "[{\"a\":1,\"b\":2},[],{}]" },
		{ "1: x\ntrue: y\n", "{\"1\":\"x\",\"true\":\"y\"}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		AUTO_JSON struct json_object *value = NULL;
		struct err err;

		if (kube_yaml_parse(cases[i].yaml, strlen(cases[i].yaml), &value, &err) != 0)
			fail_msg("%s: %s", cases[i].yaml, err.msg);
		assert_string_equal(json_text(value, NULL), cases[i].json);
	}
}

static void
test_what_is_no_json_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *yaml, *words;
	} cases[] = {
		{ "", "it is empty" },
		{ "# nothing\n", "it is empty" },
		{ "null\n", "it is empty" },
		{ "a: 1\na: 2\n", "line 2: 'a' comes twice" },
		{ "a: &x 1\nb: *x\n", "line 2: aliases" },
		{ "[a]: 1\n", "line 1: a key must be a string" },
		{ "a: 1\n---\nb: 2\n", "line 2: a second document" },
		{ "a: !!binary aGk=\n", "line 1: the tag" },
		{ "a: [1, 2\n", "line 2:" },
		{ "\ta: 1\n", "line 1:" },
		{ "a: \"x\\0y\"\n", "line 1: a NUL" },
	};
	char deep[JSON_MAX_DEPTH + 8];
	struct json_object *value = NULL;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(kube_yaml_parse(cases[i].yaml, strlen(cases[i].yaml), &value, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		if (strstr(err.msg, cases[i].words) == NULL)
			fail_msg("'%s' gives: %s", cases[i].yaml, err.msg);
	}
	memset(deep, '[', sizeof deep);
	assert_int_equal(kube_yaml_parse(deep, sizeof deep, &value, &err), -1);
	assert_non_null(strstr(err.msg, "too deep"));
	assert_null(value);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_those_of_json),
		cmocka_unit_test(test_what_is_no_json_is_refused_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
