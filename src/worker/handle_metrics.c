/* handle_metrics.c - GET /metrics: what all processes of this server have counted, for Prometheus. */
/* SPDX-License-Identifier: MIT */
#include "config.h"
#include "worker/routes.h"

#include "base/clock.h"
#include "conf/config.h"
#include "conf/walls.h"
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
	{ METRIC_BODY_BYTES, "gauge", "orchard_body_bytes", "",
		"Memory that bodies of requests hold now, as body_memory_bytes bounds it" },
	{ METRIC_BODIES_REFUSED, "counter", "orchard_bodies_refused_total", "",
		"Requests refused because bodies held all the memory they may" },
	{ METRIC_WAITERS, "gauge", "orchard_waiters", "", "Server-side waits open now" },
	{ METRIC_SANDBOXES_CREATED, "counter", "orchard_sandboxes_created_total", "",
		"Sandboxes asked for and recorded" },
	{ METRIC_CREATES_WAITING, "gauge", "orchard_creates_waiting", "",
		"Creates that wait for their turn, as max_concurrent_creates and max_waiting_creates bound it" },
	{ METRIC_SANDBOXES_FAILED, "counter", "orchard_sandboxes_failed_total", "", "Sandboxes that failed" },
	{ METRIC_SANDBOXES_DELETED, "counter", "orchard_sandboxes_deleted_total", "",
		"Sandboxes deleted by their clients" },
	{ METRIC_REAPED_TTL, "counter", "orchard_sandboxes_reaped_total", "{rule=\"ttl\"}",
		"Sandboxes removed by a rule" },
	{ METRIC_REAPED_PENDING, "counter", "orchard_sandboxes_reaped_total", "{rule=\"pending\"}", NULL },
	{ METRIC_REAPED_HEARTBEAT, "counter", "orchard_sandboxes_reaped_total", "{rule=\"heartbeat\"}", NULL },
	{ METRIC_REAPED_IDLE, "counter", "orchard_sandboxes_reaped_total", "{rule=\"idle\"}", NULL },
	{ METRIC_REAPED_FAILED, "counter", "orchard_sandboxes_reaped_total", "{rule=\"failed\"}", NULL },
	{ METRIC_REAPED_DOUBTFUL, "counter", "orchard_sandboxes_reaped_total", "{rule=\"doubtful\"}", NULL },
	{ METRIC_REAPED_ORPHAN, "counter", "orchard_sandboxes_reaped_total", "{rule=\"orphan\"}", NULL },
	{ METRIC_EXECS_STARTED, "counter", "orchard_execs_started_total", "", "Commands started" },
	{ METRIC_EXECS_SUCCEEDED, "counter", "orchard_execs_succeeded_total", "", "Commands that ended with 0" },
	{ METRIC_EXECS_FAILED, "counter", "orchard_execs_failed_total", "", "Commands that ended otherwise" },
	{ METRIC_EXECS_TIMED_OUT, "counter", "orchard_execs_timed_out_total", "", "Commands over their timeout" },
	{ METRIC_EXECS_REFUSED, "counter", "orchard_execs_refused_total", "",
		"Commands refused because a queue was full" },
	{ METRIC_EXECS_RECOVERED, "counter", "orchard_execs_recovered_total", "",
		"Commands taken over from a process that died" },
	{ METRIC_AGENT_ERRORS, "counter", "orchard_agent_errors_total", "", "Calls to agents that failed" },
	{ METRIC_STREAMS, "gauge", "orchard_streams", "", "Live streams of output open now" },
	{ METRIC_STREAM_BYTES, "counter", "orchard_stream_bytes_total", "",
		"Bytes of output sent live or by offset" },
	{ METRIC_STDIN_BYTES, "counter", "orchard_stdin_bytes_total", "", "Bytes written to running commands" },
	{ METRIC_FILE_CALLS, "counter", "orchard_file_calls_total", "", "File calls begun" },
	{ METRIC_FILE_CALLS_OPEN, "gauge", "orchard_file_calls", "", "File calls open now" },
	{ METRIC_FILE_BYTES_IN, "counter", "orchard_file_bytes_total", "{direction=\"in\"}",
		"Bytes that file calls passed to and from sandboxes" },
	{ METRIC_FILE_BYTES_OUT, "counter", "orchard_file_bytes_total", "{direction=\"out\"}", NULL },
	{ METRIC_KEY_REPLAYS, "counter", "orchard_idempotency_replays_total", "",
		"Requests answered with what their Idempotency-Key stands for" },
	{ METRIC_KEY_CONFLICTS, "counter", "orchard_idempotency_conflicts_total", "",
		"Requests refused because their Idempotency-Key belongs to another one" },
	{ METRIC_TERMINALS, "gauge", "orchard_terminals", "", "Terminals open now" },
	{ METRIC_TERMINALS_TOTAL, "counter", "orchard_terminals_total", "", "Terminals opened" },
	{ METRIC_TERMINALS_REFUSED, "counter", "orchard_terminals_refused_total", "",
		"Terminals refused for lack of room or of a gateway" },
	{ METRIC_TERMINALS_LOST, "counter", "orchard_terminals_lost_total", "",
		"Terminals that ended because their agent was gone" },
	{ METRIC_TERMINAL_INPUT_BYTES, "counter", "orchard_terminal_input_bytes_total", "",
		"Bytes from clients of terminals to their programs" },
	{ METRIC_TERMINAL_OUTPUT_BYTES, "counter", "orchard_terminal_output_bytes_total", "",
		"Bytes from programs in terminals to their clients" },
	{ METRIC_IMAGE_PULLS, "counter", "orchard_image_pulls_total", "", "Images fetched from registries" },
	{ METRIC_IMAGE_PULL_FAILURES, "counter", "orchard_image_pull_failures_total", "",
		"Images of registries that could not be fetched or unpacked" },
	{ METRIC_IMAGE_BYTES, "gauge", "orchard_image_cache_bytes", "", "Disk space of unpacked layers" },
	{ METRIC_IMAGE_LAYERS, "gauge", "orchard_image_cache_layers", "", "Layers unpacked now" },
	{ METRIC_REDIS_USED, "gauge", "orchard_redis_used", "",
		"Processes of this server that need Redis: none without use_redis" },
	{ METRIC_REDIS_UP, "gauge", "orchard_redis_up", "", "Processes of this server that Redis serves now" },
	{ METRIC_REDIS_HEARS, "gauge", "orchard_redis_hears", "",
		"1 while this server hears what others change: 0 for more than seconds is bad, if Redis is up" },
	{ METRIC_REDIS_CONNECTS, "counter", "orchard_redis_connects_total", "",
		"Connections to Redis that came about" },
	{ METRIC_REDIS_COMMANDS, "counter", "orchard_redis_commands_total", "", "Commands given to Redis" },
	{ METRIC_REDIS_REFUSED, "counter", "orchard_redis_commands_failed_total", "{why=\"refused\"}",
		"Commands that Redis did not do, or nobody knows: refused here while it was away or too much "
		"waited, "
		"without an answer in time, lost with a connection, answered with an error" },
	{ METRIC_REDIS_LATE, "counter", "orchard_redis_commands_failed_total", "{why=\"late\"}", NULL },
	{ METRIC_REDIS_LOST, "counter", "orchard_redis_commands_failed_total", "{why=\"lost\"}", NULL },
	{ METRIC_REDIS_ERRORS, "counter", "orchard_redis_commands_failed_total", "{why=\"error\"}", NULL },
	{ METRIC_REPLICAS_ALIVE, "gauge", "orchard_replicas_alive", "",
		"Servers at this Redis that live, this one included" },
	{ METRIC_REPLICA_ELECTED, "gauge", "orchard_replica_elected", "",
		"1 on the server that does what all need done once" },
}, pod_counters[] = {
	{ METRIC_KUBE_USABLE, "gauge", "orchard_kubernetes_usable", "",
		"1 while pods can be made; GET /ready has the words for 0" },
	{ METRIC_PODS, "gauge", "orchard_pods", "", "Pods of sandboxes that are known" },
	{ METRIC_POD_CREATES, "gauge", "orchard_pod_creates", "", "Pods being made, from the request until the agent answers" },
	{ METRIC_KUBE_REQUESTS, "counter", "orchard_kubernetes_requests_total", "", "Requests to the API server" },
	{ METRIC_KUBE_RETRIES, "counter", "orchard_kubernetes_retries_total", "",
		"Of orchard_kubernetes_requests_total, tries after the first" },
	{ METRIC_KUBE_HTTP2, "counter", "orchard_kubernetes_http2_total", "",
		"Of orchard_kubernetes_requests_total, those answered over HTTP/2" },
	{ METRIC_KUBE_REFUSED, "counter", "orchard_kubernetes_requests_failed_total", "{why=\"refused\"}",
		"Requests to the API server that it refused (404 for what is gone already among them), that came "
		"too many at once (429), that got no answer" },
	{ METRIC_KUBE_THROTTLED, "counter", "orchard_kubernetes_requests_failed_total", "{why=\"throttled\"}", NULL },
	{ METRIC_KUBE_FAILED, "counter", "orchard_kubernetes_requests_failed_total", "{why=\"lost\"}", NULL },
	{ METRIC_KUBE_WATCH_RESTARTS, "counter", "orchard_kubernetes_watch_restarts_total", "",
		"Ends of the watch of pods, the usual one each minute among them" },
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
put_counters(struct evbuffer *out, struct shm_scoreboard *board, const struct counter *counter, size_t count)
{
	for (; count > 0; counter++, count--) {
		if (counter->help != NULL)
			put_family(out, counter->name, counter->type, counter->help);
		evbuffer_add_printf(out, "%s%s %lld\n", counter->name, counter->labels,
			(long long)scoreboard_sum(board, counter->metric));
	}
}

static void
put_cluster(struct evbuffer *out, const struct api *api)
{
	put_family(out, "orchard_kubernetes_info", "gauge", "Where the pods of this server are");
	evbuffer_add_printf(out, "orchard_kubernetes_info{namespace=\"%s\"} 1\n", api->config->sandbox_namespace);
	put_counters(out, shm_scoreboard(api->shm), pod_counters, sizeof pod_counters / sizeof pod_counters[0]);
}

static void
put_pull_seconds(struct evbuffer *out, struct shm_scoreboard *board)
{
	static const char name[] = "orchard_image_pull_seconds_total";

	put_family(out, name, "counter", "Time that fetching and unpacking images of registries took");
	evbuffer_add_printf(out, "%s %.3f\n", name, (double)scoreboard_sum(board, METRIC_IMAGE_PULL_MS) / 1000);
}

static void
put_redis_seconds(struct evbuffer *out, struct shm_scoreboard *board)
{
	static const char name[] = "orchard_redis_answer_seconds";

	put_family(out, name, "summary", "Time that answers of Redis took");
	evbuffer_add_printf(
		out, "%s_sum %.6f\n", name, (double)scoreboard_sum(board, METRIC_REDIS_ANSWER_US) / 1e6);
	evbuffer_add_printf(out, "%s_count %lld\n", name, (long long)scoreboard_sum(board, METRIC_REDIS_ANSWERED));
}

/* Steps of making a sandbox, in their order; the sum and how many there were. */
static void
put_create_steps(struct evbuffer *out, struct shm_scoreboard *board)
{
	static const struct {
		const char *step;
		enum metric time, count;
	} steps[] = {
		{ "wait", METRIC_CREATE_WAIT_US, METRIC_CREATES_MADE },
		{ "files", METRIC_CREATE_FILES_US, METRIC_CREATES_MADE },
		{ "socket", METRIC_CREATE_SOCKET_US, METRIC_CREATES_MADE },
		{ "cgroups", METRIC_CREATE_CGROUPS_US, METRIC_CREATES_MADE },
		{ "namespaces", METRIC_CREATE_NAMESPACES_US, METRIC_CREATES_MADE },
		{ "root", METRIC_CREATE_ROOT_US, METRIC_CREATES_MADE },
		{ "init", METRIC_CREATE_INIT_US, METRIC_CREATES_MADE },
		{ "record", METRIC_CREATE_RECORD_US, METRIC_CREATES_MADE },
		{ "agent", METRIC_CREATE_AGENT_US, METRIC_CREATES_READY },
	};
	static const char name[] = "orchard_create_step_seconds";

	put_family(out, name, "summary", "What the steps of making sandboxes on this host took");
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		evbuffer_add_printf(out, "%s_sum{step=\"%s\"} %.6f\n", name, steps[i].step,
			(double)scoreboard_sum(board, steps[i].time) / 1e6);
		evbuffer_add_printf(out, "%s_count{step=\"%s\"} %lld\n", name, steps[i].step,
			(long long)scoreboard_sum(board, steps[i].count));
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
	put_gauge(out, "orchard_idempotency_keys", "Idempotency-Keys remembered",
		record_index_count(shm_keys(api->shm)));
	put_gauge(out, "orchard_idempotency_keys_capacity", "Idempotency-Keys there is room for",
		api->config->idempotency_max_records);
	put_family(out, "orchard_idempotency_keys_given_way_total", "counter",
		"Idempotency-Keys forgotten before their time because all places were taken");
	evbuffer_add_printf(out, "orchard_idempotency_keys_given_way_total %llu\n",
		(unsigned long long)record_index_forgotten(shm_keys(api->shm)));
}

/* of_latest: seconds since the latest restart; < 0: none. */
static void
put_restarts(struct evbuffer *out, const char *const *roles, const uint64_t *restarts, const double *of_latest)
{
	put_family(out, "orchard_process_restarts", "gauge",
		"How often one of the processes that are there now took the place of one that died");
	for (size_t role = PROC_MASTER; role < PROC_ROLES; role++)
		evbuffer_add_printf(out, "orchard_process_restarts{role=\"%s\"} %llu\n", roles[role],
			(unsigned long long)restarts[role]);
	put_family(out, "orchard_process_restart_age_seconds", "gauge",
		"Seconds since the latest of these, of roles that have any");
	for (size_t role = PROC_MASTER; role < PROC_ROLES; role++)
		if (of_latest[role] >= 0)
			evbuffer_add_printf(out, "orchard_process_restart_age_seconds{role=\"%s\"} %.0f\n",
				roles[role], of_latest[role]);
}

static void
put_processes(struct evbuffer *out, struct shm_scoreboard *board)
{
	static const char *const roles[PROC_ROLES] = {
		[PROC_MASTER] = "master",
		[PROC_WORKER] = "worker",
		[PROC_REAPER] = "reaper",
		[PROC_SPAWNER] = "spawner",
		[PROC_GATEWAY] = "gateway",
		[PROC_CONTROLLER] = "controller",
	};
	uint32_t live[PROC_ROLES] = { 0 };
	uint64_t restarts[PROC_ROLES] = { 0 };
	double age, of_latest[PROC_ROLES], now = (double)clock_wall_us() / 1e6;
	struct proc_info info;

	for (size_t role = 0; role < PROC_ROLES; role++)
		of_latest[role] = -1;
	for (uint32_t slot = 0; slot < SHM_PROCESSES; slot++) {
		if (!scoreboard_info(board, slot, &info) || info.role >= PROC_ROLES)
			continue;
		live[info.role]++;
		restarts[info.role] += info.restarts;
		age = now > info.started_at ? now - info.started_at : 0;
		if (info.restarts > 0 && (of_latest[info.role] < 0 || age < of_latest[info.role]))
			of_latest[info.role] = age;
	}
	put_family(out, "orchard_processes", "gauge", "Processes of this server by role");
	for (size_t role = PROC_MASTER; role < PROC_ROLES; role++)
		evbuffer_add_printf(out, "orchard_processes{role=\"%s\"} %u\n", roles[role], live[role]);
	put_restarts(out, roles, restarts, of_latest);
}

static void
put_walls(struct evbuffer *out, const struct config *config)
{
	struct walls_weakness list[WALLS_WEAKNESSES];

	walls_weaknesses(config, list);
	put_family(out, "orchard_sandbox_weakened", "gauge",
		"In how many ways a setting makes sandboxes weaker than by default");
	for (size_t i = 0; i < WALLS_WEAKNESSES; i++)
		evbuffer_add_printf(
			out, "orchard_sandbox_weakened{setting=\"%s\"} %zu\n", list[i].setting, list[i].count);
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
	put_counters(out, shm_scoreboard(api->shm), counters, sizeof counters / sizeof counters[0]);
	if (config_is_kubernetes(api->config))
		put_cluster(out, api);
	put_pull_seconds(out, shm_scoreboard(api->shm));
	put_redis_seconds(out, shm_scoreboard(api->shm));
	put_create_steps(out, shm_scoreboard(api->shm));
	put_sandboxes(out, shm_sandboxes(api->shm));
	put_execs(out, api);
	put_processes(out, shm_scoreboard(api->shm));
	put_walls(out, api->config);
	respond_buffer(request, 200, "text/plain; version=0.0.4; charset=utf-8", out);
	evbuffer_free(out);
}
