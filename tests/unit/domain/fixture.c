/* fixture.c - the services, and what the tests wait for. */
/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "fakes.h"
#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "ipc/exec_lock.h"
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
		.state_dir = strdup(f->dir),
		.run_dir = strdup(f->dir),
		.default_cpu = strdup("1"),
		.default_memory = strdup("1Gi"),
		.default_image = strdup("dir:/srv/image"),
		.default_create_timeout_seconds = 60,
		.sandbox_ttl_hours = 1,
		.readiness_wait_seconds = 60,
		.pending_timeout_buffer_seconds = 60,
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
fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct shm_sizes sizes = { .sandboxes = 8, .jobs = 32, .records = 256 };
	char path[96];
	struct err err;
	bool adopted;

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
	fake_agent_start(f);
	for (int i = 0; i < FIXTURE_SERVICES; i++)
		fixture_revive(f, i);
	*state = f;
	return 0;
}

static void
fixture_config_free(struct fixture *f)
{
	free(f->config.state_dir);
	free(f->config.run_dir);
	free(f->config.default_cpu);
	free(f->config.default_memory);
	free(f->config.default_image);
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

int
create_sandbox(struct fixture *f, int service, const char *json, struct sandbox_record *ret_record,
	bool *ret_existing, struct err *err)
{
	AUTO_JSON struct json_object *body = json_parse(json, strlen(json), err);
	struct json_reader reader;
	struct sandbox_spec spec;
	int rc;

	assert_non_null(body);
	json_reader_init(&reader, body);
	sandbox_spec_read(&f->config, &reader, &spec);
	assert_null(reader.faults);
	rc = sandbox_create(f->services[service], "t", &spec, ret_record, ret_existing, err);
	json_reader_fini(&reader);
	return rc;
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

void
submit(struct fixture *f, int service, const char *sandbox_id, const char *json, struct outcome *ret,
	struct exec_submit **ret_submit)
{
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
	exec_submit(f->services[service], "t", sandbox_id, &spec, on_submitted, ret, &handle);
	exec_spec_fini(&spec);
	json_reader_fini(&reader);
	json_object_put(body);
	assert_true((handle == NULL) == ret->done);
	if (ret_submit != NULL)
		*ret_submit = handle;
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
