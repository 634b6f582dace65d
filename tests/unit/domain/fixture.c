/* fixture.c - the services, and what the tests wait for. */
/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "fakes.h"
#include "backend/job_store.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "domain/idempotency.h"
#include "domain/service_priv.h"
#include "ipc/exec_lock.h"
#include "ipc/job_table.h"
#include "ipc/notify.h"
#include "ipc/shm.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_S = 5 };

static char local_driver[] = "local";

static void
must(int rc, const struct err *err)
{
	if (rc != 0)
		fail_msg("%s", err->msg);
}

static void
fixture_config(struct fixture *f)
{
	f->config = (struct config){
		.max_waiting_creates = 100,
		.state_dir = strdup(f->dir),
		.run_dir = strdup(f->dir),
		.default_cpu = strdup("1"),
		.default_memory = strdup("1Gi"),
		.default_image = strdup("dir:/srv/image"),
		.create_turns_label = strdup("team"),
		.driver = local_driver,
		.default_create_timeout_seconds = 60,
		.sandbox_ttl_hours = 1,
		.readiness_wait_seconds = 60,
		.pending_timeout_buffer_seconds = 60,
		.heartbeat_cleanup_enabled = true,
		.heartbeat_timeout_seconds = 180,
		.failed_keep_seconds = 600,
		.agent_silence_seconds = 600,
		.cleanup_interval_seconds = 300,
		.max_waiters = 100,
		.max_wait_seconds = 60,
		.max_concurrent_execs = 100,
		.sandbox_exec_queue_limit = 4,
		.sandbox_pids_max = 100,
		.default_exec_timeout_seconds = 60,
		.max_exec_timeout_seconds = 3600,
		.max_output_bytes = 1048576,
		.orphan_job_ttl_hours = 1,
		.idempotency_ttl_seconds = 3600,
		.idempotency_min_seconds = 900,
		.job_store_max_bytes = INT64_C(1) << 30,
	};
}

void
fixture_revive(struct fixture *f, int service)
{
	struct service_options options = {
		.base = f->base,
		.config = &f->config,
		.shm = f->shm,
		.notify = f->notify,
		.driver = fake_driver_create(f),
	};
	struct err err;

	must(scoreboard_claim(shm_scoreboard(f->shm), PROC_WORKER, &options.self, &err), &err);
	scoreboard_set_pid(shm_scoreboard(f->shm), options.self, getpid(), 1);
	f->refs[service] = options.self;
	must(service_create(&options, &f->services[service], &err), &err);
}

int
fixture_setup_sized(void **state, uint32_t sandboxes)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct shm_sizes sizes = { .sandboxes = sandboxes, .jobs = 32, .records = 256, .keys = 64, .lanes = 32 };
	char path[96];
	struct err err;
	bool adopted;

	fake_clock_reset();
	signal(SIGPIPE, SIG_IGN);
	log_init("test", LOG_LEVEL_ERROR);
	snprintf(f->dir, sizeof f->dir, "/tmp/domain-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	fixture_config(f);
	f->base = event_base_new();
	snprintf(path, sizeof path, "%s/shm", f->dir);
	must(shm_open_or_create(path, &sizes, &f->shm, &adopted, &err), &err);
	must(notify_open(shm_notify(f->shm), &f->notify, &err), &err);
	f->agent_fd = -1;
	f->age_ms = INT64_MAX;
	fake_agent_start(f);
	for (int i = 0; i < FIXTURE_SERVICES; i++)
		fixture_revive(f, i);
	*state = f;
	return 0;
}

int
fixture_setup(void **state)
{
	return fixture_setup_sized(state, 8);
}

static void
fixture_config_free(struct fixture *f)
{
	free(f->config.state_dir);
	free(f->config.run_dir);
	free(f->config.default_cpu);
	free(f->config.default_memory);
	free(f->config.default_image);
	free(f->config.create_turns_label);
}

