/* handle_metrics.c - GET /metrics: what all processes of this server have counted, for Prometheus. */
/* SPDX-License-Identifier: MIT */
#include "config.h"
#include "worker/routes.h"

#include "conf/config.h"
#include "ipc/exec_lock.h"
#include "ipc/job_table.h"
#include "ipc/record_index.h"
#include "ipc/sandbox_table.h"
#include "ipc/scoreboard.h"
#include "ipc/shm.h"
#include "worker/api.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <event2/buffer.h>

/* One line per counter of the scoreboard; several lines of one family stand together, help with the first. */
static const struct counter {
	enum metric metric;
	const char *type;
	const char *name;
	const char *labels;
	const char *help; /* NULL: another line of the family before */
} counters[] = {
	{ METRIC_CONNECTIONS, "gauge", "orchard_connections", "", "Client connections open now" },
	{ METRIC_CONNECTIONS_TOTAL, "counter", "orchard_connections_total", "", "Client connections accepted" },
	{ METRIC_CONNECTIONS_REFUSED, "counter", "orchard_connections_refused_total", "",
		"Client connections refused" },
	{ METRIC_REQUESTS_TOTAL, "counter", "orchard_requests_total", "", "Requests received" },
	{ METRIC_RESPONSES_2XX, "counter", "orchard_responses_total", "{class=\"2xx\"}", "Answers sent" },
	{ METRIC_RESPONSES_4XX, "counter", "orchard_responses_total", "{class=\"4xx\"}", NULL },
	{ METRIC_RESPONSES_5XX, "counter", "orchard_responses_total", "{class=\"5xx\"}", NULL },
	{ METRIC_WAITERS, "gauge", "orchard_waiters", "", "Server-side waits open now" },
	{ METRIC_SANDBOXES_CREATED, "counter", "orchard_sandboxes_created_total", "",
		"Sandboxes asked for and recorded" },
	{ METRIC_SANDBOXES_FAILED, "counter", "orchard_sandboxes_failed_total", "", "Sandboxes that failed" },
	{ METRIC_SANDBOXES_DELETED, "counter", "orchard_sandboxes_deleted_total", "",
		"Sandboxes deleted by their clients" },
	{ METRIC_SANDBOXES_REAPED, "counter", "orchard_sandboxes_reaped_total", "", "Sandboxes removed by a rule" },
	{ METRIC_EXECS_STARTED, "counter", "orchard_execs_started_total", "", "Commands started" },
	{ METRIC_EXECS_SUCCEEDED, "counter", "orchard_execs_succeeded_total", "", "Commands that ended with 0" },
	{ METRIC_EXECS_FAILED, "counter", "orchard_execs_failed_total", "", "Commands that ended otherwise" },
	{ METRIC_EXECS_TIMED_OUT, "counter", "orchard_execs_timed_out_total", "", "Commands over their timeout" },
	{ METRIC_EXECS_REFUSED, "counter", "orchard_execs_refused_total", "",
		"Commands refused because a queue was full" },
	{ METRIC_EXECS_RECOVERED, "counter", "orchard_execs_recovered_total", "",
		"Commands taken over from a process that died" },
	{ METRIC_AGENT_ERRORS, "counter", "orchard_agent_errors_total", "", "Calls to agents that failed" },
};

static void
put_family(struct evbuffer *out, const char *name, const char *type, const char *help)
{
	evbuffer_add_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
put_gauge(struct evbuffer *out, const char *name, const char *help, int64_t value)
{
	put_family(out, name, "gauge", help);
	evbuffer_add_printf(out, "%s %lld\n", name, (long long)value);
}

static void
put_counters(struct evbuffer *out, struct shm_scoreboard *board)
{
	for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
		const struct counter *counter = &counters[i];

		if (counter->help != NULL)
			put_family(out, counter->name, counter->type, counter->help);
		evbuffer_add_printf(out, "%s%s %lld\n", counter->name, counter->labels,
			(long long)scoreboard_sum(board, counter->metric));
	}
}

