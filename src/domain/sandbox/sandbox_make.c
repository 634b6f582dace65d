/*
 * sandbox_make.c - making what a pending record describes, until its agent answers.
 *
 * The driver is asked by uid, which it takes any number of times; the agent's
 * socket is there from the start, so one health call waits for it. Every late
 * event names the uid: what was deleted meanwhile is left alone. A failure ends
 * in status failed with the words of whoever failed, and nothing left behind. An
 * earlier life that the driver still has in our place is removed.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "backend/driver.h"
#include "backend/record_log.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "conf/config.h"

#include <event2/event.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAKE_HEALTH_MS = 30000, MAKE_FIRST_PAUSE_MS = 20, MAKE_LAST_PAUSE_MS = 1000 };

struct sandbox_make {
	LIST_ENTRY(sandbox_make) link;
	struct service *service;
	uint32_t slot;
	struct sandbox_record record; /* as it was when the making began */
	struct watch watch;
	struct event *timer; /* pause between health calls, and the deadline while the driver works */
	struct agent_call *call;
	int64_t deadline_ms, pause_ms;
	char ousted[ID_UUID_SIZE]; /* the life that had our id and is being removed */
	int64_t made_us; /* clock_boot_us() when the driver had made it */
	bool driver_works; /* its callback is still to come: this must not be freed before */
	bool over; /* nothing more to do but wait for that callback */
};

static void
make_free(struct sandbox_make *make)
{
	if (make->call != NULL)
		agent_call_cancel(make->call);
	watch_remove(&make->watch);
	event_free(make->timer);
	LIST_REMOVE(make, link);
	make->service->makes--;
	free(make);
}

void
sandbox_make_free_all(struct service *service)
{
	struct sandbox_make *make;

	while ((make = LIST_FIRST(&service->sandbox_makes)) != NULL)
		make_free(make);
}

/* Frees it now or when the driver has called back. */
static void
make_end(struct sandbox_make *make)
{
	make->over = true;
	event_del(make->timer);
	watch_remove(&make->watch);
	if (make->call != NULL)
		agent_call_cancel(STEAL_PTR(make->call));
	if (!make->driver_works)
		make_free(make);
}

static void
make_fail(struct sandbox_make *make, const char *reason)
{
	if (sandbox_fail(make->service, make->slot, make->record.uid, reason)) {
		log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = make->record.id },
			"sandbox was not made: %s", reason);
		sandbox_destroy_remains(make->service, make->slot, &make->record);
	}
	make_end(make);
}

static void
make_on_change(void *arg)
{
	struct sandbox_make *make = arg;
	struct sandbox_record record;

	if (!sandbox_read_life(make->service, make->slot, make->record.uid, &record) ||
		!sandbox_is_being_made(&record))
		make_end(make);
}

/* --- the agent --- */

static int
change_to_ready(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)arg;
	if (!sandbox_is_being_made(record))
		return err_set(err, ERR_CONFLICT, "not pending any more");
	record->status = SANDBOX_READY;
	record->ready = true;
	record->message[0] = '\0';
	record->ready_ms = record->status_ms = record->activity_ms = clock_boot_ms();
	return 0;
}

static void
make_done(struct sandbox_make *make)
{
	struct service *service = make->service;
	struct err err;

	service_count(service, METRIC_CREATES_READY, 1);
	service_count(service, METRIC_CREATE_AGENT_US, clock_boot_us() - make->made_us);
	if (sandbox_table_change(
		    service_sandboxes(service), make->slot, make->record.uid, change_to_ready, NULL, &err) == 0) {
		log_write(LOG_LEVEL_INFO, &(struct log_ctx){ .sandbox_id = make->record.id },
			"sandbox ready after %" PRId64 " ms", clock_boot_ms() - make->record.created_ms);
		sandbox_post(service, make->slot);
	}
	make_end(make);
}

static void
make_ask_later(struct sandbox_make *make)
{
	service_timer_set(make->timer, make->pause_ms);
	make->pause_ms = make->pause_ms * 2 < MAKE_LAST_PAUSE_MS ? make->pause_ms * 2 : MAKE_LAST_PAUSE_MS;
}

