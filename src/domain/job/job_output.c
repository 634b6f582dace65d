/*
 * job_output.c - one read of a stream, from its offset to where the stream stood when it began.
 *
 * It ends early where a byte is not kept: what follows is another read's to ask for, so that no answer
 * ever hides a gap.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/job/job_output.h"
#include "domain/job/job_priv.h"
#include "domain/job/job_tap.h"
#include "domain/service_priv.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"

#include <event2/event.h>
#include <stdlib.h>

enum { PIECE_MAX = 64 * 1024, PAUSE_MS = 100, UNREACHABLE_MS = 10000 };

struct job_output {
	LIST_ENTRY(job_output) link;
	struct service *service;
	struct job_tap *tap;
	struct event *timer; /* pause before the next try */
	struct job_output_ask ask;
	int64_t next;
	int64_t end; /* -1: not open yet */
	bool paused;
	int64_t failing_ms; /* since when; 0: it goes well */
	const struct job_output_ops *ops;
	void *arg;
};

void
job_output_close(struct job_output *output)
{
	event_free(output->timer);
	job_tap_close(output->tap);
	LIST_REMOVE(output, link);
	service_waiter_drop(output->service);
	free(output);
}

static void
output_end(struct job_output *output, const struct err *why)
{
	const struct job_output_ops *ops = output->ops;
	void *arg = output->arg;
	struct err copy = { 0 };

	if (why != NULL)
		copy = *why;
	job_output_close(output);
	ops->end(why != NULL ? &copy : NULL, arg);
}

static void
output_read(struct job_output *output)
{
	int64_t left = output->end < 0 ? output->ask.limit : output->end - output->next;
	struct job_tap_ask ask = { .offset = { -1, -1 }, .limit = left < PIECE_MAX ? (uint32_t)left : PIECE_MAX };

	ask.offset[output->ask.stream] = output->next;
	job_tap_read(output->tap, &ask);
}

/* Again a little later, unless it has not gone well for long. */
static void
output_retry(struct job_output *output, const struct err *why)
{
	int64_t now = clock_boot_ms();

	if (output->failing_ms == 0)
		output->failing_ms = now;
	if (now - output->failing_ms < UNREACHABLE_MS)
		service_timer_set(output->timer, PAUSE_MS);
	else
		output_end(output, why);
}

static const char *
stream_name(const struct job_output *output)
{
	return output->ask.stream == JOB_STDOUT ? "stdout" : "stderr";
}

static int
output_check(const struct job_output *output, const struct job_tap_part *part, struct err *err)
{
	const char *name = stream_name(output);

	if (part->gone && (part->bytes > output->next || part->bytes == 0))
		return err_set(
			err, ERR_GONE, "%s from byte %lld on is not kept any more", name, (long long)output->next);
	if (output->next > part->bytes)
		return err_set(err, ERR_RANGE, "%s has %lld bytes so far: there is no byte %lld", name,
			(long long)part->bytes, (long long)output->next);
	if (part->offset > output->next)
		return err_set(err, ERR_GONE, "%s from byte %lld to %lld is not kept; it goes on at %lld, of %lld",
			name, (long long)output->next, (long long)part->offset - 1, (long long)part->offset,
			(long long)part->bytes);
	return 0;
}

/* False: that was the end. */
static bool
output_open(struct job_output *output, const struct job_tap_answer *answer, const struct job_tap_part *part)
{
	struct job_output_info info = { .offset = output->next, .bytes = part->bytes, .status = answer->status };
	int64_t left = part->bytes - output->next;
	struct err err;

	if (output_check(output, part, &err) != 0) {
		output_end(output, &err);
		return false;
	}
	left = left < output->ask.limit ? left : output->ask.limit;
	output->end = output->next + left;
	info.length = part->whole || (int64_t)part->len >= left ? left : -1;
	if (output->ops->open(&info, output->arg))
		return true;
	output_end(output, NULL);
	return false;
}

static void
output_on_read(const struct job_tap_answer *answer, const struct err *why, void *arg)
{
	struct job_output *output = arg;
	const struct job_tap_part *part = why == NULL ? &answer->parts[output->ask.stream] : NULL;
	struct err err;

	if (why != NULL && why->code == ERR_AGENT_UNREACHABLE) {
		output_retry(output, why);
		return;
	}
	if (why != NULL) {
		output_end(output, why);
		return;
	}
	if (answer->silent) { /* how much there is, is not known yet */
		err_set(&err, ERR_AGENT_UNREACHABLE, "the agent does not know this job yet; ask again");
		output_retry(output, &err);
		return;
	}
	if (output->end < 0 && !output_open(output, answer, part))
		return;
	if (output->next == output->end || part->gone || part->offset > output->next) {
		output_end(output, NULL);
		return;
	}
	if (part->len == 0) {
		err_set(&err, ERR_AGENT_UNREACHABLE, "the agent does not give what it has");
		output_retry(output, &err);
		return;
	}
	output->failing_ms = 0;
	output->next += (int64_t)part->len;
	output->paused = true;
	service_count(output->service, METRIC_STREAM_BYTES, (int64_t)part->len);
	output->ops->piece(part->data, part->len, output->arg);
}

static void
output_on_time(evutil_socket_t fd, short what, void *arg)
{
	struct job_output *output = arg;

	(void)fd;
	(void)what;
	if (output->next == output->end)
		output_end(output, NULL);
	else
		output_read(output);
}

struct job_output *
job_output_start(struct service *service, const char *tenant, const char *job_id, const struct job_output_ask *ask,
	const struct job_output_ops *ops, void *arg, struct err *err)
{
	struct job_output *output;

	if (service_waiter_add(service, err) != 0)
		return NULL;
	output = alloc_zero(1, sizeof *output);
	output->service = service;
	output->ask = *ask;
	output->next = ask->offset;
	output->end = -1;
	output->ops = ops;
	output->arg = arg;
	output->tap = job_tap_open(service, tenant, job_id, output_on_read, output);
	output->timer = service_timer(service, output_on_time, output);
	LIST_INSERT_HEAD(&service->job_outputs, output, link);
	output_read(output);
	return output;
}

void
job_output_more(struct job_output *output)
{
	if (!output->paused)
		return;
	output->paused = false;
	if (output->next == output->end)
		service_timer_set(output->timer, 0);
	else
		output_read(output);
}

void
job_output_rest(struct job_output *output)
{
	if (output->paused)
		job_tap_rest(output->tap);
}

void
job_output_end_all(struct service *service)
{
	struct job_output *output;
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "this server process stops; ask again");
	while ((output = LIST_FIRST(&service->job_outputs)) != NULL)
		output_end(output, &err);
}
