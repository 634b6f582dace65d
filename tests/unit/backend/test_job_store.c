/* test_job_store.c - the first end of a job stands, and what it was asked to do is kept. */
/* SPDX-License-Identifier: MIT */
#include "backend/job_store.h"
#include "backend/record_log.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/id.h"
#include "base/json.h"
#include "crash.h"
#include "ipc/section.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

enum { RECORDS = 1024 };

static char dir[64];
static struct shm_index *table;
static struct record_log *record_log;
static struct job_store *store;

/* What the last answer was. */
static struct {
	unsigned calls;
	enum err_code code;
	struct record_location place;
	char text[256];
} last;

static int
set_up(void **state)
{
	struct record_log_options options = { .dir = dir };
	struct err err;

	(void)state;
	strcpy(dir, "/tmp/ipc-store-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	table = crash_map(record_index_section_size(RECORDS));
	record_index_section_init(table, RECORDS);
	if (record_log_open(&options, table, &record_log, &err) < 0)
		return -1;
	store = job_store_create(record_log, record_log);
	memset(&last, 0, sizeof last);
	return 0;
}

static int
tear_down(void **state)
{
	struct err err;

	(void)state;
	job_store_free(store);
	record_log_close(record_log);
	crash_unmap(table, record_index_section_size(RECORDS));
	return file_remove_tree_at(AT_FDCWD, dir, &err);
}

static void
on_put(const struct record_location *place, const struct err *why, void *arg)
{
	assert_ptr_equal(arg, &last);
	last.calls++;
	last.code = why == NULL ? ERR_NONE : why->code;
	last.place = *place;
}

static void
on_get(struct json_object *value, const struct err *why, void *arg)
{
	size_t len;

	assert_ptr_equal(arg, &last);
	assert_true((value == NULL) == (why != NULL));
	last.calls++;
	last.code = why == NULL ? ERR_NONE : why->code;
	last.text[0] = '\0';
	if (value != NULL)
		strncat(last.text, json_text(value, &len), sizeof last.text - 1);
}

static struct json_object *
parse(const char *text)
{
	struct err err;
	struct json_object *value = json_parse(text, strlen(text), &err);

	assert_non_null(value);
	return value;
}

static void
test_result_is_kept_once(void **state)
{
	AUTO_JSON struct json_object *first = parse("{\"status\":\"succeeded\",\"stdout\":\"a\\u0000b\"}");
	AUTO_JSON struct json_object *second = parse("{\"status\":\"failed\"}");
	const struct job_life life = { .expires_at = clock_wall() + 100 };
	char id[ID_UUID_SIZE];

	(void)state;
	id_uuid4(id);
	job_store_get_result(store, id, on_get, &last);
	assert_int_equal(last.code, ERR_NOT_FOUND);
	job_store_put_result(store, id, first, &life, on_put, &last);
	assert_int_equal(last.code, ERR_NONE);
	job_store_put_result(store, id, second, &life, on_put, &last);
	assert_int_equal(last.code, ERR_EXISTS);
	job_store_get_result(store, id, on_get, &last);
	assert_int_equal(last.code, ERR_NONE);
	assert_string_equal(last.text, "{\"status\":\"succeeded\",\"stdout\":\"a\\u0000b\"}");
	assert_int_equal(last.calls, 4);
}

static void
test_spec_is_read_at_its_place_and_is_no_result(void **state)
{
	AUTO_JSON struct json_object *spec = parse("{\"command\":\"echo\"}");
	struct record_location place;
	char id[ID_UUID_SIZE], other[ID_UUID_SIZE];

	(void)state;
	id_uuid4(id);
	id_uuid4(other);
	job_store_put_spec(store, id, spec, on_put, &last);
	assert_int_equal(last.code, ERR_NONE);
	place = last.place;
	assert_true(place.segment != 0);
	job_store_get_spec(store, id, &place, on_get, &last);
	assert_string_equal(last.text, "{\"command\":\"echo\"}");
	job_store_get_spec(store, other, &place, on_get, &last);
	assert_int_equal(last.code, ERR_NOT_FOUND);
	job_store_get_result(store, id, on_get, &last);
	assert_int_equal(last.code, ERR_NOT_FOUND);
}

static void
test_expired_result_is_not_found(void **state)
{
	AUTO_JSON struct json_object *job = parse("{}");
	const struct job_life life = { .expires_at = clock_wall() - 1 };
	char id[ID_UUID_SIZE];

	(void)state;
	id_uuid4(id);
	job_store_put_result(store, id, job, &life, on_put, &last);
	assert_int_equal(last.code, ERR_NONE);
	job_store_get_result(store, id, on_get, &last);
	assert_int_equal(last.code, ERR_NOT_FOUND);
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(test_result_is_kept_once),
		STORE_TEST(test_spec_is_read_at_its_place_and_is_no_result),
		STORE_TEST(test_expired_result_is_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
