/* fake_driver.c - a driver that makes nothing and answers from the loop. */
/* SPDX-License-Identifier: MIT */
#include "fakes.h"
#include "fixture.h"
#include "backend/driver.h"
#include "base/err.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <cmocka.h>

struct fake_call {
	LIST_ENTRY(fake_call) link;
	struct fake_driver *driver;
	struct event *event;
	driver_created_f *created;
	driver_done_f *done;
	driver_host_f *host;
	driver_usage_f *usage;
	driver_item_f *item;
	char uid[ID_UUID_SIZE]; /* of a create */
	void *arg;
};

struct fake_driver {
	struct driver driver;
	struct fixture *f;
	LIST_HEAD(, fake_call) calls;
	driver_item_f *gone;
	void *gone_arg;
};

static void
call_free(struct fake_call *call)
{
	LIST_REMOVE(call, link);
	event_free(call->event);
	free(call);
}

static void
call_created(struct fake_call *call)
{
	struct fixture *f = call->driver->f;
	char endpoint[96];
	struct err err;

	if (f->create_error != NULL) {
		err_set(&err, ERR_UNAVAILABLE, "%s", f->create_error);
		call->created(NULL, &err, call->arg);
		return;
	}
	if (f->other_uid[0] != '\0' && strcmp(f->other_uid, call->uid) != 0) {
		err_set(&err, ERR_EXISTS, "another life is there");
		call->created(&(struct driver_made){ .other_uid = f->other_uid }, &err, call->arg);
		return;
	}
	snprintf(endpoint, sizeof endpoint, "unix:%s/agent.sock", f->dir);
	call->created(
		&(struct driver_made){ .endpoint = endpoint, .pid = getpid(), .pid_start = 1 }, NULL, call->arg);
}

static void
call_destroyed(struct fake_call *call)
{
	struct fixture *f = call->driver->f;
	struct err err;

	f->destroying--;
	if (f->destroy_failures > 0) {
		f->destroy_failures--;
		err_set(&err, ERR_UNAVAILABLE, "not yet");
		call->done(&err, call->arg);
		return;
	}
	f->destroys++;
	if (strcmp(f->other_uid, f->destroyed_uid) == 0)
		f->other_uid[0] = '\0';
	call->done(NULL, call->arg);
}

static void
call_list(struct fake_call *call)
{
	struct fixture *f = call->driver->f;
	struct err err;

	f->lists++;
	for (int i = 0; i < f->item_count; i++)
		call->item(&(struct driver_item){ .id = f->items[i].id,
				   .known_ms = f->items[i].known_ms,
				   .uid = f->items[i].uid,
				   .alive = f->items[i].alive,
				   .wait_status = -1 },
			call->arg);
	err_set(&err, ERR_UNAVAILABLE, "the list broke off");
	call->done(f->list_fails ? &err : NULL, call->arg);
}

static void
call_stat(struct fake_call *call)
{
	struct fixture *f = call->driver->f;
	struct err err;

	err_set(&err, ERR_NOT_FOUND, "no such sandbox");
	if (f->usage != NULL)
		call->usage(f->usage, NULL, call->arg);
	else
		call->usage(NULL, &err, call->arg);
}

static void
on_event(evutil_socket_t fd, short what, void *arg)
{
	struct fake_call *call = arg;

	(void)fd;
	(void)what;
	if (call->created != NULL)
		call_created(call);
	else if (call->item != NULL)
		call_list(call);
	else if (call->done != NULL)
		call_destroyed(call);
	else if (call->usage != NULL)
		call_stat(call);
	else
		call->host(&(struct driver_host){ .usable = true,
				   .problem = "",
				   .cgroup_mode = "v2",
				   .missing = "",
				   .cpu_milli = 8000,
				   .memory_bytes = INT64_C(16) << 30,
				   .networks = 5 },
			NULL, call->arg);
	call_free(call);
}

static struct fake_call *
call_new(struct driver *driver, void *arg)
{
	struct fake_driver *fake = (struct fake_driver *)driver;
	struct fake_call *call = calloc(1, sizeof *call);

	call->driver = fake;
	call->arg = arg;
	call->event = event_new(fake->f->base, -1, 0, on_event, call);
	LIST_INSERT_HEAD(&fake->calls, call, link);
	return call;
}