static void
make_on_health(const struct agent_answer *answer, void *arg)
{
	struct sandbox_make *make = arg;

	make->call = NULL;
	if (answer->outcome == AGENT_JOB)
		make_done(make);
	else if (answer->outcome == AGENT_DENIED)
		make_fail(make, answer->err->msg);
	else
		make_ask_later(make);
}

static void
make_ask_agent(struct sandbox_make *make)
{
	struct agent_target target = service_target(&make->record);
	int64_t left = make->deadline_ms - clock_boot_ms();
	struct err err;

	if (agent_health(make->service->agents, &target, left < MAKE_HEALTH_MS ? left : MAKE_HEALTH_MS,
		    make_on_health, make, &make->call, &err) != 0)
		make_ask_later(make);
}

/* --- the driver --- */

static void make_ask_driver(struct sandbox_make *make);

static int
change_made(struct sandbox_record *record, void *arg, struct err *err)
{
	const struct driver_made *made = arg;

	if (!sandbox_is_being_made(record))
		return err_set(err, ERR_CONFLICT, "not pending any more");
	if (!text_copy(record->endpoint, sizeof record->endpoint, made->endpoint))
		return err_set(err, ERR_INTERNAL, "the driver's endpoint is too long");
	record->pid = made->pid;
	record->pid_start = made->pid_start;
	return 0;
}

/*
 * A life has its record before anything is made of it, and an id has one record. So while that is ours, another
 * life's is gone for good: its creation came in after its deletion.
 */
static void
make_oust(struct sandbox_make *make, const char *uid)
{
	struct sandbox_record now, other = make->record;

	if (strcmp(make->ousted, uid) == 0 || !text_copy(other.uid, sizeof other.uid, uid) ||
		!sandbox_read_life(make->service, make->slot, make->record.uid, &now))
		return;
	memcpy(make->ousted, other.uid, sizeof make->ousted);
	log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = other.id },
		"an earlier sandbox of this id is still there: removed by the rule \"orphan\"");
	service_count(make->service, METRIC_REAPED_ORPHAN, 1);
	sandbox_destroy_remains(make->service, make->slot, &other);
}

static void
make_on_created(const struct driver_made *made, const struct err *why, void *arg)
{
	struct sandbox_make *make = arg;
	struct driver_made copy;
	struct err err;

	make->driver_works = false;
	if (make->over) {
		/* Given up meanwhile; the removal may have come before there was anything to remove. */
		if (why == NULL)
			sandbox_destroy_remains(make->service, make->slot, &make->record);
		make_free(make);
		return;
	}
	if (why != NULL && why->code == ERR_EXISTS) {
		make_oust(make, made->other_uid);
		make_ask_later(make);
		return;
	}
	if (why != NULL) {
		make_fail(make, why->msg);
		return;
	}
	copy = *made;
	if (sandbox_table_change(service_sandboxes(make->service), make->slot, make->record.uid, change_made, &copy,
		    &err) != 0) {
		make_fail(make, err.msg);
		return;
	}
	sandbox_post_shared(make->service, make->slot);
	snprintf(make->record.endpoint, sizeof make->record.endpoint, "%s", made->endpoint);
	make->made_us = clock_boot_us();
	make_ask_agent(make);
}

struct make_progress {
	enum sandbox_status status;
	char words[SANDBOX_MESSAGE_SIZE];
};

static int
change_progress(struct sandbox_record *record, void *arg, struct err *err)
{
	const struct make_progress *progress = arg;

	if (!sandbox_is_being_made(record))
		return err_set(err, ERR_CONFLICT, "not pending any more");
	if (record->status != (uint32_t)progress->status) {
		record->status = progress->status;
		record->status_ms = clock_boot_ms();
	}
	memcpy(record->message, progress->words, sizeof record->message);
	return 0;
}

static void
make_on_progress(const char *message, bool unschedulable, void *arg)
{
	struct sandbox_make *make = arg;
	struct make_progress progress = { .status = unschedulable ? SANDBOX_UNSCHEDULABLE : SANDBOX_PENDING };
	struct err err;

	snprintf(progress.words, sizeof progress.words, "%s", message);
	text_utf8_mend(progress.words);
	/* What is not pending any more needs no news of its making. */
	if (sandbox_table_change(service_sandboxes(make->service), make->slot, make->record.uid, change_progress,
		    &progress, &err) == 0)
		sandbox_post_shared(make->service, make->slot);
}