static void
put_sandboxes(struct evbuffer *out, struct shm_sandboxes *table)
{
	uint32_t counts[SANDBOX_DOUBTFUL + 1] = { 0 };
	struct sandbox_record record;

	for (uint32_t slot = 0, bound = sandbox_table_bound(table); slot < bound; slot++) {
		if (sandbox_table_read(table, slot, &record) && record.status <= SANDBOX_DOUBTFUL)
			counts[record.status]++;
	}
	put_family(out, "orchard_sandboxes", "gauge", "Sandboxes by status");
	for (uint32_t status = 0; status <= SANDBOX_DOUBTFUL; status++)
		evbuffer_add_printf(out, "orchard_sandboxes{status=\"%s\"} %u\n",
			status == SANDBOX_DOUBTFUL ? "doubtful" : sandbox_status_name((enum sandbox_status)status),
			counts[status]);
	put_gauge(out, "orchard_sandboxes_capacity", "Sandbox records there is room for",
		sandbox_table_capacity(table));
}

static void
put_execs(struct evbuffer *out, struct api *api)
{
	struct exec_lock_stats stats;

	exec_lock_stats(shm_exec_lock(api->shm), &stats);
	put_gauge(out, "orchard_execs_running", "Commands that may run now", stats.running);
	put_gauge(out, "orchard_execs_queued", "Commands waiting for their turn",
		(int64_t)stats.nodes_used - stats.running);
	put_gauge(out, "orchard_execs_queue_capacity", "Commands that may be queued or running", stats.nodes_total);
	put_gauge(out, "orchard_execs_running_capacity", "Commands that may run at the same time",
		api->config->max_concurrent_execs);
	put_gauge(out, "orchard_jobs_live", "Jobs that have not ended", job_table_count(shm_jobs(api->shm)));
	put_gauge(out, "orchard_job_records", "Entries of the index of finished jobs and other records",
		record_index_count(shm_index(api->shm)));
}

static void
put_processes(struct evbuffer *out, struct shm_scoreboard *board)
{
	static const char *const roles[] = {
		[PROC_MASTER] = "master",
		[PROC_WORKER] = "worker",
		[PROC_REAPER] = "reaper",
		[PROC_SPAWNER] = "spawner",
		[PROC_GATEWAY] = "gateway",
	};
	uint32_t live[PROC_GATEWAY + 1] = { 0 };
	uint64_t restarts[PROC_GATEWAY + 1] = { 0 };
	struct proc_info info;

	for (uint32_t slot = 0; slot < SHM_PROCESSES; slot++) {
		if (!scoreboard_info(board, slot, &info) || info.role > PROC_GATEWAY)
			continue;
		live[info.role]++;
		restarts[info.role] += info.restarts;
	}
	put_family(out, "orchard_processes", "gauge", "Processes of this server by role");
	for (size_t role = PROC_MASTER; role <= PROC_GATEWAY; role++)
		evbuffer_add_printf(out, "orchard_processes{role=\"%s\"} %u\n", roles[role], live[role]);
	put_family(out, "orchard_process_restarts", "gauge", "Respawns of the processes that are there now");
	for (size_t role = PROC_MASTER; role <= PROC_GATEWAY; role++)
		evbuffer_add_printf(out, "orchard_process_restarts{role=\"%s\"} %llu\n", roles[role],
			(unsigned long long)restarts[role]);
}

void
handle_metrics(struct request *request)
{
	struct api *api = request->api;
	struct evbuffer *out = evbuffer_new();

	if (out == NULL)
		abort();
	put_family(out, "orchard_build_info", "gauge", "Version of this server");
	evbuffer_add_printf(out, "orchard_build_info{version=\"%s\"} 1\n", PACKAGE_VERSION);
	put_counters(out, shm_scoreboard(api->shm));
	put_sandboxes(out, shm_sandboxes(api->shm));
	put_execs(out, api);
	put_processes(out, shm_scoreboard(api->shm));
	respond_buffer(request, 200, "text/plain; version=0.0.4; charset=utf-8", out);
	evbuffer_free(out);
}
