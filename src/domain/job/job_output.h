/*
 * job_output.h - one stream of a job's output, from an offset on, as it stands now.
 *
 * It works while the command runs and after it has ended. What goes to the caller
 * is one bounded piece at a time; the next is fetched when the caller asks.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_JOB_OUTPUT_H
#define ORCHARD_DOMAIN_JOB_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct job_output;
struct service;

enum job_stream { JOB_STDOUT, JOB_STDERR, JOB_STREAMS };

struct job_output_ask {
	enum job_stream stream;
	int64_t offset;
	int64_t limit; /* INT64_MAX: all up to what is written now */
};

struct job_output_info {
	int64_t offset; /* of the first byte */
	int64_t length; /* bytes that will come; -1: not sure, some may not be kept */
	int64_t bytes; /* written so far */
	const char *status;
};

/* None of these but `end` may close it. */
struct job_output_ops {
	/* First, and once: there is such a job and such an offset. False: no piece is wanted, end comes next. */
	bool (*open)(const struct job_output_info *info, void *arg);
	/* A piece, borrowed; the next comes after job_output_more(). */
	void (*piece)(const void *data, size_t len, void *arg);
	/*
	 * Over, and gone. why NULL: all came that was asked for, or all up to the first byte that is not kept.
	 * Before open: ERR_NOT_FOUND, ERR_RANGE (offset beyond the end), ERR_GONE (not kept), ERR_BUSY,
	 * ERR_AGENT_UNREACHABLE.
	 */
	void (*end)(const struct err *why, void *arg);
};

/* Calls nothing before it returns; NULL when too many wait here, and *err says so. */
struct job_output *job_output_start(struct service *service, const char *tenant, const char *job_id,
	const struct job_output_ask *ask, const struct job_output_ops *ops, void *arg, struct err *err);
void job_output_more(struct job_output *output);
/* The caller takes its time: job_output_more() may be long in coming. */
void job_output_rest(struct job_output *output);
void job_output_close(struct job_output *output);

#endif