int
fixture_teardown(void **state)
{
	struct fixture *f = *state;
	struct err err;

	for (int i = 0; i < FIXTURE_SERVICES; i++)
		service_free(f->services[i]);
	fake_agent_stop(f);
	run_due(f);
	notify_close(f->notify);
	shm_close(f->shm);
	event_base_free(f->base);
	must(file_remove_tree_at(AT_FDCWD, f->dir, &err), &err);
	fixture_config_free(f);
	free(f);
	return 0;
}

void
fixture_kill(struct fixture *f, int service)
{
	const struct exec_lock_limits limits = { .running = 100, .per_sandbox = 4 };

	service_free(f->services[service]);
	f->services[service] = NULL;
	scoreboard_retire(shm_scoreboard(f->shm), f->refs[service]);
	exec_lock_repair(shm_exec_lock(f->shm), f->notify, shm_scoreboard(f->shm), &limits);
}

/* --- the loop --- */

static void
on_patience(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
}

static bool
flag_is_set(struct fixture *f, const bool *flag, bool (*done)(struct fixture *f))
{
	return flag != NULL ? *flag : done(f);
}

static void
run_loop(struct fixture *f, const bool *flag, bool (*done)(struct fixture *f))
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	bool over = false;
	struct event *timer = event_new(f->base, -1, 0, on_patience, &over);

	event_add(timer, &patience);
	while (!over && !flag_is_set(f, flag, done))
		event_base_loop(f->base, EVLOOP_ONCE);
	event_free(timer);
	if (over)
		fail_msg("it did not happen within %d s", PATIENCE_S);
}

void
run_until(struct fixture *f, const bool *flag)
{
	run_loop(f, flag, NULL);
}

void
run_until_call(struct fixture *f, bool (*done)(struct fixture *f))
{
	run_loop(f, NULL, done);
}

void
run_due(struct fixture *f)
{
	for (int i = 0; i < 20; i++)
		event_base_loop(f->base, EVLOOP_NONBLOCK);
}

/* --- callbacks --- */

static void
outcome_error(struct outcome *outcome, const struct err *why)
{
	outcome->done = true;
	outcome->code = why != NULL ? (int)why->code : ERR_NONE;
	snprintf(outcome->message, sizeof outcome->message, "%s", why != NULL ? why->msg : "");
}

static void
outcome_string(struct json_object *job, const char *name, char *ret, size_t size)
{
	const char *text = json_object_get_string(json_object_object_get(job, name));

	snprintf(ret, size, "%s", text != NULL ? text : "");
}

void
on_submitted(const char *job_id, const struct err *why, void *arg)
{
	struct outcome *outcome = arg;

	outcome_error(outcome, why);
	if (job_id != NULL)
		snprintf(outcome->job_id, sizeof outcome->job_id, "%s", job_id);
}

void
on_job(struct json_object *job, const struct err *why, void *arg)
{
	struct outcome *outcome = arg;
	struct json_object *code;

	assert_false(outcome->done);
	outcome_error(outcome, why);
	if (json_object_is_type(job, json_type_array)) {
		outcome->items = (int)json_object_array_length(job);
		outcome_string(json_object_array_get_idx(job, 0), "job_id", outcome->first, sizeof outcome->first);
		return;
	}
	if (job == NULL)
		return;
	assert_null(json_object_object_get(job, "_tenant"));
	outcome_string(job, "job_id", outcome->job_id, sizeof outcome->job_id);
	outcome_string(job, "status", outcome->status, sizeof outcome->status);
	outcome_string(job, "verdict", outcome->verdict, sizeof outcome->verdict);
	outcome_string(job, "error", outcome->error, sizeof outcome->error);
	outcome_string(job, "stdout", outcome->output, sizeof outcome->output);
	outcome_string(job, "blocked_by", outcome->blocked_by, sizeof outcome->blocked_by);
	outcome->started = json_object_object_get(job, "started_at") != NULL;
	outcome->queue_s = json_object_get_double(json_object_object_get(job, "queue_s"));
	code = json_object_object_get(job, "exit_code");
	outcome->exit_code = code != NULL ? json_object_get_int(code) : -1;
}

