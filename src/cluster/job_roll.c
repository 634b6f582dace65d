/* job_roll.c - Redis' questions about many jobs: those of a sandbox, of a server, and marks on our own. */
/* SPDX-License-Identifier: MIT */
#include "cluster/job_board_impl.h"
#include "cluster/job_script.h"
#include "cluster/lane_script.h"

#include "base/alloc.h"
#include "base/err.h"
#include "redis/client.h"

#include <stdlib.h>
#include <string.h>

static const struct redis_script list_script = { .text = job_list_script, .keys = 1 };
static const struct redis_script page_script = { .text = job_page_script, .keys = 1 };
static const struct redis_script claim_script = { .text = job_claim_script, .keys = 6 };
static const struct redis_script marks_script = { .text = job_marks_script, .keys = 0 };

static void
ask_on_rows(void *ctx, const struct redis_answer *answer)
{
	struct board_ask ask = job_board_answered(ctx);
	struct err err;

	if (redis_answer_check(answer, &err) != 0)
		ask.rows(NULL, &err, ask.arg);
	else
		ask.rows(answer, NULL, ask.arg);
}

static int
ask_rows(struct board_ask *ask, const struct redis_script *script, const struct redis_args *args, struct err *err)
{
	if (redis_run(ask->board->options.redis, script, args,
		    (struct redis_reply_to){
			    .fn = ask_on_rows, .ctx = ask, .deadline_ms = ask->board->options.deadline_ms },
		    err) == 0)
		return 0;
	job_board_unask(ask);
	return -1;
}

static struct board_ask *
ask_new(struct job_board *board, job_board_rows_f *done, void *arg)
{
	struct board_ask *ask = job_board_ask(board, arg);

	ask->rows = done;
	return ask;
}

int
job_board_list(
	struct job_board *board, const struct board_list *list, job_board_rows_f *done, void *arg, struct err *err)
{
	const char *prefix = board->options.prefix;
	struct redis_args args;

	redis_args_init(&args);
	redis_args_format(&args, "%ssandbox-jobs:%s", prefix, list->sandbox_uid);
	redis_args_format(&args, "%sjob:", prefix);
	redis_args_text(&args, list->tenant);
	redis_args_number(&args, list->limit);
	return ask_rows(ask_new(board, done, arg), &list_script, &args, err);
}

int
job_board_page(struct job_board *board, const char *server, const char *cursor, job_board_rows_f *done, void *arg,
	struct err *err)
{
	const char *prefix = board->options.prefix;
	struct redis_args args;

	redis_args_init(&args);
	redis_args_format(&args, "%sjobs:%s", prefix, server);
	redis_args_format(&args, "%sjob:", prefix);
	redis_args_text(&args, server);
	redis_args_text(&args, cursor);
	return ask_rows(ask_new(board, done, arg), &page_script, &args, err);
}

int
job_board_claim(struct job_board *board, const struct board_claim *claim, job_board_rows_f *done, void *arg,
	struct err *err)
{
	const char *prefix = board->options.prefix, *replica = board->options.replica;
	struct redis_args args;

	redis_args_init(&args);
	redis_args_format(&args, "%sjob:%s", prefix, claim->id);
	redis_args_format(&args, "%sjobs:%s", prefix, claim->server);
	redis_args_format(&args, "%schanges", prefix);
	redis_args_format(&args, "%sjobs:%s", prefix, replica);
	redis_args_format(&args, "%sreplicas", prefix);
	redis_args_format(&args, "%shosts", prefix);
	redis_args_text(&args, claim->id);
	redis_args_text(&args, claim->server);
	redis_args_text(&args, replica);
	redis_args_number(&args, LANE_STREAM_ENTRIES);
	redis_args_number(&args, claim->gone_ms);
	redis_args_number(&args, claim->host_ms);
	return ask_rows(ask_new(board, done, arg), &claim_script, &args, err);
}

/* --- marks --- */

struct board_marks {
	size_t count;
	char ids[BOARD_MARKS][ID_UUID_SIZE];
	struct job_board *board;
};

static bool
is_text(const struct redis_answer *answer, const char *text)
{
	return answer->kind == REDIS_STRING && strcmp(answer->text, text) == 0;
}

static void
marks_on_rows(const struct redis_answer *rows, const struct err *why, void *arg)
{
	AUTO_FREE struct board_marks *marks = arg;
	const struct job_board_options *options = &marks->board->options;

	(void)why;
	for (size_t i = 0; rows != NULL && i < marks->count; i++) {
		const struct redis_answer *home = redis_answer_item(rows, 2 * i);
		const struct redis_answer *mark = redis_answer_item(rows, 2 * i + 1);

		if (is_text(mark, "lost"))
			options->marked(options->ctx, marks->ids[i], BOARD_LOST);
		else if (home->kind == REDIS_STRING && home->size > 0 && strcmp(home->text, options->replica) != 0)
			options->marked(options->ctx, marks->ids[i], BOARD_CLAIMED);
		else if (is_text(mark, "1"))
			options->marked(options->ctx, marks->ids[i], BOARD_CANCEL);
	}
}

void
job_board_marks(struct job_board *board, size_t count, const char (*ids)[ID_UUID_SIZE])
{
	struct board_marks *marks;
	struct redis_args args;
	struct err err;

	if (board->options.marked == NULL || count == 0 || count > BOARD_MARKS)
		return;
	marks = alloc_zero(1, sizeof *marks);
	marks->board = board;
	marks->count = count;
	memcpy(marks->ids, ids, count * sizeof *ids);
	redis_args_init(&args);
	redis_args_format(&args, "%sjob:", board->options.prefix);
	for (size_t i = 0; i < count; i++)
		redis_args_text(&args, marks->ids[i]);
	if (ask_rows(ask_new(board, marks_on_rows, marks), &marks_script, &args, &err) != 0)
		free(marks);
}
