/* attach.c - one loop over a job's stream, its stdin, its cancel, and signals. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/attach/attach.h"
#include "base/clock.h"
#include "orchardctl/attach/feed.h"
#include "orchardctl/attach/follow.h"
#include "orchardctl/client/path.h"
#include "orchardctl/client/signals.h"
#include "orchardctl/command.h"
#include "orchardctl/output/print.h"

#include <errno.h>
#include <json-c/json_object.h>
#include <signal.h>
#include <stdio.h>

/* A cancelled job has so long to end before we leave, and its last output so long to be taken. */
enum { CANCEL_MS = 15000, DRAIN_MS = 3000 };

struct attached {
	struct ctl *ctl;
	const struct attach *attach;
	struct follow follow;
	struct feed *feed; /* NULL: stdin is not passed on */
	/* The cancel. */
	char *path;
	struct request request;
	struct answer answer;
	struct transfer *cancel;
	int64_t leave_ms; /* 0: not cancelled */
	bool draining;
};

static void
start_cancel(struct attached *attached)
{
	attached->path = path_format("/jobs/%s/cancel", attached->attach->job_id);
	attached->request = (struct request){ .method = "POST", .path = attached->path };
	attached->cancel = client_start(attached->ctl->client, &attached->request, NULL, &attached->answer);
	attached->leave_ms = clock_boot_ms() + CANCEL_MS;
	/* A reader that rests must not hold up the request. What it does not take now is asked for again. */
	attached->follow.give_up_ms = clock_boot_ms();
	if (isatty(STDERR_FILENO) && attached->follow.write_error == 0)
		ctl_note(attached->ctl, "cancelling the command; once more leaves at once");
}

static bool
signalled(const struct attached *attached)
{
	return attached->ctl->signals->count > 0;
}

/* Of a cancelled job: until we leave. Its stream tells its end when all its output is through. */
static int64_t
time_left(struct attached *attached)
{
	int64_t now = clock_boot_ms();

	if (transfer_is_done(attached->cancel)) {
		if (attached->follow.write_error != 0)
			return 0;
		if (!attached->draining)
			attached->leave_ms = attached->follow.give_up_ms = now + DRAIN_MS;
		attached->draining = true;
	}
	return attached->leave_ms - now;
}

/* One turn of the loop. False: we leave. */
static bool
turn(struct attached *attached)
{
	bool gone = attached->follow.write_error != 0, cancelling = attached->leave_ms != 0;
	int timeout = follow_go_on(&attached->follow);
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned count = 0;
	int64_t left;

	if (attached->follow.job != NULL || attached->follow.failed)
		return false;
	if ((signalled(attached) || gone) && !cancelling) {
		if (attached->attach->watch_only)
			return false;
		start_cancel(attached);
	}
	if (attached->ctl->signals->count > 1)
		return false;
	if (attached->leave_ms != 0) {
		left = time_left(attached);
		if (left <= 0)
			return false;
		timeout = left < timeout ? (int)left : timeout;
	}
	if (attached->feed != NULL) {
		int feed_timeout = feed_go_on(attached->feed);

		timeout = feed_timeout < timeout ? feed_timeout : timeout;
		count = feed_wants(attached->feed);
	}
	client_step(attached->ctl->client, &in, count, timeout);
	if (count > 0 && in.revents != 0)
		feed_on_readable(attached->feed);
	return true;
}

static int
status_of(struct attached *attached)
{
	const struct follow *follow = &attached->follow;
	int status;

	if (signalled(attached))
		return CTL_SIGNAL + attached->ctl->signals->first;
	if (follow->write_error == EPIPE)
		return CTL_SIGNAL + SIGPIPE;
	if (follow->write_error != 0) {
		ctl_error("the output can't be written: %s", strerror(follow->write_error));
		return CTL_FAILED;
	}
	if (follow->job == NULL) {
		ctl_error("%s\n'orchardctl logs %s' tells what became of it", follow->err.msg,
			attached->attach->job_id);
		return CTL_NOT_RUN;
	}
	status = job_exit_status(attached->ctl, follow->job);
	/* What a pipe got with a hole in it must not pass for all of it. */
	return status == CTL_OK && follow->incomplete ? CTL_FAILED : status;
}

int
attach_run(struct ctl *ctl, const struct attach *attach, struct json_object **ret_job)
{
	AUTO_FREE struct feed *feed = NULL;
	struct attached attached = { .ctl = ctl, .attach = attach };
	struct err err;
	int status;

	attached.follow = (struct follow){
		.client = ctl->client,
		.signals = ctl->signals,
		.job_id = attach->job_id,
		.fds = { attach->silent ? -1 : STDOUT_FILENO, attach->silent ? -1 : STDERR_FILENO },
		.tell_queue = !ctl->quiet && isatty(STDERR_FILENO),
	};
	follow_start(&attached.follow);
	if (attach->input) {
		attached.feed = feed = must_alloc(calloc(1, sizeof *feed));
		feed->client = ctl->client;
		feed->job_id = attach->job_id;
		feed->fd = STDIN_FILENO;
		feed_start(feed);
	}
	while (turn(&attached))
		;
	status = status_of(&attached);
	*ret_job = STEAL_PTR(attached.follow.job);
	if (feed != NULL)
		feed_fini(feed);
	if (attached.cancel != NULL)
		client_end(attached.cancel, NULL, &err);
	answer_fini(&attached.answer);
	free(attached.path);
	follow_fini(&attached.follow);
	return status;
}

int
job_exit_status(const struct ctl *ctl, struct json_object *job)
{
	struct json_object *code = print_member(job, "exit_code");
	const char *verdict = print_string(job, "verdict"), *error = print_string(job, "error");

	/* A program that is not there is told by the command's own stderr and exit code. */
	if (strcmp(verdict, "exited") != 0 && strcmp(verdict, "signaled") != 0 &&
		(strcmp(verdict, "never_started") != 0 || code == NULL))
		ctl_note(ctl, "%s [%s, job %s]", error[0] != '\0' ? error : "the command did not end by itself",
			verdict, print_string(job, "job_id"));
	return code != NULL ? json_object_get_int(code) : CTL_NOT_RUN;
}
