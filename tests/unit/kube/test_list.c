/* test_list.c - pages of a list, and pages that expire. */
/* SPDX-License-Identifier: MIT */
#include "kube_rig.h"

#include "base/alloc.h"
#include "base/err.h"
#include "kube/kube_client.h"
#include "kube/kube_config.h"
#include "kube/kube_list.h"
#include "kube/kube_status.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ANSWER_MAX = 1000 };

struct fixture {
	struct rig rig;
	struct kube_config *config;
	struct kube_client *client;
	struct kube_list *list;
	char names[256];
	uint32_t items;
	uint32_t agains;
	bool done;
	enum err_code code;
	char version[32];
	bool cancel_at_item, free_at_item;
	uint32_t expired; /* second pages that have expired, still to come */
	bool endless; /* each page leads to the second */
	bool large, larger; /* two items, or one, are more than an answer may be */
};

static void
on_again(void *arg)
{
	struct fixture *f = arg;

	f->agains++;
	f->names[0] = '\0';
}

static void
on_item(void *arg, struct json_object *item)
{
	struct fixture *f = arg;

	f->items++;
	strcat(f->names, kube_json_text(item, "name"));
	if (f->cancel_at_item)
		kube_list_cancel(f->list);
	if (f->free_at_item)
		kube_client_free(f->client);
}

static void
on_done(void *arg, const char *resource_version, const struct err *why)
{
	struct fixture *f = arg;

	f->done = true;
	f->code = why != NULL ? why->code : ERR_NONE;
	snprintf(f->version, sizeof f->version, "%s", resource_version);
}

static const struct kube_list_ops ops = { on_again, on_item, on_done };

static void
handle(const struct rig_request *request, void *arg)
{
	struct fixture *f = arg;
	bool one = strstr(request->line, "limit=1&") != NULL;
	char large[ANSWER_MAX + 2];

	memset(large, ' ', sizeof large);
	large[sizeof large - 1] = '\0';
	if (f->larger || (f->large && !one))
		rig_answer(request, 200, "", large);
	else if (strstr(request->line, "continue") == NULL || f->endless)
		rig_answer(request, 200, "",
			"{\"metadata\":{\"continue\":\"a+b=/\"},\"items\":[{\"name\":\"a\"},{\"name\":\"b\"}]}");
	else if (f->expired == 0)
		rig_answer(request, 200, "",
			"{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[{\"name\":\"c\"}]}");
	else {
		f->expired--;
		rig_refuse(request, 410, "Expired", "");
	}
}

static void
start(struct fixture *f)
{
	struct kube_options options = { .pause_ms = 1, .max_bytes = ANSWER_MAX };
	struct kube_list_ask ask = { .path = "/api/v1/nodes", .selector = "a in (b)", .page = 2 };
	struct err err;

	memset(f, 0, sizeof *f);
	rig_start(&f->rig, handle, f);
	f->config = rig_config(&f->rig, NULL);
	assert_int_equal(kube_client_create(f->rig.base, f->config, &options, &f->client, &err), 0);
	f->list = kube_list_start(f->client, &ask, &ops, f);
}

static void
stop(struct fixture *f)
{
	kube_client_free(f->client);
	kube_config_free(f->config);
	rig_stop(&f->rig);
}

static void
test_pages_make_one_list(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	rig_until(&f.rig, &f.done);
	assert_int_equal(f.code, ERR_NONE);
	assert_string_equal(f.names, "abc");
	assert_string_equal(f.version, "9");
	assert_string_equal(f.rig.log[0].line, "GET /api/v1/nodes?limit=2&labelSelector=a%20in%20%28b%29");
	assert_non_null(strstr(f.rig.log[1].line, "&continue=a%2Bb%3D%2F"));
	stop(&f);
}

static void
test_pages_get_smaller_when_objects_are_large(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	f.large = true;
	rig_until(&f.rig, &f.done);
	assert_int_equal(f.code, ERR_NONE);
	assert_string_equal(f.names, "abc");
	assert_int_equal(f.agains, 0);
	assert_int_equal(f.rig.requests, 3);
	stop(&f);
	start(&f);
	f.larger = true;
	rig_until(&f.rig, &f.done);
	assert_int_equal(f.code, ERR_TOO_LARGE);
	assert_int_equal(f.rig.requests, 2);
	stop(&f);
}

static void
test_pages_that_expired_begin_anew_but_not_for_ever(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	f.expired = 2;
	rig_until(&f.rig, &f.done);
	assert_int_equal(f.code, ERR_NONE);
	assert_int_equal(f.agains, 2);
	assert_string_equal(f.names, "abc");
	stop(&f);
	start(&f);
	f.expired = UINT32_MAX;
	rig_until(&f.rig, &f.done);
	assert_int_equal(f.code, ERR_GONE);
	assert_int_equal(f.agains, 3);
	stop(&f);
}

static void
test_pages_that_lead_nowhere_are_no_list(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	f.endless = true;
	rig_until(&f.rig, &f.done);
	assert_int_equal(f.code, ERR_UNAVAILABLE);
	assert_string_equal(f.names, "ab");
	assert_int_equal(f.rig.requests, 2);
	stop(&f);
}

static void
test_it_may_be_cancelled_from_inside(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	f.cancel_at_item = true;
	rig_until_count(&f.rig, &f.items, 1);
	rig_turn(&f.rig, 5);
	assert_string_equal(f.names, "a");
	assert_false(f.done);
	stop(&f);
	start(&f);
	f.free_at_item = true;
	rig_until_count(&f.rig, &f.items, 1);
	assert_string_equal(f.names, "a");
	f.client = NULL;
	stop(&f);
	start(&f);
	kube_list_cancel(f.list);
	rig_turn(&f.rig, 5);
	assert_false(f.done);
	stop(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages_make_one_list),
		cmocka_unit_test(test_pages_get_smaller_when_objects_are_large),
		cmocka_unit_test(test_pages_that_expired_begin_anew_but_not_for_ever),
		cmocka_unit_test(test_pages_that_lead_nowhere_are_no_list),
		cmocka_unit_test(test_it_may_be_cancelled_from_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
