/* job_board_impl.h - the inside of struct job_board, for its files. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_JOB_BOARD_IMPL_H
#define ORCHARD_CLUSTER_JOB_BOARD_IMPL_H

#include "cluster/job_board.h"
#include "cluster/shared_return.h"

#include <sys/queue.h>

/* Somebody who waits for an answer; one of the three. */
struct board_ask {
	LIST_ENTRY(board_ask) link;
	struct job_board *board;
	job_board_told_f *told;
	job_board_got_f *got;
	job_board_rows_f *rows;
	char job_id[ID_UUID_SIZE]; /* of a put */
	void *arg;
};

struct board_wait;

struct job_board {
	struct job_board_options options;
	struct event *again;
	LIST_HEAD(, board_ask) asks;
	TAILQ_HEAD(, board_wait) waits;
	size_t bytes;
	uint32_t waiting, in_flight;
	uint32_t refusals; /* in a row */
	struct shared_return back;
};

struct board_ask *job_board_ask(struct job_board *board, void *arg);
/* Redis has not taken its question: nobody is told. */
void job_board_unask(struct board_ask *ask);
/* Its answer has come: takes it out, for whoever asked to be told. */
struct board_ask job_board_answered(struct board_ask *ask);

#endif