static void
fake_create(struct driver *driver, const struct driver_spec *spec, driver_progress_f *progress,
	driver_created_f *done, void *arg)
{
	struct fixture *f = ((struct fake_driver *)driver)->f;
	struct fake_call *call = call_new(driver, arg);

	assert_true(id_is_uuid(spec->uid));
	f->creates++;
	snprintf(f->created_env, sizeof f->created_env, "%s",
		spec->env != NULL ? json_object_to_json_string_ext(spec->env, JSON_C_TO_STRING_PLAIN) : "");
	snprintf(call->uid, sizeof call->uid, "%s", spec->uid);
	call->created = done;
	progress("unpacking the image", f->unschedulable, arg);
	if (f->hold_creates)
		f->held[f->held_count++] = call;
	else
		event_active(call->event, EV_TIMEOUT, 1);
}

void
fixture_release_creates(struct fixture *f)
{
	for (int i = 0; i < f->held_count; i++)
		event_active(((struct fake_call *)f->held[i])->event, EV_TIMEOUT, 1);
	f->held_count = 0;
	f->hold_creates = false;
}

static void
fake_destroy(struct driver *driver, const char *id, const char *uid, driver_done_f *done, void *arg)
{
	struct fixture *f = ((struct fake_driver *)driver)->f;
	struct fake_call *call = call_new(driver, arg);

	(void)id;
	if (++f->destroying > f->most_destroying)
		f->most_destroying = f->destroying;
	snprintf(f->destroyed_uid, sizeof f->destroyed_uid, "%s", uid);
	call->done = done;
	event_active(call->event, EV_TIMEOUT, 1);
}

static void
fake_list(struct driver *driver, driver_item_f *item, driver_done_f *done, void *arg)
{
	struct fake_call *call = call_new(driver, arg);

	call->item = item;
	call->done = done;
	event_active(call->event, EV_TIMEOUT, 1);
}

static void
fake_watch(struct driver *driver, driver_item_f *gone, void *arg)
{
	struct fake_driver *fake = (struct fake_driver *)driver;

	fake->gone = gone;
	fake->gone_arg = arg;
	fake->f->watcher = fake;
}

void
fake_gone(struct fixture *f, const char *id, const char *uid, int wait_status)
{
	struct fake_driver *fake = f->watcher;

	fake->gone(&(struct driver_item){ .id = id, .uid = uid, .wait_status = wait_status }, fake->gone_arg);
}

static void
fake_host(struct driver *driver, driver_host_f *done, void *arg)
{
	struct fake_call *call = call_new(driver, arg);

	call->host = done;
	event_active(call->event, EV_TIMEOUT, 1);
}

static void
fake_stat(struct driver *driver, const char *id, const char *uid, driver_usage_f *done, void *arg)
{
	struct fixture *f = ((struct fake_driver *)driver)->f;
	struct fake_call *call = call_new(driver, arg);

	(void)id;
	(void)uid;
	call->usage = done;
	if (f->hold_stats)
		f->held[f->held_count++] = call;
	else
		event_active(call->event, EV_TIMEOUT, 1);
}

static void
fake_free(struct driver *driver)
{
	struct fake_driver *fake = (struct fake_driver *)driver;
	struct fake_call *call;

	while ((call = LIST_FIRST(&fake->calls)) != NULL) {
		for (int i = 0; i < fake->f->held_count; i++)
			if (fake->f->held[i] == call)
				fake->f->held[i] = fake->f->held[--fake->f->held_count];
		call_free(call);
	}
	free(fake);
}

#define FAKE_OPS(counted)                                                                                          \
	{                                                                                                          \
		.name = "fake", .create = fake_create, .destroy = fake_destroy, .list = fake_list,                 \
		.watch = fake_watch, .host = fake_host, .free = fake_free, .stat = (counted)                       \
	}

struct driver *
fake_driver_create(struct fixture *f)
{
	static const struct driver_ops ops = FAKE_OPS(fake_stat), ops_of_pods = FAKE_OPS(NULL);
	struct fake_driver *fake = calloc(1, sizeof *fake);

	fake->driver.ops = f->agents_tell ? &ops_of_pods : &ops;
	fake->f = f;
	return &fake->driver;
}

/* --- in the place of the real driver, at link time --- */

int
driver_asker_create(
	struct event_base *base, const struct config *config, struct driver **ret_driver, struct err *err)
{
	(void)base;
	(void)config;
	(void)ret_driver;
	return err_set(err, ERR_UNSUPPORTED, "the tests bring a driver of their own");
}

int
driver_image_resolve(const struct config *config, const char *image, char *ret_image, size_t size, struct err *err)
{
	if (strcmp(image, "default") != 0)
		return err_set(err, ERR_DENIED, "only \"default\" is allowed here");
	snprintf(ret_image, size, "%s", config->default_image);
	return 0;
}
