/* follow.c - events of a job's stream to descriptors. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/attach/follow.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "orchardctl/client/path.h"
#include "orchardctl/client/signals.h"
#include "orchardctl/command.h"
#include "orchardctl/output/print.h"

#include <errno.h>
#include <json-c/json_object.h>
#include <poll.h>

/* A write of so much to a pipe that has room does not block (PIPE_BUF). */
enum { PIECE = 4096, RESUME_SECONDS = 60, SILENCE_SECONDS = 60, IDLE_MS = 60000 };

/* Waits until fd takes something. False: a signal came meanwhile, or the time is over. */
static bool
wait_writable(const struct follow *follow, int fd)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLOUT },
		{ .fd = follow->signals != NULL ? follow->signals->fd : -1, .events = POLLIN } };

	for (;;) {
		int64_t left = follow->give_up_ms - clock_boot_ms();
		int n = poll(fds, 2, follow->give_up_ms == 0 ? -1 : left > 0 ? (int)left : 0);

		/* When both are ready the output goes first: what came before the signal is shown. */
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || fds[0].revents != 0)
			return true;
		if (n == 0 || fds[1].revents != 0)
			return false;
	}
}

/* 0, or -1 when it stops here: a signal, or what write_error says. */
static int
write_out(struct follow *follow, int stream, const uint8_t *data, size_t len)
{
	while (len > 0) {
		ssize_t n = (ssize_t)len;

		if (follow->fds[stream] >= 0) {
			if (!wait_writable(follow, follow->fds[stream]))
				return -1;
			n = write(follow->fds[stream], data, len < PIECE ? len : PIECE);
			if (n < 0 && (errno == EINTR || errno == EAGAIN))
				continue;
			if (n < 0) {
				follow->write_error = errno;
				return -1;
			}
		}
		follow->at[stream] += n;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* What comes next of a stream begins at `at`. */
static void
skip_hole(struct follow *follow, int stream, int64_t at)
{
	if (at <= follow->at[stream])
		return;
	ctl_error("%lld bytes of %s are not kept any more and are missing here",
		(long long)(at - follow->at[stream]), stream == FOLLOW_OUT ? "stdout" : "stderr");
	follow->at[stream] = at;
	follow->incomplete = true;
}

static int
on_output(struct follow *follow, int stream, struct json_object *event)
{
	struct json_object *data = print_member(event, "data"), *offset = print_member(event, "offset");
	AUTO_FREE uint8_t *bytes = NULL;
	int64_t at, skip;
	size_t len;

	if (data == NULL || offset == NULL ||
		text_base64_decode(
			json_object_get_string(data), (size_t)json_object_get_string_len(data), &bytes, &len) < 0)
		return -1;
	at = json_object_get_int64(offset);
	skip_hole(follow, stream, at);
	skip = follow->at[stream] - at;
	if (skip >= (int64_t)len)
		return 0;
	return write_out(follow, stream, bytes + skip, len - (size_t)skip);
}

static void
on_status(struct follow *follow, struct json_object *event)
{
	struct json_object *position = print_member(event, "queue_position");

	if (!follow->tell_queue || position == NULL || json_object_get_int(position) == 0)
		return;
	ctl_error("waiting for %d commands before it in its lane; --lane NAME runs it beside them",
		json_object_get_int(position));
	follow->tell_queue = false;
}

static int
on_event(const char *name, const char *data, size_t len, void *arg)
{
	struct follow *follow = arg;
	AUTO_JSON struct json_object *event = NULL;
	struct err err;

	event = json_parse_names(data, len, &err);
	if (!json_object_is_type(event, json_type_object))
		return -1;
	retry_start(&follow->retry, RESUME_SECONDS);
	if (strcmp(name, "stdout") == 0)
		return on_output(follow, FOLLOW_OUT, event);
	if (strcmp(name, "stderr") == 0)
		return on_output(follow, FOLLOW_ERR, event);
	if (strcmp(name, "status") == 0)
		on_status(follow, event);
	if (strcmp(name, "exit") == 0 && follow->job == NULL) {
		skip_hole(follow, FOLLOW_OUT, json_object_get_int64(print_member(event, "stdout_bytes")));
		skip_hole(follow, FOLLOW_ERR, json_object_get_int64(print_member(event, "stderr_bytes")));
		follow->job = STEAL_PTR(event);
	}
	return 0;
}

static int
on_body(const void *data, size_t len, void *arg)
{
	struct follow *follow = arg;

	return sse_take(&follow->sse, data, len, on_event, follow);
}

static void
open_stream(struct follow *follow)
{
	AUTO_FREE char *out = alloc_format("%lld", (long long)follow->at[FOLLOW_OUT]);
	AUTO_FREE char *err = alloc_format("%lld", (long long)follow->at[FOLLOW_ERR]);

	free(follow->path);
	follow->path = path_format("/jobs/%s/stream?stdout_offset=%s&stderr_offset=%s", follow->job_id, out, err);
	sse_fini(&follow->sse);
	follow->request = (struct request){
		.path = follow->path,
		.on_body = on_body,
		.arg = follow,
		.silence_s = SILENCE_SECONDS,
	};
	follow->transfer = client_start(follow->client, &follow->request, NULL, &follow->answer);
}

/* The stream has ended, by itself or by us; without the job's end it is opened again. */
static void
close_stream(struct follow *follow)
{
	bool again;
	int64_t pause;
	int rc = client_end(STEAL_PTR(follow->transfer), &again, &follow->err);
	double asked = follow->answer.retry_after;

	answer_fini(&follow->answer);
	if (follow->job != NULL || follow->write_error != 0)
		return;
	if (rc == 0)
		err_set(&follow->err, ERR_UNAVAILABLE, "the stream of job %s ends too early", follow->job_id);
	else if (!again && follow->err.code != ERR_CLOSED) {
		follow->failed = true;
		return;
	}
	pause = retry_next(&follow->retry, asked);
	follow->failed = pause < 0;
	follow->next_ms = clock_boot_ms() + pause;
}

void
follow_start(struct follow *follow)
{
	retry_start(&follow->retry, RESUME_SECONDS);
}

void
follow_fini(struct follow *follow)
{
	if (follow->transfer != NULL)
		client_end(follow->transfer, NULL, &follow->err);
	answer_fini(&follow->answer);
	sse_fini(&follow->sse);
	free(follow->path);
	json_object_put(follow->job);
}

bool
follow_is_over(const struct follow *follow)
{
	return follow->job != NULL || follow->failed || follow->write_error != 0;
}

int
follow_go_on(struct follow *follow)
{
	int64_t left;

	if (follow->transfer != NULL && transfer_is_done(follow->transfer))
		close_stream(follow);
	if (follow->transfer != NULL || follow_is_over(follow))
		return follow_is_over(follow) ? 0 : IDLE_MS;
	left = follow->next_ms - clock_boot_ms();
	if (left > 0)
		return (int)left;
	open_stream(follow);
	return 0;
}
