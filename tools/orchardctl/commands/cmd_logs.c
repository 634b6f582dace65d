/* cmd_logs.c - logs: the output of a job, byte for byte. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/attach/follow.h"
#include "orchardctl/client/path.h"
#include "orchardctl/client/signals.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/job_find.h"
#include "orchardctl/commands/options.h"

#include <errno.h>
#include <json-c/json_object.h>
#include <signal.h>
#include <stdio.h>

static const char *const stream_names[] = { "stdout", "stderr" };

struct logs {
	const char *word; /* of the job, or of its sandbox */
	bool follow, skip[FOLLOW_STREAMS];
	long long offset;
	int write_error;
};

static int
read_line(struct args *args, struct logs *logs)
{
	for (;;) {
		switch (args_next(args)) {
		case ARG_END:
			if (logs->word != NULL)
				return 0;
			args_fail(args, "of which job, or of which sandbox's newest one?");
			return -1;
		case ARG_WORD:
			if (logs->word != NULL) {
				args_fail(args, "one job, please; what is \"%s\"?", args->value);
				return -1;
			}
			logs->word = args->value;
			break;
		case 'f':
			logs->follow = true;
			break;
		case OPT_STREAM:
			logs->skip[FOLLOW_OUT] = strcmp(args->value, "stdout") != 0;
			logs->skip[FOLLOW_ERR] = !logs->skip[FOLLOW_OUT];
			break;
		case OPT_OFFSET:
			if (!args_whole(args, "--offset", 0, INT64_MAX, &logs->offset))
				return -1;
			break;
		default:
			return -1;
		}
	}
}

struct sink {
	int fd, error;
	long long count;
};

static int
on_body(const void *data, size_t len, void *arg)
{
	struct sink *sink = arg;

	if (file_write_all(sink->fd, data, len) < 0) {
		sink->error = errno;
		return -1;
	}
	sink->count += (long long)len;
	return 0;
}

static int
write_failed(int error)
{
	if (error == EPIPE)
		return CTL_SIGNAL + SIGPIPE;
	ctl_error("the output can't be written: %s", strerror(error));
	return CTL_FAILED;
}

/* What is written by now; parts that are not kept any more are told and passed over. */
static int
print_stream(const struct ctl *ctl, const char *job_id, int stream, long long offset)
{
	struct sink sink = { .fd = stream == FOLLOW_OUT ? STDOUT_FILENO : STDERR_FILENO };
	AUTO_FREE char *path = path_format("/jobs/%s/output?stream=%s", job_id, stream_names[stream]);
	AUTO_FREE char *from = alloc_format("%lld", offset);
	struct request request = { .on_body = on_body, .arg = &sink };
	AUTO_ANSWER answer = { 0 };
	AUTO_FREE char *all = NULL;
	struct err err;

	path_add(&path, "offset", from);
	request.path = path;
	if (client_call(ctl->client, &request, &answer, &err) < 0)
		return sink.error != 0 ? write_failed(sink.error) : ctl_fail(ctl, &err);
	all = answer_header(&answer, "X-Output-Bytes");
	if (all != NULL && strtoll(all, NULL, 10) > offset + sink.count)
		ctl_error("%s has %s bytes, of which those from %lld on are not kept in one piece",
			stream_names[stream], all, offset + sink.count);
	return CTL_OK;
}

static int
follow_job(const struct ctl *ctl, const struct logs *logs, const char *job_id)
{
	struct follow follow = {
		.client = ctl->client,
		.job_id = job_id,
		.fds = { logs->skip[FOLLOW_OUT] ? -1 : STDOUT_FILENO, logs->skip[FOLLOW_ERR] ? -1 : STDERR_FILENO },
		.at = { logs->offset, logs->skip[FOLLOW_OUT] ? logs->offset : 0 },
	};
	int status = CTL_OK;

	follow_start(&follow);
	while (!follow_is_over(&follow))
		client_step(ctl->client, NULL, 0, follow_go_on(&follow));
	if (follow.write_error != 0)
		status = write_failed(follow.write_error);
	else if (follow.job == NULL)
		status = ctl_fail(ctl, &follow.err);
	follow_fini(&follow);
	return status;
}

int
cmd_logs(struct ctl *ctl, int argc, char **argv)
{
	struct logs logs = { 0 };
	AUTO_FREE char *job_id = NULL;
	struct args args;
	struct err err;
	int status;

	args_init(&args, ctl, argc, argv);
	if (read_line(&args, &logs) < 0)
		return args.status;
	status = ctl_open(ctl);
	if (status != CTL_OK)
		return status;
	job_id = job_find(ctl->client, logs.word, &err);
	if (job_id == NULL)
		return ctl_fail(ctl, &err);
	if (logs.follow)
		return follow_job(ctl, &logs, job_id);
	if (!logs.skip[FOLLOW_OUT])
		status = print_stream(ctl, job_id, FOLLOW_OUT, logs.offset);
	if (status == CTL_OK && !logs.skip[FOLLOW_ERR])
		status = print_stream(ctl, job_id, FOLLOW_ERR, logs.skip[FOLLOW_OUT] ? logs.offset : 0);
	return status;
}