static void
make_on_time(evutil_socket_t fd, short what, void *arg)
{
	struct sandbox_make *make = arg;
	char words[SANDBOX_MESSAGE_SIZE];

	(void)fd;
	(void)what;
	if (clock_boot_ms() < make->deadline_ms) {
		if (make->driver_works || make->call != NULL)
			service_timer_set(make->timer, make->deadline_ms - clock_boot_ms());
		else if (make->record.endpoint[0] == '\0')
			make_ask_driver(make);
		else
			make_ask_agent(make);
		return;
	}
	snprintf(words, sizeof words, "it did not become ready within its timeout of %" PRId64 " s: %s",
		make->record.create_timeout_s,
		make->driver_works ? "it was still being made" : "its agent did not answer");
	make_fail(make, words);
}

/* The environment as it was asked for; NULL when there is none. */
static int
make_load_env(struct sandbox_make *make, struct json_object **ret_env, struct err *err)
{
	struct record_key key = record_key_job(make->record.uid);
	AUTO_FREE char *text = NULL;
	size_t len;

	*ret_env = NULL;
	if (make->record.env.segment == 0)
		return 0;
	if (record_log_read(make->service->log, RECORD_JOB_SPEC, &key, &make->record.env, &text, &len, err) != 0)
		return -1;
	*ret_env = json_parse(text, len, err);
	return *ret_env != NULL ? 0 : -1;
}

/* What stands in the label that names it, else whoever sent the request. */
static void
make_line(const struct sandbox_make *make, char *line, size_t size)
{
	const char *label = make->service->config->create_turns_label, *labels = make->record.labels;
	AUTO_JSON struct json_object *object = NULL;
	struct json_object *value;
	struct err err;

	snprintf(line, size, "%s", make->record.tenant);
	if (label[0] == '\0' || labels[0] == '\0')
		return;
	object = json_parse(labels, strlen(labels), &err);
	if (object != NULL && json_object_object_get_ex(object, label, &value))
		snprintf(line, size, "%s/%s", make->record.tenant, json_object_get_string(value));
}

static void
make_ask_driver(struct sandbox_make *make)
{
	AUTO_JSON struct json_object *env = NULL;
	struct driver *driver = make->service->driver;
	const struct sandbox_record *record = &make->record;
	char image[SANDBOX_IMAGE_SIZE], line[64];
	struct err err;

	if (driver_image_resolve(make->service->config, record->image, image, sizeof image, &err) != 0 ||
		make_load_env(make, &env, &err) != 0) {
		make_fail(make, err.msg);
		return;
	}
	make_line(make, line, sizeof line);
	make->driver_works = true;
	service_timer_set(make->timer, make->deadline_ms - clock_boot_ms());
	driver->ops->create(driver,
		&(struct driver_spec){
			.id = record->id,
			.uid = record->uid,
			.token = record->agent_token,
			.line = line,
			.tenant = record->tenant,
			.labels = record->labels,
			.image = image,
			.working_dir = record->working_dir,
			.env = env,
			.block_network = record->block_network,
			.egress = &record->egress,
			.cpu_milli = record->cpu_milli,
			.memory_bytes = record->memory_bytes,
			.disk_bytes = record->disk_bytes,
			.pids_max = make->service->config->sandbox_pids_max,
		},
		make_on_progress, make_on_created, make);
}

void
sandbox_make_start(struct service *service, uint32_t slot, const struct sandbox_record *record)
{
	struct sandbox_make *make = alloc_zero(1, sizeof *make);

	make->service = service;
	make->slot = slot;
	make->record = *record;
	make->pause_ms = MAKE_FIRST_PAUSE_MS;
	make->deadline_ms = record->created_ms + record->create_timeout_s * 1000;
	make->timer = service_timer(service, make_on_time, make);
	make->watch = (struct watch){ .on_change = make_on_change, .arg = make };
	LIST_INSERT_HEAD(&service->sandbox_makes, make, link);
	service->makes++;
	watch_add(&service->watches, &make->watch, NOTIFY_SANDBOX, slot);
	make_ask_driver(make);
}