void
on_sandbox(const struct sandbox_record *record, const struct err *why, void *arg)
{
	struct outcome *outcome = arg;

	assert_false(outcome->done);
	outcome_error(outcome, why);
	if (record != NULL)
		snprintf(outcome->status, sizeof outcome->status, "%s",
			sandbox_status_name((enum sandbox_status)record->status));
}

/* --- requests --- */

/* What a call that ends before it returns has said. */
struct said {
	int rc;
	struct sandbox_record *record; /* NULL: of no interest */
	bool existing;
	struct err *err;
};

static void
say(struct said *said, const struct sandbox_record *record, const struct err *why)
{
	said->rc = why != NULL ? -1 : 0;
	if (why != NULL)
		*said->err = *why;
	if (record != NULL && said->record != NULL)
		*said->record = *record;
}

static void
on_entered(const struct sandbox_record *record, bool existing, const struct err *why, void *arg)
{
	struct said *said = arg;

	said->existing = existing;
	say(said, record, why);
}

static void
on_changed(const struct sandbox_record *record, const struct err *why, void *arg)
{
	say(arg, record, why);
}

static void
on_told(const struct err *why, void *arg)
{
	say(arg, NULL, why);
}

int
create_sandbox(struct fixture *f, int service, const char *json, struct sandbox_record *ret_record,
	bool *ret_existing, struct err *err)
{
	AUTO_JSON struct json_object *body = json_parse(json, strlen(json), err);
	struct said said = { .rc = 1, .record = ret_record, .err = err };
	struct json_reader reader;
	struct sandbox_spec spec;

	assert_non_null(body);
	json_reader_init(&reader, body);
	sandbox_spec_read(&f->config, &reader, &spec);
	assert_null(reader.faults);
	sandbox_create(f->services[service], "t", &spec, on_entered, &said);
	assert_int_not_equal(said.rc, 1);
	*ret_existing = said.existing;
	json_reader_fini(&reader);
	return said.rc;
}

int
patch_sandbox(struct fixture *f, int service, const char *id, const struct sandbox_change *change,
	struct sandbox_record *ret_record, struct err *err)
{
	struct said said = { .rc = 1, .record = ret_record, .err = err };

	sandbox_patch(f->services[service], "t", id, change, on_changed, &said);
	assert_int_not_equal(said.rc, 1);
	return said.rc;
}

int
delete_sandbox(struct fixture *f, int service, const char *tenant, const char *id, struct err *err)
{
	struct said said = { .rc = 1, .err = err };

	sandbox_delete(f->services[service], tenant, id, on_told, &said);
	assert_int_not_equal(said.rc, 1);
	return said.rc;
}

void
make_sandbox(struct fixture *f, const char *id, struct sandbox_record *ret_record)
{
	struct outcome ready = { 0 };
	struct sandbox_wait *wait;
	char json[256];
	struct err err;
	bool existing;

	snprintf(json, sizeof json, "{\"image\":\"default\",\"sandbox_id\":\"%s\"}", id);
	must(create_sandbox(f, 0, json, ret_record, &existing, &err), &err);
	must(sandbox_wait_start(f->services[0], "t", id, 5000, on_sandbox, &ready, &wait, &err), &err);
	run_until(f, &ready.done);
	assert_string_equal(ready.status, "ready");
	must(sandbox_get(f->services[0], "t", id, ret_record, &err), &err);
}

static void
submit_with(struct fixture *f, int service, const char *sandbox_id, const char *json, const char *name,
	struct outcome *ret, struct exec_submit **ret_submit)
{
	static const char *const skipped[] = { "wait", NULL };
	struct idempotency_key key = { .name = name };
	struct exec_submit *handle;
	struct json_object *body;
	struct json_reader reader;
	struct exec_spec spec;
	struct err err;

	*ret = (struct outcome){ 0 };
	body = json_parse(json, strlen(json), &err);
	assert_non_null(body);
	json_reader_init(&reader, body);
	exec_spec_read(&f->config, &reader, &spec);
	assert_null(reader.faults);
	if (name != NULL) {
		idempotency_digest("exec", sandbox_id, body, skipped, key.digest);
		spec.key = &key;
	}
	exec_submit(f->services[service], "t", sandbox_id, &spec, on_submitted, ret, &handle);
	exec_spec_fini(&spec);
	json_reader_fini(&reader);
	json_object_put(body);
	if (handle == NULL)
		assert_true(ret->done);
	/* The end of the turn in which the request came. */
	job_store_flush(f->services[service]->store);
	if (ret_submit != NULL)
		*ret_submit = ret->done ? NULL : handle;
}

void
submit(struct fixture *f, int service, const char *sandbox_id, const char *json, struct outcome *ret,
	struct exec_submit **ret_submit)
{
	submit_with(f, service, sandbox_id, json, NULL, ret, ret_submit);
}

void
submit_keyed(struct fixture *f, int service, const char *sandbox_id, const char *json, const char *key,
	struct outcome *ret)
{
	submit_with(f, service, sandbox_id, json, key, ret, NULL);
}

static void
on_stored(const struct record_location *place, const struct err *why, void *arg)
{
	(void)place;
	(void)arg;
	assert_null(why);
}

void
store_result(struct fixture *f, int service, const char *job_id, const char *json)
{
	struct record_log *log = service_record_log(f->services[service]);
	struct job_store *store = job_store_create(log, log);
	const struct job_life life = { .expires_at = clock_wall() + 1000 };
	struct err err;
	struct json_object *job = json_parse(json, strlen(json), &err);

	assert_non_null(job);
	job_store_put_result(store, job_id, job, &life, on_stored, NULL);
	json_object_put(job);
	job_store_free(store);
}

void
wait_job(struct fixture *f, int service, const char *job_id, struct outcome *ret)
{
	struct job_wait *wait;
	char id[ID_UUID_SIZE];

	/* job_id may stand in *ret. */
	snprintf(id, sizeof id, "%s", job_id);
	*ret = (struct outcome){ 0 };
	job_wait_start(f->services[service], "t", id, 10000, on_job, ret, &wait);
	assert_true((wait == NULL) == ret->done);
	run_until(f, &ret->done);
}

void
run_command(struct fixture *f, int service, const char *sandbox_id, const char *json, struct outcome *ret)
{
	struct outcome submitted;

	submit(f, service, sandbox_id, json, &submitted, NULL);
	run_until(f, &submitted.done);
	if (submitted.code != ERR_NONE)
		fail_msg("%s", submitted.message);
	wait_job(f, service, submitted.job_id, ret);
}

bool
nothing_is_left(struct fixture *f)
{
	struct exec_lock_stats stats;

	exec_lock_stats(shm_exec_lock(f->shm), &stats);
	return job_table_count(shm_jobs(f->shm)) == 0 && stats.nodes_used == 0 && stats.running == 0;
}

void
assert_idle(struct fixture *f)
{
	run_until_call(f, nothing_is_left);
	for (int i = 0; i < FIXTURE_SERVICES; i++)
		if (f->services[i] != NULL)
			assert_int_equal(service_busy(f->services[i]), 0);
}

void
hold_command(struct fixture *f, int service, const char *json, struct outcome *ret)
{
	int before = f->job_count;

	f->next = FAKE_HOLD;
	submit(f, service, "a", json, ret, NULL);
	assert_int_equal(ret->code, ERR_NONE);
	while (f->job_count == before)
		event_base_loop(f->base, EVLOOP_ONCE);
}

uint32_t
slot_of(struct fixture *f, const char *job_id)
{
	struct job_record record;
	uint32_t slot;

	assert_true(job_table_find(shm_jobs(f->shm), job_id, &record, &slot));
	return slot;
}

bool
agent_has_a_job(struct fixture *f)
{
	return f->job_count > 0;
}
